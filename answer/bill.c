/* Makes the bill of a history; see bill.h. One thread. */
#include "bill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "support/cleanup.h"
#include "support/array.h"

/* A smaller part of the launches makes parts estimates. */
#define READ_ALL 0.995

struct work {
    struct occ_store *store;
    const struct occ_bill_question *question;
    struct occ_gpu_estimates estimates; /* of all runs, from their first to their last launch */
    struct occ_holder *holders;         /* holders[i]: the part of estimates.list[i] in the question's time */
    struct occ_bill_row *rows;
    size_t n_rows, allocated;
    size_t merged; /* number of rows after the last merge */
    size_t replays;
    struct occ_map kernels; /* number of a kernel -> index in `names` */
    const char **names;
    size_t n_names, allocated_names;
    struct occ_arena arena;
    struct occ_error *err;
};

/* One run on one GPU. */
struct share {
    const struct occ_bill_run *run;
    const struct occ_top *top;
    const struct occ_overview *overview;
    const struct occ_gpu_estimates *estimates; /* of the run in the question's time */
    const struct occ_gpu_time *time;
    int64_t device;
    /* parts of held_s: with a recording; before the first and after the last launch in the question's time */
    double held_s, recorded_s, edges_s;
    bool is_shared;
    const char *model;
};

/* ---- rows ---- */

static int compare_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int by_key(const void *left, const void *right)
{
    const struct occ_bill_row *a = left, *b = right;
    int order = compare_texts(a->key, b->key);
    return order != 0 ? order : compare_texts(a->model, b->model);
}

static void add_row(struct occ_bill_row *sum, const struct occ_bill_row *row)
{
    sum->held_s += row->held_s;
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        sum->part_s[i] += row->part_s[i];
    sum->lost_low_s += row->lost_low_s;
    sum->is_estimate = sum->is_estimate || row->is_estimate;
    sum->simulated = sum->simulated || row->simulated;
}

static void merge(struct work *w)
{
    size_t kept = 0;
    if (w->n_rows > 1)
        qsort(w->rows, w->n_rows, sizeof *w->rows, by_key);
    for (size_t i = 0; i < w->n_rows; i++) {
        if (kept > 0 && by_key(&w->rows[kept - 1], &w->rows[i]) == 0)
            add_row(&w->rows[kept - 1], &w->rows[i]);
        else
            w->rows[kept++] = w->rows[i];
    }
    w->n_rows = w->merged = kept;
}

/* Adds a row. Merges first if many rows came since the last merge, so that memory grows with the answer. */
static int put_row(struct work *w, const struct occ_bill_row *row)
{
    enum { UNMERGED_MIN = 4096 };
    if (w->n_rows > 2 * w->merged + UNMERGED_MIN)
        merge(w);
    if (!occ_grow((void **)&w->rows, &w->allocated, w->n_rows, UINT32_MAX, sizeof *w->rows))
        return occ_no_memory(w->err);
    w->rows[w->n_rows++] = *row;
    return 0;
}

/* ---- one run on one GPU ---- */

static void add_part(struct occ_bill_row *row, enum occ_bill_part part, double seconds)
{
    row->part_s[part] += seconds;
    row->held_s += seconds;
}

/* Returns a copy of the kernel's name, one for all runs; NULL: no memory. */
static const char *name_of(struct work *w, const struct occ_row_kernel *kernel)
{
    uint32_t at = occ_map_put(&w->kernels, (uint64_t)kernel->id, (uint32_t)w->n_names);
    if (at == OCC_MAP_NONE)
        return NULL;
    if (at == w->n_names) {
        if (!occ_grow((void **)&w->names, &w->allocated_names, w->n_names, UINT32_MAX, sizeof *w->names))
            return NULL;
        w->names[w->n_names++] = occ_arena_copy(&w->arena, kernel->short_name);
    }
    return w->names[at];
}

/* Adds `seconds` of kernel `at`. The model's interval is of launches that were not measured. */
static void add_kernel(const struct share *s, size_t at, double seconds, struct occ_bill_row *row)
{
    const struct occ_kernel_totals *kernel = &s->overview->totals.kernels[at];
    if (occ_is_communication(kernel)) {
        add_part(row, OCC_BILL_COMMUNICATION, seconds);
    } else if (!isfinite(kernel->used)) {
        add_part(row, OCC_BILL_UNKNOWN, seconds);
    } else {
        const struct occ_top_row *known = &s->top->rows[s->overview->kernels[at].row];
        double used = occ_at_most(occ_positive(kernel->used), 1);
        double spread = occ_positive(known->tail_spread) + occ_positive(known->small_grid_spread);
        add_part(row, OCC_BILL_USED, seconds * used);
        add_part(row, OCC_BILL_LOST, seconds * (1 - used));
        row->lost_low_s += seconds * occ_positive(1 - used - spread);
    }
}

