/* Totals and ring positions, which wait in memory for the next commit; the last value of a key counts. One thread a handle. */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

static int put_pending(struct occ_store *s, const struct occ_pending_total *total, struct occ_error *err)
{
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    for (uint32_t i = 0; i < s->n_totals; i++) {
        struct occ_pending_total *known = &s->totals[i];
        if (known->statement == total->statement && known->run == total->run &&
            strcmp(known->word, total->word) == 0 &&
            memcmp(known->uuid, total->uuid, sizeof total->uuid) == 0) {
            known->value = total->value;
            return 0;
        }
    }
    struct occ_pending_total *totals = realloc(s->totals, (s->n_totals + 1) * sizeof *totals);
    if (!totals)
        return occ_store_no_memory(err);
    s->totals = totals;
    s->totals[s->n_totals++] = *total;
    return 0;
}

static int put_total(struct occ_store *s, enum occ_sql statement, int64_t run, const char *word,
                     uint64_t value, struct occ_error *err)
{
    struct occ_pending_total total = {
        .statement = statement, .run = run, .value = value > INT64_MAX ? INT64_MAX : (int64_t)value};
    (void)strncpy(total.word, word, sizeof total.word - 1);
    return put_pending(s, &total, err);
}

int occ_store_put_losses(struct occ_store *s, int64_t run, const struct occ_loss *losses, size_t n,
                         struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_total(s, OCC_SQL_SET_LOSS, run, losses[i].cause, losses[i].count, err);
    return rc;
}

int occ_store_put_costs(struct occ_store *s, int64_t run, const struct occ_cost_total *costs, size_t n,
                        struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_total(s, OCC_SQL_SET_OVERHEAD, run, costs[i].what, costs[i].total, err);
    return rc;
}

static int put_position(struct occ_store *s, enum occ_sql statement, const uint8_t uuid[16], uint64_t next,
                        struct occ_error *err)
{
    struct occ_pending_total total = {.statement = statement};
    memcpy(total.uuid, uuid, sizeof total.uuid);
    memcpy(&total.value, &next, sizeof next);
    return put_pending(s, &total, err);
}

static int read_position(struct occ_store *s, enum occ_sql statement, const uint8_t uuid[16],
                         uint64_t *ret_next, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, statement, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, uuid, 16);
    int step = sqlite3_step(stmt);
    int64_t next = step == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a position");
    (void)sqlite3_reset(stmt);
    if (rc == 0)
        memcpy(ret_next, &next, sizeof next);
    return rc;
}

int occ_store_put_ring_position(struct occ_store *s, const uint8_t uuid[16], uint64_t next,
                                struct occ_error *err)
{
    return put_position(s, OCC_SQL_SET_POSITION, uuid, next, err);
}

int occ_store_ring_position(struct occ_store *s, const uint8_t uuid[16], uint64_t *ret_next,
                            struct occ_error *err)
{
    return read_position(s, OCC_SQL_POSITION, uuid, ret_next, err);
}

int occ_store_put_measured_position(struct occ_store *s, const uint8_t uuid[16], uint64_t next,
                                    struct occ_error *err)
{
    return put_position(s, OCC_SQL_SET_MEASURED_POSITION, uuid, next, err);
}

int occ_store_measured_position(struct occ_store *s, const uint8_t uuid[16], uint64_t *ret_next,
                                struct occ_error *err)
{
    return read_position(s, OCC_SQL_MEASURED_POSITION, uuid, ret_next, err);
}

int occ_pending_totals_write(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_totals && rc == 0; i++) {
        const struct occ_pending_total *total = &s->totals[i];
        sqlite3_stmt *stmt = NULL;
        rc = occ_store_statement(s, total->statement, &stmt, err);
        if (rc != 0)
            break;
        struct occ_binder b = {.stmt = stmt};
        if (total->statement == OCC_SQL_SET_POSITION || total->statement == OCC_SQL_SET_MEASURED_POSITION) {
            occ_bind_blob(&b, total->uuid, sizeof total->uuid);
        } else {
            occ_bind_int(&b, total->run);
            occ_bind_text(&b, total->word);
        }
        occ_bind_int(&b, total->value);
        rc = occ_store_run(s, stmt, err, "cannot add a total");
    }
    return rc;
}
