/* See outcomes.h. */
#include "store/outcomes.h"

#include "store/internal.h"

static int put(struct occ_store *s, const struct occ_advice_outcome *o, struct occ_error *err)
{
    const double ratios[] = {o->predicted, o->predicted_low, o->predicted_high,
                             o->measured,  o->measured_low,  o->measured_high};
    struct occ_binder b = occ_store_statement(s, OCC_SQL_PUT_OUTCOME);
    occ_bind_int(&b, o->config_before);
    occ_bind_int(&b, o->config_after);
    occ_bind_int(&b, o->compared_ns);
    occ_bind_text(&b, o->change);
    occ_bind_int(&b, o->is_promised);
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        occ_bind_real(&b, ratios[i]);
    return occ_store_run(s, b.stmt, err);
}

int occ_store_put_outcomes(struct occ_store *s, const struct occ_advice_outcome *outcomes, size_t n,
                           struct occ_error *err)
{
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put(s, &outcomes[i], err);
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_DROP_OUTCOMES, &(const int64_t){OCC_OUTCOMES_MAX}, 1, err);
    return occ_store_conclude(s, rc, err);
}
