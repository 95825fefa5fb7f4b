/*
 * The keys of one GPU's attribution (kernel shape x graph node x company), their columns in the normal
 * equations, and what is estimated of them. Company: 0 for launches that run alone; those that run beside
 * others have some share of the GPU, which shows in how long they take, and so are told apart by their
 * duration's half octave. Two systems of equations: samples that count warps, and those of a rotated counter
 * set that do not.
 *
 * Every key has a column for its mean; keys whose launches are not much shorter than a sample have more, for
 * an occupancy profile over the launch's time (overlap.h), with a prior of mean 0: what the samples leave
 * undetermined widens the mean's standard error.
 *
 * Pure; one thread.
 */
#ifndef OCC_SAMPLER_KEYS_H
#define OCC_SAMPLER_KEYS_H

#include "attribution.h"
#include "normal_equations.h"
#include "overlap.h"
#include "support/map.h"

/* What is regressed. Ratios: warps and active of what the GPU has, blocks a mean per SM, stalls of cycles. */
enum occ_rhs {
    OCC_RHS_WARPS,
    OCC_RHS_ACTIVE,
    OCC_RHS_BLOCKS,
    OCC_RHS_STALLS,
    OCC_RHS_COUNT = OCC_RHS_STALLS + 5
};
enum occ_system { OCC_SYSTEM_WARPS, OCC_SYSTEM_ROTATED, OCC_SYSTEM_COUNT };

#define OCC_NO_COLUMN UINT32_MAX

#define OCC_PHASES   8
#define OCC_PRIOR_SD 0.35 /* of a key's bound */

struct occ_key {
    struct occ_attribution_key model;
    uint32_t functions;                     /* of its profile over a launch's time (overlap.h) */
    uint32_t column[OCC_PROFILE_FUNCTIONS]; /* one for each function */
    double bound;                           /* of elapsed occupancy */
    double prior[OCC_RHS_COUNT];
    uint32_t company;
    double launches, launch_ns;     /* forgotten by halves */
    double misfit, evidence;        /* sums of w^2 r^2 / sigma^4 and w^2 / sigma^2 */
    double imbalance, imbalance_ns; /* sums over launches that are read directly: value x ns; ns */
    double phase[2 * OCC_PHASES],
        phase_rows[2 * OCC_PHASES]; /* residuals by where in a launch a sample starts; ends */
    uint64_t used;                  /* row count when last used */
    uint32_t waiting;               /* launches that refer to it */
    uint32_t row, stamp;            /* where it stands in the row that is made now */
    bool taken;
    struct occ_measured measured; /* as of the last estimate */
};

struct occ_keys {
    struct occ_attribution_options options;
    struct occ_key *keys;
    uint32_t n; /* places in use or free below it */
    struct occ_map index;
    uint32_t *free_columns, n_free_columns, n_columns, max_columns;
    struct occ_normal *normal[OCC_SYSTEM_COUNT];
    double *solution[OCC_SYSTEM_COUNT]; /* OCC_RHS_COUNT x max_columns */
    double *prior;                      /* the same */
    bool knows[OCC_SYSTEM_COUNT][OCC_RHS_COUNT];
    struct occ_normal_block *block;
    uint64_t rows, refused, swept; /* swept: rows when unused keys were looked for last */
};

int occ_keys_open(struct occ_keys *keys, const struct occ_attribution_options *options,
                  struct occ_error *err);
void occ_keys_close(struct occ_keys *keys);

/* The key's index, new or old; OCC_MAP_NONE: there is no room. */
uint32_t occ_keys_put(struct occ_keys *keys, const struct occ_attribution_key *model, uint32_t company);
/* Of launches that last so long beside others. */
uint32_t occ_keys_company(int64_t duration_ns);

static inline bool occ_keys_is_beside(const struct occ_key *key)
{
    return key->company != 0;
}

/* Gives a key's profile the columns that launches of so many samples' length need. Without room it has the
 * mean's only. */
void occ_keys_widen(struct occ_keys *keys, struct occ_key *key, double samples);

/* Forgets all rows; keys and their last values stay. */
void occ_keys_forget(struct occ_keys *keys);

/* Residual (co)variances in units of the rows' weights. */
struct occ_noise {
    double warps, both, active;
};

/* Solves and sets every key's `measured`. Returns the number of columns solved for through ret_columns. */
int occ_keys_estimate(struct occ_keys *keys, const struct occ_noise *noise, uint32_t *ret_columns,
                      struct occ_error *err);

/* What is known of a key's columns before any sample: their precision (1 / variance), about keys->prior. */
static inline double occ_keys_prior_precision(const struct occ_key *key)
{
    double sd = OCC_PRIOR_SD * key->bound;
    return 1 / (sd * sd);
}

/* No key has a value until the next estimate. */
void occ_keys_invalidate(struct occ_keys *keys);

/* Solves for elapsed occupancy only and sets no values: for trying offsets. */
int occ_keys_solve(struct occ_keys *keys, const struct occ_noise *noise, struct occ_error *err);

/* The present solution for a function of a key's profile, without errors. */
static inline double occ_keys_value(const struct occ_keys *keys, const struct occ_key *key, enum occ_rhs rhs,
                                    uint32_t function)
{
    return keys->solution[OCC_SYSTEM_WARPS][(size_t)rhs * keys->max_columns + key->column[function]];
}

#endif
