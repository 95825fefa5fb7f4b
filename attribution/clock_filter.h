/*
 * The offset between the clocks of launches and samples, which two processes convert from the GPU's clock
 * each for itself, and its drift: a Kalman filter of {offset, drift}, fed with one measurement a block of
 * samples.
 *
 *   sample time = launch time + offset(t),   offset(t) = offset + drift x (t - at)
 *
 * Pure; one thread.
 */
#ifndef OCC_SAMPLER_CLOCK_FIT_H
#define OCC_SAMPLER_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

struct occ_clock_fit {
    bool known;
    int64_t at_ns;      /* sample time of the state */
    double offset_ns;   /* then */
    double drift;       /* ns per ns */
    double variance[3]; /* of the offset (ns^2), of both, of the drift */
};

/* Forgets; nothing is known. */
void occ_clock_fit_begin(struct occ_clock_fit *fit);
double occ_clock_fit_offset(const struct occ_clock_fit *fit, int64_t at_ns);
/* A measurement of the offset at a time not before the last one, with its variance (ns^2). */
void occ_clock_fit_update(struct occ_clock_fit *fit, int64_t at_ns, double offset_ns, double variance);

#endif
