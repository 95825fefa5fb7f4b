/* Values as ncu prints them: scaled units, rounded, with the separators of a locale. See ncu.h. One
 * thread. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncu.h"

static const struct {
    const char *name;
    double scale; /* factor to ns or bytes */
} scales[] = {{"usecond", 1e3}, {"us", 1e3},    {"msecond", 1e6}, {"ms", 1e6},   {"second", 1e9},
              {"s", 1e9},       {"Kbyte", 1e3}, {"Mbyte", 1e6},   {"Gbyte", 1e9}};

/* Reads a number; NaN: not a number. *ret_step: the unit of its last digit. */
static double read_number(const char *text, char decimal_point, double *ret_step)
{
    char clean[64], *end = clean;
    size_t n = 0;
    const char *point = strchr(text, decimal_point);
    for (const char *at = text; *at && n < sizeof clean - 1; at++)
        if (at == point || isalnum((unsigned char)*at) || *at == '-' || *at == '+')
            clean[n++] = at == point ? '.' : *at;
    clean[n] = '\0';
    *ret_step = point ? pow(10, -(double)strspn(point + 1, "0123456789")) : 1;
    double value = strtod(clean, &end);
    return n > 0 && *end == '\0' ? value : (double)NAN;
}

/* The number with the most factors of 2 that is printed as `value`, which is rounded to `step`. */
static double roundest(double value, double step)
{
    for (int bit = 24; bit >= 0; bit--) {
        double rounded = ldexp(round(ldexp(value, -bit)), bit);
        if (fabs(rounded - value) <= step / 2)
            return rounded;
    }
    return value;
}

int occ_ncu_set_printed(struct occ_ncu *n, enum occ_ncu_metric_row row, const char *name,
                        const struct occ_ncu_printed *printed)
{
    double step = 0, value = read_number(printed->text, printed->point, &step), scale = 1;
    const char *kept_as = occ_ncu_unit(row), *unit = printed->unit;
    size_t length = strcspn(unit, "/"); /* "Kbyte/block" */
    if (row == OCC_NCU_DEV_NAME)
        (void)snprintf(n->gpu, sizeof n->gpu, "%s", printed->text);
    /* a label can mean several metrics: "Memory Throughput" in % and in byte/s */
    if (kept_as && (strcmp(kept_as, "%") == 0) != (strcmp(unit, "%") == 0))
        return 0;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (strlen(scales[i].name) == length && memcmp(scales[i].name, unit, length) == 0)
            scale = scales[i].scale;
    bool rounded = length == 5 && step * scale > 1;
    n->rounds_sizes |= rounded;
    return occ_ncu_set(n, row, name, rounded ? roundest(value * scale, step * scale) : value * scale);
}
