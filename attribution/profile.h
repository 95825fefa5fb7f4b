/*
 * The occupancy profile of a launch: occupancy over u = (time - start) / duration, 0...1, is a mean plus
 * Legendre polynomials P1, P2 ... of 2 u - 1, whose means are 0. It matters only where a sample's edge cuts a
 * launch. Pure.
 */
#ifndef OCC_ATTRIBUTION_PROFILE_H
#define OCC_ATTRIBUTION_PROFILE_H

#define OCC_PROFILE 5

/* P0 ... at u. (n + 1) P(n+1) = (2 n + 1) x P(n) - n P(n-1) */
static inline void occ_profile_legendre(double u, double ret[OCC_PROFILE + 2])
{
    double x = 2 * u - 1;
    ret[0] = 1;
    ret[1] = x;
    for (int n = 1; n <= OCC_PROFILE; n++)
        ret[n + 1] = ((2 * n + 1) * x * ret[n] - n * ret[n - 1]) / (n + 1);
}

/* The functions' integrals from 0 to u: (P(n+1) - P(n-1)) / (2 (2 n + 1)). */
static inline void occ_profile_integrate(double u, double ret[OCC_PROFILE])
{
    double p[OCC_PROFILE + 2];
    occ_profile_legendre(u, p);
    for (int n = 1; n <= OCC_PROFILE; n++)
        ret[n - 1] = (p[n + 1] - p[n - 1]) / (2 * (2 * n + 1));
}

#endif
