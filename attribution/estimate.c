/*
 * From the normal equations to each key's values: mean, standard error, variance inflation, and groups of
 * keys that cannot be told apart. See keys.h; docs/decisions has the reasons of the constants.
 */
#include <math.h>
#include <string.h>

#include "keys.h"

#define VIF_MOST       10.0  /* above, neighbours move together ... */
#define ERROR_MOST     0.015 /* ... and a mean that is this uncertain is reported for a group only */
#define ERROR_REPORTED 0.06  /* a mean that is even less certain is withheld */
#define CORRELATED     0.3
#define PRIOR_SHARE    0.5 /* of a variance: when the prior says as much as the samples, nothing was measured \
                            */
#define OVERLAPPED 0.1     /* of a group's time beside others: active cycles are not its own then */
#define PHASE_ROWS 8       /* that a phase needs to count */
#define ABSORBED                                                                                             \
    3.0 /* of a wrong profile's variance, for each part that shows in residuals: columns take up the rest */
#define SHORT_NS     8000.0 /* below, edges' jitter is more than a twentieth of a launch ... */
#define SHORT_MARGIN 1.6    /* ... and what is wrong with its correction is too little to show in residuals */
#define BESIDE_MARGIN                                                                                        \
    2.0          /* what kernels that run at the same time take from each other changes while they run */
#define SWEEPS 2 /* where there are several blocks */

/* One block's keys. */
struct members {
    uint32_t n;
    uint32_t key[OCC_NORMAL_BLOCK],
        place[OCC_NORMAL_BLOCK]; /* place: of its mean among the block's columns */
    double inflation[OCC_NORMAL_BLOCK];
    uint32_t group[OCC_NORMAL_BLOCK]; /* index of the group's first member */
};

static bool is_in_use(const struct occ_keys *keys, enum occ_system system, const struct occ_key *key)
{
    return key->taken && occ_normal_diagonal(keys->normal[system], key->column[0]) > 0;
}

/* ---- blocks ---- */

static void add_column(struct occ_normal_block *block, const struct occ_key *key, uint32_t function)
{
    uint32_t at = block->n++;
    for (; at > 0 && block->column[at - 1] > key->column[function]; at--) {
        block->column[at] = block->column[at - 1];
        block->prior_precision[at] = block->prior_precision[at - 1];
    }
    block->column[at] = key->column[function];
    block->prior_precision[at] = occ_keys_prior_precision(key);
}

/* Fills a block with the keys from *next on. */
static void make_block(struct occ_keys *keys, enum occ_system system, uint32_t *next, struct members *members)
{
    keys->block->n = 0;
    members->n = 0;
    for (; *next < keys->n && keys->block->n + OCC_PROFILE_FUNCTIONS <= OCC_NORMAL_BLOCK; ++*next) {
        const struct occ_key *key = &keys->keys[*next];
        if (!is_in_use(keys, system, key))
            continue;
        members->key[members->n++] = *next;
        for (uint32_t i = 0; i < key->functions; i++)
            add_column(keys->block, key, i);
    }
    for (uint32_t i = 0; i < members->n; i++) {
        uint32_t wanted = keys->keys[members->key[i]].column[0], at = 0;
        while (keys->block->column[at] != wanted)
            at++;
        members->place[i] = at;
        members->group[i] = i;
    }
}

/* ---- a key's values ---- */

static double covariance(const struct occ_normal_block *block, uint32_t a, uint32_t b)
{
    return block->covariance[(size_t)a * block->n + b];
}

static double solved(const struct occ_keys *keys, enum occ_system system, const struct occ_key *key,
                     enum occ_rhs rhs)
{
    return keys->solution[system][(size_t)rhs * keys->max_columns + key->column[0]];
}

/* Warps counted by samples that know them; the rest by whichever do. */
static double value_of(const struct occ_keys *keys, const struct occ_key *key, enum occ_rhs rhs)
{
    for (int s = 0; s < OCC_SYSTEM_COUNT; s++)
        if (keys->knows[s][rhs] && is_in_use(keys, (enum occ_system)s, key))
            return solved(keys, (enum occ_system)s, key, rhs);
    return NAN;
}

/* How much less certain a key is than if its rows were like all others and their errors independent: the
 * larger of how much larger their residuals are, and of the chi-square by which residuals depend on the phase
 * in a launch. */
static double inflation(const struct occ_key *key)
{
    double larger = key->evidence > 0 ? key->misfit / key->evidence : 1, chi = 0, phases = 0;
    for (int i = 0; i < 2 * OCC_PHASES; i++) {
        if (key->phase_rows[i] < PHASE_ROWS)
            continue;
        chi += key->phase[i] * key->phase[i] / key->phase_rows[i];
        phases++;
    }
    double unfit = phases > 0 ? fmax(chi / phases - 1, 0) : 0;
    return fmax(fmax(larger, 1 + ABSORBED * unfit), 1);
}