/* Adds the kernels to `all`, or by kernel as rows of their own. *told: their seconds are added. */
static int add_kernels(struct work *w, const struct share *s, struct occ_bill_row *all, double *told)
{
    const struct occ_overview *o = s->overview;
    int rc = 0;
    for (size_t i = 0; i < o->totals.n_kernels && rc == 0; i++) {
        const struct occ_kernel_totals *kernel = &o->totals.kernels[i];
        bool is_communication = occ_is_communication(kernel);
        double communication_s = o->communication_s[kernel->gpu];
        double of = is_communication ? communication_s : o->duration_s[kernel->gpu] - communication_s;
        double part = is_communication ? s->time->communication : s->time->kernels;
        struct occ_bill_row row = {
            .model = all->model, .is_estimate = all->is_estimate, .simulated = all->simulated};
        if (o->kernels[i].device != s->device || !(of > 0))
            continue;
        add_kernel(s, i, s->recorded_s * part * (kernel->time_s / of), &row);
        *told += row.held_s;
        if (!w->question->by_kernel)
            add_row(all, &row);
        else if (!(row.key = name_of(w, &s->top->rows[o->kernels[i].row].kernel)))
            rc = occ_no_memory(w->err);
        else
            rc = put_row(w, &row);
    }
    return rc;
}

static int add_share(struct work *w, const struct share *s)
{
    const struct occ_gpu_time *time = s->time;
    struct occ_bill_row row = {.key = w->question->by_kernel ? NULL : s->run->key,
                               .model = s->model,
                               .is_estimate = s->is_shared || s->overview->is_busy_most || time->is_divided ||
                                              !(s->overview->read_ratio >= READ_ALL),
                               .simulated = s->overview->is_simulated};
    add_part(&row, OCC_BILL_IDLE, s->edges_s + s->recorded_s * time->pause);
    add_part(&row, OCC_BILL_WAITING, s->recorded_s * time->launch_wait);
    double told = row.held_s;
    int rc = add_kernels(w, s, &row, &told);
    add_part(&row, OCC_BILL_UNKNOWN, occ_positive(s->held_s - told));
    return rc == 0 ? put_row(w, &row) : rc;
}

/* True if the question is about a part of time. */
static bool has_time(const struct work *w)
{
    return w->question->since_ns > 0 || w->question->until_ns > 0;
}

/* Returns the GPU's name among kernels; NULL: unknown. */
static const char *name_in(const struct occ_top *top, int64_t device)
{
    for (size_t i = 0; i < top->n; i++)
        if (top->rows[i].kernel.device == device && top->rows[i].kernel.device_name)
            return top->rows[i].kernel.device_name;
    return NULL;
}

/* Sets the GPU's name, a copy, by the kernels of the run; NULL: unknown. A run without a kernel in the
 * question's time has kernels at other times. */
static int find_model(struct work *w, struct share *s)
{
    const struct occ_filter whole = {.run = s->run->run};
    _cleanup_(occ_top_free) struct occ_top other = {0};
    s->model = name_in(s->top, s->device);
    if (!s->model && has_time(w)) {
        int rc = occ_store_top(w->store, &whole, OCC_TOP_BY_KERNEL, &other, w->err);
        if (rc != 0)
            return rc;
        s->model = name_in(&other, s->device);
    }
    if (s->model && !(s->model = occ_arena_copy(&w->arena, s->model)))
        return occ_no_memory(w->err);
    return 0;
}

/* Returns the seconds of [first_ns, last_ns] outside the run's launches on the GPU. has_launches: launches of
 * the run are stored, at any time. */
static double edges_of(const struct share *s, int64_t first_ns, int64_t last_ns, bool has_launches)
{
    for (size_t i = 0; i < s->estimates->n; i++) {
        const struct occ_gpu_estimate *e = &s->estimates->list[i];
        if (e->device == s->device && (e->launches > 0 || !has_launches))
            return occ_positive((double)(e->first_ns - first_ns) * 1e-9) +
                   occ_positive((double)(last_ns - e->last_ns) * 1e-9);
    }
    return (double)(last_ns - first_ns) * 1e-9;
}

