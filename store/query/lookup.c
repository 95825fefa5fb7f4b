/* Queries with one number as the answer. One thread. */
#include <string.h>

#include "store/internal.h"

/* The number that a statement with one blob (`bytes`) or text parameter finds. OCC_E_NOT_FOUND, without a
 * message: no row. */
static int look_up(struct occ_store *s, enum occ_sql which, const void *value, size_t bytes,
                   int64_t *ret_number, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, which);
    if (bytes > 0)
        occ_bind_blob(&b, value, bytes);
    else if (value)
        occ_bind_text(&b, value);
    return occ_store_number(s, b.stmt, ret_number, err);
}

static int need_run(const struct occ_store *s, int rc, struct occ_error *err)
{
    return rc == OCC_E_NOT_FOUND ? occ_fail(err, rc, "%s: no such run", s->path) : rc;
}

int occ_store_run_user(struct occ_store *s, const uint8_t uuid[16], uint32_t *ret_uid, struct occ_error *err)
{
    int64_t uid = 0;
    int rc = look_up(s, OCC_SQL_RUN_USER, uuid, 16, &uid, err);
    if (rc == 0)
        *ret_uid = (uint32_t)uid;
    return need_run(s, rc, err);
}

int occ_store_run_total(struct occ_store *s, enum occ_run_total which, const uint8_t uuid[16],
                        const char *word, uint64_t *ret_total, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, which == OCC_RUN_LOSS ? OCC_SQL_RUN_LOSS : OCC_SQL_RUN_COST);
    int64_t total = 0;
    occ_bind_blob(&b, uuid, 16);
    occ_bind_text(&b, word);
    int rc = occ_store_number(s, b.stmt, &total, err);
    *ret_total = rc == 0 && total > 0 ? (uint64_t)total : 0;
    return rc == OCC_E_NOT_FOUND ? 0 : rc;
}

int occ_store_run_recorded(struct occ_store *s, const uint8_t uuid[16], int64_t *ret_ns,
                           bool *ret_was_elsewhere, struct occ_error *err)
{
    int64_t periods = 0;
    int rc = look_up(s, OCC_SQL_RUN_RECORDED, uuid, 16, ret_ns, err);
    if (rc == 0)
        rc = look_up(s, OCC_SQL_RUN_WAS_ELSEWHERE, uuid, 16, &periods, err);
    if (rc == 0)
        *ret_was_elsewhere = periods > 0;
    return rc;
}

int occ_store_position(struct occ_store *s, enum occ_position which, const uint8_t uuid[16],
                       uint64_t *ret_next, struct occ_error *err)
{
    int64_t next = 0;
    int rc = look_up(s, which == OCC_POSITION_RING ? OCC_SQL_POSITION : OCC_SQL_MEASURED_POSITION, uuid, 16,
                     &next, err);
    if (rc != 0 && rc != OCC_E_NOT_FOUND)
        return rc;
    memcpy(ret_next, &next, sizeof next);
    return 0;
}

int occ_store_find_import(struct occ_store *s, const char *source_hash, int64_t *ret_run,
                          struct occ_error *err)
{
    return need_run(s, look_up(s, OCC_SQL_FIND_IMPORT, source_hash, 0, ret_run, err), err);
}

int occ_store_session_launches(struct occ_store *s, const char *session, uint64_t *ret_launches,
                               struct occ_error *err)
{
    int64_t n = 0;
    int rc = look_up(s, OCC_SQL_SESSION_LAUNCHES, session, 0, &n, err);
    if (rc == 0)
        *ret_launches = (uint64_t)n;
    return rc;
}

int occ_store_count_unknown_time_base(struct occ_store *s, uint64_t *ret_runs, struct occ_error *err)
{
    int64_t n = 0;
    int rc = look_up(s, OCC_SQL_COUNT_UNKNOWN_TIME_BASE, NULL, 0, &n, err);
    if (rc == 0)
        *ret_runs = (uint64_t)n;
    return rc;
}