static double clamp(double value, double low, double high)
{
    return isfinite(value) ? fmin(fmax(value, low), high) : NAN;
}

/* Values of a sum of keys, each weighted by its launches' time. */
struct mixture {
    double rhs[OCC_RHS_COUNT], variance, prior_variance, inflation, ns, beside_ns, launches;
};

static void add_key(struct mixture *m, const struct occ_keys *keys, const struct occ_key *key)
{
    for (int r = 0; r < OCC_RHS_COUNT; r++) {
        double value = value_of(keys, key, (enum occ_rhs)r);
        m->rhs[r] += (r == OCC_RHS_WARPS ? fmin(value, key->bound) : value) * key->launch_ns;
    }
    m->ns += key->launch_ns;
    m->beside_ns += occ_keys_is_beside(key) ? key->launch_ns : 0;
    m->launches += key->launches;
}

static void report(struct occ_key *key, const struct mixture *m, const struct occ_noise *noise, double vif,
                   enum occ_attribution_source source, uint32_t group)
{
    struct occ_measured *out = &key->measured;
    double x = clamp(m->rhs[OCC_RHS_WARPS] / m->ns, 0, 1), y = clamp(m->rhs[OCC_RHS_ACTIVE] / m->ns, 0, 1);
    bool overlapped = m->beside_ns > OVERLAPPED * m->ns;
    double margin = fmax(m->ns < SHORT_NS * m->launches ? SHORT_MARGIN : 1, overlapped ? BESIDE_MARGIN : 1);
    double scale = m->variance * m->inflation * margin * margin, ratio = x / y;
    *out = (struct occ_measured){.source = source, .group = group, .variance_inflation = vif};
    out->overlapped = overlapped;
    out->elapsed = x;
    out->elapsed_se = sqrt(scale * noise->warps);
    out->sm_active = out->overlapped ? NAN : y;
    bool defined = !out->overlapped && y > 0 && x <= y;
    out->achieved = defined ? ratio : NAN;
    out->achieved_se =
        defined
            ? sqrt(scale * fmax(noise->warps - 2 * ratio * noise->both + ratio * ratio * noise->active, 0)) /
                  y
            : NAN;
    out->blocks = defined ? m->rhs[OCC_RHS_BLOCKS] / m->ns / y : NAN;
    out->imbalance = key->imbalance_ns > 0 ? key->imbalance / key->imbalance_ns : NAN;
    for (int i = 0; i < 5; i++)
        out->stall[i] = clamp(m->rhs[OCC_RHS_STALLS + i] / m->ns, 0, 1);
    out->launches = (uint64_t)m->launches;
}

/* ---- groups ---- */

/* A key is as uncertain as what its error moves along with. */
static void find_inflations(const struct occ_keys *keys, struct members *members)
{
    double own[OCC_NORMAL_BLOCK];
    for (uint32_t i = 0; i < members->n; i++)
        own[i] = inflation(&keys->keys[members->key[i]]);
    for (uint32_t i = 0; i < members->n; i++) {
        double variance = covariance(keys->block, members->place[i], members->place[i]);
        members->inflation[i] = own[i];
        for (uint32_t k = 0; k < members->n; k++) {
            double other = covariance(keys->block, members->place[k], members->place[k]);
            double both = covariance(keys->block, members->place[i], members->place[k]);
            members->inflation[i] = fmax(members->inflation[i], own[k] * both * both / (variance * other));
        }
    }
}

static bool is_uncertain(const struct occ_keys *keys, const struct members *members, uint32_t i,
                         const struct occ_noise *noise)
{
    const struct occ_key *key = &keys->keys[members->key[i]];
    double variance = covariance(keys->block, members->place[i], members->place[i]);
    double vif = variance * (occ_normal_diagonal(keys->normal[OCC_SYSTEM_WARPS], key->column[0]) +
                             occ_keys_prior_precision(key));
    return vif > VIF_MOST && sqrt(variance * noise->warps * members->inflation[i]) > ERROR_MOST;
}

static void unite(struct members *members, uint32_t a, uint32_t b)
{
    uint32_t from = members->group[a] > members->group[b] ? members->group[a] : members->group[b];
    uint32_t to = members->group[a] + members->group[b] - from;
    for (uint32_t i = 0; i < members->n; i++)
        if (members->group[i] == from)
            members->group[i] = to;
}

