/* See abba.h. */
#include "abba.h"

#include <math.h>

#include "compare/statistics.h"

bool gpu_abba_add(struct gpu_abba *abba, const double a[2], const double b[2])
{
    double effect = (log(b[0]) + log(b[1]) - log(a[0]) - log(a[1])) / 2;
    if (!isfinite(effect))
        return false;
    double before = effect - abba->mean;
    abba->n++;
    abba->mean += before / (double)abba->n;
    abba->squares += before * (effect - abba->mean);
    return true;
}

struct gpu_abba_cost gpu_abba_cost(const struct gpu_abba *abba)
{
    if (abba->n < 2)
        return (struct gpu_abba_cost){NAN, NAN, NAN};
    double df = (double)(abba->n - 1);
    double half = diff_student_quantile(0.975, df) * sqrt(abba->squares / df / (double)abba->n);
    return (struct gpu_abba_cost){expm1(abba->mean), expm1(abba->mean - half), expm1(abba->mean + half)};
}
