/* See clock_filter.h. */
#include "clock_filter.h"

#define DRIFT_SD    5e-6  /* at first: crystals and the anchors' own error */
#define DRIFT_WALK  1e-13 /* variance of the drift's change a second */
#define OFFSET_WALK 4e4   /* variance of its own wander a second: (0.2 us)^2 */
#define SURPRISE    4.0   /* standard deviations */
#define SECOND_NS   1e9

void occ_clock_fit_begin(struct occ_clock_fit *fit)
{
    *fit = (struct occ_clock_fit){0};
}

double occ_clock_fit_offset(const struct occ_clock_fit *fit, int64_t at_ns)
{
    return fit->known ? fit->offset_ns + fit->drift * (double)(at_ns - fit->at_ns) : 0;
}

void occ_clock_fit_update(struct occ_clock_fit *fit, int64_t at_ns, double offset_ns, double variance)
{
    if (!fit->known) {
        *fit = (struct occ_clock_fit){.known = true,
                                      .at_ns = at_ns,
                                      .offset_ns = offset_ns,
                                      .variance = {variance, 0, DRIFT_SD * DRIFT_SD}};
        return;
    }
    double *p = fit->variance, dt = (double)(at_ns - fit->at_ns);
    double predicted = occ_clock_fit_offset(fit, at_ns);
    p[0] += 2 * dt * p[1] + dt * dt * p[2] + OFFSET_WALK * dt / SECOND_NS;
    p[1] += dt * p[2];
    p[2] += DRIFT_WALK * dt / SECOND_NS;
    double innovation = offset_ns - predicted, total = p[0] + variance;
    if (innovation * innovation > SURPRISE * SURPRISE * total) { /* the offset was wrong, not the drift */
        p[0] += innovation * innovation - total;
        total = p[0] + variance;
    }
    double gain_offset = p[0] / total, gain_drift = p[1] / total;
    fit->offset_ns = predicted + gain_offset * innovation;
    fit->drift += gain_drift * innovation;
    fit->at_ns = at_ns;
    p[2] -= gain_drift * p[1];
    p[1] -= gain_drift * p[0];
    p[0] -= gain_offset * p[0];
}