/* Adds the run's time on the GPU of estimate `at`. */
static int add_gpu(struct work *w, struct share *s, size_t at, const struct occ_gpu_time *times, size_t n)
{
    const struct occ_holder *holder = &w->holders[at];
    static const struct occ_gpu_time nothing;
    double span_s = (double)(holder->last_ns - holder->first_ns) * 1e-9;
    s->device = w->estimates.list[at].device;
    s->held_s = holder->held_s;
    if (!(span_s > 0) || !(s->held_s > 0))
        return 0;
    s->time = &nothing;
    for (size_t i = 0; i < n; i++)
        if (times[i].key == s->device)
            s->time = &times[i];
    double edges_s =
        has_time(w) ? edges_of(s, holder->first_ns, holder->last_ns, w->estimates.list[at].launches > 0) : 0;
    s->edges_s = s->held_s * occ_at_most(edges_s / span_s, 1);
    s->recorded_s = s->held_s * occ_at_most(s->time->window_s / span_s, 1 - occ_at_most(edges_s / span_s, 1));
    s->is_shared = s->held_s < span_s * (1 - 1e-9);
    int rc = find_model(w, s);
    return rc == 0 ? add_share(w, s) : rc;
}

/* Adds the run's time on its GPUs: estimates [low, high). */
static int add_run(struct work *w, const struct occ_bill_run *run, size_t low, size_t high)
{
    const struct occ_filter filter = {
        .run = run->run, .since_ns = w->question->since_ns, .until_ns = w->question->until_ns};
    _cleanup_(occ_top_free) struct occ_top top = {0};
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    _cleanup_(occ_gpu_estimates_free) struct occ_gpu_estimates estimates = {0};
    _cleanup_(occ_freep) struct occ_gpu_time *times = NULL;
    struct share share = {.run = run, .top = &top, .overview = &overview, .estimates = &estimates};
    size_t n = 0;
    int rc = occ_store_top(w->store, &filter, OCC_TOP_BY_KERNEL, &top, w->err);
    if (rc == 0)
        rc = occ_overview_make_times(w->store, &filter, &top, &overview, w->err);
    if (rc == 0 && has_time(w))
        rc = occ_store_gpu_estimates(w->store, &filter, NULL, &estimates, w->err);
    if (rc == 0 && occ_gpu_times(&overview.totals, OCC_TIME_BY_GPU, &times, &n) != 0)
        rc = occ_no_memory(w->err);
    for (size_t i = low; i < high && rc == 0; i++)
        rc = add_gpu(w, &share, i, times, n);
    return rc;
}

/* ---- all runs ---- */

static int by_run(const void *left, const void *right)
{
    const struct occ_bill_run *a = left, *b = right;
    return (a->run > b->run) - (a->run < b->run);
}

/* Returns the run in the question's runs, which are in ascending order; NULL: unknown. */
static const struct occ_bill_run *find_run(const struct work *w, int64_t run)
{
    const struct occ_bill_run key = {.run = run};
    return w->question->n_runs ? bsearch(&key, w->question->runs, w->question->n_runs, sizeof key, by_run)
                               : NULL;
}

/* Divides the GPUs' time among all runs of the history. A run holds a GPU from its first to its last launch,
 * also where it has no launch in the question's time. */
static int divide(struct work *w)
{
    const struct occ_filter all = {.since_ns = 0};
    int64_t until_ns = w->question->until_ns > 0 ? w->question->until_ns : INT64_MAX;
    int rc = occ_store_gpu_estimates(w->store, &all, NULL, &w->estimates, w->err);
    if (rc != 0)
        return rc;
    w->holders = calloc(w->estimates.n + 1, sizeof *w->holders);
    if (!w->holders)
        return occ_no_memory(w->err);
    for (size_t i = 0; i < w->estimates.n; i++) {
        const struct occ_gpu_estimate *e = &w->estimates.list[i];
        const struct occ_bill_run *run = find_run(w, e->run);
        int64_t first_ns = e->first_ns > w->question->since_ns ? e->first_ns : w->question->since_ns;
        int64_t last_ns = e->last_ns < until_ns ? e->last_ns : until_ns;
        w->holders[i] = (struct occ_holder){
            .gpu = e->device,
            .first_ns = first_ns,
            .last_ns = e->is_replay || last_ns < first_ns ? first_ns : last_ns,
            .is_alone = !e->has_uuid || !run || !run->has_epoch,
        };
    }
    return occ_held_divide(w->holders, w->estimates.n) == 0 ? 0 : occ_no_memory(w->err);
}

