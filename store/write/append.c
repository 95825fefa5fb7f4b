/* New launches: checked, counted, and kept until the next commit. One thread for each handle. */
#include "store/internal.h"

/* Maximum size of launches that wait for a successful commit; further launches are refused. */
#define PENDING_MAX_BYTES (48u << 20)

uint64_t occ_store_memory_bytes(const struct occ_store *s)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s->n_runs; i++)
        for (uint32_t k = 0; k < s->runs[i].n_pending; k++)
            rows += s->runs[i].pending[k].n;
    return rows * sizeof(struct occ_store_launch);
}

static int check(const struct occ_store *s, const struct occ_store_launch *launches, size_t n,
                 struct occ_error *err)
{
    int rc = occ_store_check_writable(s, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!occ_store_times_are_valid(launches[i].start_ns, launches[i].duration_ns) ||
            launches[i].config == 0)
            rc = occ_fail(err, OCC_E_INVALID, "a launch has impossible times or no configuration");
    if (rc == 0 && occ_store_memory_bytes(s) > PENDING_MAX_BYTES)
        rc = occ_fail(err, OCC_E_FULL, "%s: too many launches wait for a commit", s->path);
    return rc;
}

static void count(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        r->gpu_ns = occ_add_saturated(r->gpu_ns, rows[i].duration_ns);
        r->first_ns = rows[i].start_ns < r->first_ns ? rows[i].start_ns : r->first_ns;
        r->last_ns = rows[i].start_ns > r->last_ns ? rows[i].start_ns : r->last_ns;
    }
    r->launches += n;
    r->dirty = true;
    if (occ_rollup_add(r, rows, n) != 0)
        r->stale = true; /* recomputed from chunks and rows when the commit begins */
}

int occ_store_append(struct occ_store *s, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = check(s, launches, n, err);
    if (rc == 0 && n > 0)
        rc = occ_store_run_state(s, run, &r, err);
    if (rc != 0 || n == 0)
        return rc;
    struct occ_pending_rows *pending = occ_run_pending_rows(r, device);
    if (!pending || !occ_pending_rows_add(pending, launches, n))
        return occ_no_memory(err);
    count(r, launches, n);
    return 0;
}

int occ_store_end_run(struct occ_store *s, int64_t run, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = occ_store_check_writable(s, err);
    if (rc == 0)
        rc = occ_store_run_state(s, run, &r, err);
    if (rc == 0)
        r->ending = r->dirty = true;
    return rc;
}
