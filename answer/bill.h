/*
 * The bill: the cost of the time in which programs held GPUs, in parts that add up to the cent.
 *
 * A run holds a GPU from its first launch to the end of its last one. While several runs hold one GPU, each
 * pays an equal part of that time, so that the GPU's time is counted once. Two GPUs are held at twice the
 * price. docs/cost.md has the definitions.
 *
 * One thread at a time, like the store. Errors: support/error.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "support/error.h"
#include "support/held.h"

/* ---- prices ---- */

enum { OCC_PRICES_MAX = 64, OCC_PRICE_MODEL_BYTES = 96, OCC_CURRENCY_BYTES = 4 };

/* The price of a GPU-hour. `model`: a part of the GPU's name; ASCII case does not matter. */
struct occ_price {
    char model[OCC_PRICE_MODEL_BYTES], currency[OCC_CURRENCY_BYTES]; /* currency: three letters (ISO 4217) */
    int64_t millionths; /* millionths of the currency's unit; > 0 */
};

struct occ_prices {
    struct occ_price list[OCC_PRICES_MAX];
    size_t n;
};

/* Reads "2.50 EUR": more than 0, at most 1000000, at most 6 digits after the point. Sets currency and
 * millionths; the model stays. Returns false for other texts. Pure. */
bool occ_price_parse(const char *text, struct occ_price *ret_price);
/* Returns the price with the longest model in the GPU's name, the first of equally long ones; NULL: none, or
 * `gpu` is NULL. A slice of a GPU ("... MIG ...") has only prices with "MIG" in their model. Pure. */
const struct occ_price *occ_price_of(const struct occ_prices *prices, const char *gpu);

/* ---- amounts that add up ---- */

/* Shares out `total` >= 0 in proportion to weights, which are finite and not negative: each share is rounded
 * down, and the largest remainders get one more, the first of equal ones. The shares add up to `total`; all
 * are 0 if all weights are 0. Returns 0 or OCC_E_NO_MEMORY. Any thread. */
int occ_share_out(int64_t total, const double *weights, size_t n, int64_t *ret_shares);

/* ---- the bill ---- */

/* Parts of the held time. X(NAME, word, text) */
#define OCC_BILL_PARTS(X)                                                                                    \
    X(IDLE, "idle", "pauses: no kernel of the run ran, and no launch was late")                              \
    X(WAITING, "waiting", "the GPU waited for a launch")                                                     \
    X(COMMUNICATION, "communication", "communication without other kernels")                                 \
    X(LOST, "lost", "warp slots that were empty while kernels ran")                                          \
    X(USED, "used", "warp slots that held a warp while kernels ran")                                         \
    X(UNKNOWN, "unknown", "nothing was recorded, kernels that the model does not know, or lost launches")
#define OCC_BILL_ENUMERATOR(name, word, text) OCC_BILL_##name,
enum occ_bill_part { OCC_BILL_PARTS(OCC_BILL_ENUMERATOR) OCC_BILL_PART_COUNT };

/* The unit of a row. */
enum occ_bill_by {
    OCC_BILL_BY_RUN, /* the runs' keys; the other units ignore the keys */
    OCC_BILL_BY_KERNEL,
    OCC_BILL_BY_LAYER, /* ranges around a launch; names that differ only in their number are one layer */
    OCC_BILL_BY_RANGE  /* ranges around a launch; each name is a row */
};
/* Key of kernels without a range; also of launches that are no longer stored individually. */
#define OCC_BILL_NO_LAYER "(no layer)"

/* All time of one key on GPUs of one model. `key` belongs to the question's runs or to the bill, `price` to
 * the question. */
struct occ_bill_row {
    const char *key, *model;       /* NULL: unknown; by kernel, layer and range: no kernel */
    const struct occ_price *price; /* NULL: no price; amounts are 0 then and mean nothing */
    double held_s, part_s[OCC_BILL_PART_COUNT];
    /* low end of the lost time; the difference to part_s[OCC_BILL_LOST] may be used time */
    double lost_low_s;
    double part_j[OCC_BILL_PART_COUNT]; /* energy in the parts, in joules, for metered_s of held_s */
    double metered_s;                   /* part of held_s with a known energy; 0: no energy is known */
    bool is_estimate; /* a part of the launches was read, launches were lost, or overlap is not known */
    bool simulated;
    int64_t cents, part_cents[OCC_BILL_PART_COUNT], lost_low_cents; /* hundredths of the currency's unit */
    /* the parts' amounts in millionths of the unit: small bills of parts of a period add up. All rows of a
     * currency add up to its rounded sum, which may differ from that in cents by half a cent. */
    int64_t part_millionths[OCC_BILL_PART_COUNT];
    int64_t mj, part_mj[OCC_BILL_PART_COUNT]; /* energy in millijoules, rounded as amounts are */
};

struct occ_bill {
    struct occ_bill_row *rows; /* the largest amount first, then rows without a price by held time */
    size_t n;
    int64_t first_ns, last_ns; /* ends of the billed time, over runs whose times count from 1970; 0: none */
    size_t replays; /* runs whose times are not the program's (Nsight Compute), and which are not billed */
    void *memory;
};

struct occ_bill_run {
    int64_t run;
    const char *key; /* NULL: unknown */
    bool has_epoch;  /* false: times of the run do not count from 1970 */
    bool is_billed;  /* false: the run only shares GPUs with others */
};

struct occ_bill_history {
    struct occ_store *store;
    const struct occ_bill_run *runs; /* all runs of the history, in ascending order */
    size_t n_runs;
    const void *names; /* first argument of the question's kernel_name() for this history */
};

struct occ_bill_question {
    int64_t since_ns, until_ns; /* see struct occ_filter; 0: no limit */
    const struct occ_bill_history *histories;
    size_t n_histories;
    enum occ_bill_by by;
    const struct occ_prices *prices;
    /* OCC_BILL_BY_KERNEL: returns a name that no other kernel of the history has; the function NULL: short
     * names, so that kernels of one short name are one row */
    const char *(*kernel_name)(const void *names, int64_t kernel);
};

/* Makes one bill of all histories. A GPU is known by its UUID: runs of all histories share its time, and its
 * energy counts once, though each history may have a copy. A run's energy is divided into parts in proportion
 * to their time. Rows of one currency add up to the rounded amount of all their time, and a row's parts to
 * the row. The prices and the runs' keys must outlive the bill. Free it with occ_bill_free(); after a failure
 * it is empty. */
int occ_bill_make(const struct occ_bill_question *question, struct occ_bill *ret_bill, struct occ_error *err);
void occ_bill_free(struct occ_bill *bill);