static int add_runs(struct work *w)
{
    int rc = 0;
    size_t high = 0;
    for (size_t low = 0; low < w->estimates.n && rc == 0; low = high) {
        const struct occ_bill_run *run = find_run(w, w->estimates.list[low].run);
        while (high < w->estimates.n && w->estimates.list[high].run == w->estimates.list[low].run)
            high++;
        if (run && run->is_billed && w->estimates.list[low].is_replay)
            w->replays++;
        else if (run && run->is_billed)
            rc = add_run(w, run, low, high);
    }
    return rc;
}

/* ---- amounts ---- */

/* Returns the exact amount in hundredths of the currency's unit. */
static double amount_of(const struct occ_bill_row *row)
{
    return row->held_s / 3600 * (double)row->price->millionths * 1e-4;
}

/* Sets the amount of the rows in the currency, which add up to its rounded sum. `weights` and `shares` have
 * room for all rows. Returns 0 or OCC_E_NO_MEMORY. */
static int set_cents(const struct work *w, const char *currency, double *weights, int64_t *shares)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_rows; i++) {
        const struct occ_bill_row *row = &w->rows[i];
        weights[i] = row->price && strcmp(row->price->currency, currency) == 0 ? amount_of(row) : 0;
        sum += weights[i];
    }
    int rc = occ_share_out(llround(sum), weights, w->n_rows, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++)
        if (weights[i] > 0)
            w->rows[i].cents = shares[i];
    return rc;
}

static int set_parts(struct occ_bill_row *row)
{
    double lost_s = row->part_s[OCC_BILL_LOST];
    int rc = occ_share_out(row->cents, row->part_s, OCC_BILL_PART_COUNT, row->part_cents);
    row->lost_low_cents =
        lost_s > 0 ? (int64_t)((double)row->part_cents[OCC_BILL_LOST] * (row->lost_low_s / lost_s)) : 0;
    return rc;
}

static int set_amounts(struct work *w)
{
    const struct occ_prices *prices = w->question->prices;
    _cleanup_(occ_freep) double *weights = calloc(w->n_rows + 1, sizeof *weights);
    _cleanup_(occ_freep) int64_t *shares = calloc(w->n_rows + 1, sizeof *shares);
    int rc = weights && shares ? 0 : OCC_E_NO_MEMORY;
    for (size_t i = 0; i < w->n_rows; i++)
        w->rows[i].price = occ_price_of(prices, w->rows[i].model);
    for (size_t i = 0; i < prices->n && rc == 0; i++)
        rc = set_cents(w, prices->list[i].currency, weights, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++)
        rc = set_parts(&w->rows[i]);
    return rc == 0 ? 0 : occ_no_memory(w->err);
}

static int largest_first(const void *left, const void *right)
{
    const struct occ_bill_row *a = left, *b = right;
    if (a->cents != b->cents)
        return (a->cents < b->cents) - (a->cents > b->cents);
    return a->held_s != b->held_s ? (a->held_s < b->held_s) - (a->held_s > b->held_s) : by_key(a, b);
}

int occ_bill_make(struct occ_store *store, const struct occ_bill_question *question,
                  struct occ_bill *ret_bill, struct occ_error *err)
{
    struct work w = {.store = store, .question = question, .err = err};
    int rc = divide(&w);
    if (rc == 0)
        rc = add_runs(&w);
    if (rc == 0) {
        merge(&w);
        rc = set_amounts(&w);
    }
    if (rc == 0 && w.n_rows > 1)
        qsort(w.rows, w.n_rows, sizeof *w.rows, largest_first);
    *ret_bill =
        (struct occ_bill){.rows = w.rows, .n = w.n_rows, .replays = w.replays, .memory = w.arena.blocks};
    occ_gpu_estimates_free(&w.estimates);
    occ_map_free(&w.kernels);
    free(w.holders);
    free((void *)w.names);
    if (rc != 0)
        occ_bill_free(ret_bill);
    return rc;
}

void occ_bill_free(struct occ_bill *bill)
{
    free(bill->rows);
    occ_arena_free(bill->memory);
    *bill = (struct occ_bill){.rows = NULL};
}
