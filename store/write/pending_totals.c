/* Totals and ring positions, which wait in memory for the next commit; the last value of a key counts. One
 * thread for each handle. */
#include <string.h>

#include "store/internal.h"
#include "support/array.h"

static int put_pending(struct occ_store *s, const struct occ_pending_total *total, struct occ_error *err)
{
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < s->n_totals; i++) {
        struct occ_pending_total *known = &s->totals[i];
        if (known->statement == total->statement && known->run == total->run &&
            strcmp(known->word, total->word) == 0 &&
            memcmp(known->uuid, total->uuid, sizeof total->uuid) == 0) {
            known->value = total->value;
            return 0;
        }
    }
    if (!occ_grow((void **)&s->totals, &s->totals_allocated, s->n_totals, SIZE_MAX, sizeof *s->totals))
        return occ_no_memory(err);
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

int occ_store_put_position(struct occ_store *s, enum occ_position which, const uint8_t uuid[16],
                           uint64_t next, struct occ_error *err)
{
    struct occ_pending_total total = {
        .statement = which == OCC_POSITION_RING ? OCC_SQL_SET_POSITION : OCC_SQL_SET_MEASURED_POSITION};
    memcpy(total.uuid, uuid, sizeof total.uuid);
    memcpy(&total.value, &next, sizeof next);
    return put_pending(s, &total, err);
}

int occ_pending_totals_write(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->n_totals && rc == 0; i++) {
        const struct occ_pending_total *total = &s->totals[i];
        struct occ_binder b = occ_store_statement(s, total->statement);
        if (total->run == 0) {
            occ_bind_blob(&b, total->uuid, sizeof total->uuid);
        } else {
            occ_bind_int(&b, total->run);
            occ_bind_text(&b, total->word);
        }
        occ_bind_int(&b, total->value);
        rc = occ_store_run(s, b.stmt, err);
    }
    return rc;
}