/* Joins what is uncertain with everything that its error moves along with. */
static void make_groups(const struct occ_keys *keys, struct members *members, const struct occ_noise *noise)
{
    const struct occ_normal_block *block = keys->block;
    for (uint32_t i = 0; i < members->n; i++) {
        if (!is_uncertain(keys, members, i, noise))
            continue;
        double own = covariance(block, members->place[i], members->place[i]);
        for (uint32_t k = 0; k < members->n; k++) {
            double other = covariance(block, members->place[k], members->place[k]);
            double both = covariance(block, members->place[i], members->place[k]);
            if (k != i && fabs(both) > CORRELATED * sqrt(own * other))
                unite(members, i, k);
        }
    }
}

/* The variance of a group's mean, each member weighted by its time. */
static void mix_group(const struct occ_keys *keys, const struct members *members, uint32_t group,
                      struct mixture *ret)
{
    *ret = (struct mixture){.inflation = 1};
    for (uint32_t i = 0; i < members->n; i++)
        if (members->group[i] == group) {
            add_key(ret, keys, &keys->keys[members->key[i]]);
            ret->inflation = fmax(ret->inflation, members->inflation[i]);
        }
    for (uint32_t i = 0; i < members->n; i++) {
        const struct occ_key *key = &keys->keys[members->key[i]];
        double share = key->launch_ns / ret->ns;
        if (members->group[i] != group)
            continue;
        ret->prior_variance += share * share / occ_keys_prior_precision(key);
        for (uint32_t k = 0; k < members->n; k++)
            if (members->group[k] == group)
                ret->variance += share * keys->keys[members->key[k]].launch_ns / ret->ns *
                                 covariance(keys->block, members->place[i], members->place[k]);
    }
}

static void report_block(struct occ_keys *keys, const struct members *members, const struct occ_noise *noise)
{
    for (uint32_t i = 0; i < members->n; i++) {
        struct occ_key *key = &keys->keys[members->key[i]];
        uint32_t group = members->group[i], size = 0;
        struct mixture mixture;
        for (uint32_t k = 0; k < members->n; k++)
            size += members->group[k] == group;
        mix_group(keys, members, group, &mixture);
        double own = covariance(keys->block, members->place[i], members->place[i]);
        double evidence = occ_normal_diagonal(keys->normal[OCC_SYSTEM_WARPS], key->column[0]);
        key->measured = OCC_NOT_MEASURED;
        if (mixture.ns > 0 && mixture.variance <= PRIOR_SHARE * mixture.prior_variance)
            report(key, &mixture, noise, own * (evidence + occ_keys_prior_precision(key)),
                   size > 1 ? OCC_ATTRIBUTION_GROUP : OCC_ATTRIBUTION_REGRESSED,
                   size > 1 ? members->key[group] + 1 : 0);
        if (!(key->measured.elapsed_se <= ERROR_REPORTED))
            key->measured = OCC_NOT_MEASURED;
    }
}

/* ---- all ---- */

static int solve_system(struct occ_keys *keys, enum occ_system system, const struct occ_noise *noise,
                        bool last, uint32_t *ret_columns, struct occ_error *err)
{
    static _Thread_local struct members members;
    uint32_t next = 0, blocks = 0;
    int status = 0;
    *ret_columns = 0;
    while (next < keys->n && status == 0) {
        make_block(keys, system, &next, &members);
        if (members.n == 0)
            break;
        status =
            occ_normal_solve(keys->normal[system], keys->block, keys->prior, keys->solution[system], err);
        *ret_columns += keys->block->n;
        blocks++;
        if (status == 0 && !keys->block->quick && system == OCC_SYSTEM_WARPS && (last || next >= keys->n)) {
            find_inflations(keys, &members);
            make_groups(keys, &members, noise);
            report_block(keys, &members, noise);
        }
    }
    return status;
}

int occ_keys_solve(struct occ_keys *keys, const struct occ_noise *noise, struct occ_error *err)
{
    uint32_t columns = 0;
    keys->block->quick = true;
    int status = solve_system(keys, OCC_SYSTEM_WARPS, noise, true, &columns, err);
    keys->block->quick = false;
    return status;
}

int occ_keys_estimate(struct occ_keys *keys, const struct occ_noise *noise, uint32_t *ret_columns,
                      struct occ_error *err)
{
    uint32_t columns = 0;
    int status = solve_system(keys, OCC_SYSTEM_ROTATED, noise, true, &columns, err);
    for (int sweep = 0; sweep < SWEEPS && status == 0; sweep++) {
        status = solve_system(keys, OCC_SYSTEM_WARPS, noise, sweep == SWEEPS - 1, ret_columns, err);
        if (*ret_columns <= OCC_NORMAL_BLOCK - OCC_PROFILE_FUNCTIONS)
            break;
    }
    *ret_columns += columns;
    return status;
}
