/* Measured occupancy that waits for the next commit, as sums. One thread. */
#include "store/internal.h"
#include "support/array.h"

#define PENDING_MAX 65536u /* 16 MB; with one commit a second, far fewer wait */
#define COUNT_MAX   (UINT64_C(1) << 62)

struct occ_pending_measured {
    int64_t minute, run;
    uint32_t config;
    struct occ_measured_sums sums;
};

int occ_store_add_measured(struct occ_store *s, int64_t minute, int64_t run, uint32_t config,
                           const struct occ_measured_sums *sums, struct occ_error *err)
{
    if (s->n_measured >= PENDING_MAX)
        return occ_fail(err, OCC_E_FULL, "%s: too many measured values wait for a commit", s->path);
    if (!occ_grow((void **)&s->measured, &s->measured_allocated, s->n_measured, PENDING_MAX,
                  sizeof *s->measured))
        return occ_no_memory(err);
    struct occ_pending_measured *row = &s->measured[s->n_measured++];
    *row = (struct occ_pending_measured){.minute = minute, .run = run, .config = config, .sums = *sums};
    double ns = sums->ns[OCC_MEASURED_elapsed], sum = sums->sum[OCC_MEASURED_elapsed];
    /* the sums of one call are one block of the variance estimate (OCC_MEASURED_EVIDENCE) */
    row->sums.elapsed_square_sum = ns > 0 ? sum * sum / ns : 0;
    return 0;
}

/* Adds to the row of a unit of time. */
static int add(struct occ_store *s, enum occ_sql which, int64_t unit, const struct occ_pending_measured *row,
               struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, which);
    occ_bind_int(&b, row->config);
    occ_bind_int(&b, row->run);
    occ_bind_int(&b, unit);
#define X(name, text) occ_bind_int(&b, (int64_t)(row->sums.name < COUNT_MAX ? row->sums.name : COUNT_MAX));
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        occ_bind_real(&b, row->sums.sum[k]);
        occ_bind_real(&b, row->sums.ns[k]);
    }
#define BIND_ONE(name) occ_bind_real(&b, row->sums.name);
    OCC_MEASURED_EVIDENCE(BIND_ONE)
    return occ_store_run(s, b.stmt, err);
}

int occ_measured_write(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->n_measured && rc == 0; i++) {
        const struct occ_pending_measured *row = &s->measured[i];
        rc = add(s, OCC_SQL_ADD_MEASURED_MINUTE, row->minute, row, err);
        if (rc == 0)
            rc = add(s, OCC_SQL_ADD_MEASURED_HOUR, row->minute / 60, row, err);
        bool more = i + 1 < s->n_measured && row[1].minute == row->minute && row[1].run == row->run;
        if (rc == 0 && !more)
            rc = occ_store_execute(s, OCC_SQL_ADD_MINUTE_CHANGE, OCC_INTS(row->minute, row->run), err);
    }
    return rc;
}
