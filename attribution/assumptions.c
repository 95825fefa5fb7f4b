/* Reads and prints the assumptions that no counter tests: see attribution.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution.h"

#define VALUE_MAX 1e3

const struct occ_attribution_assumptions occ_attribution_usual = {
#define X(name, value, text) .name = (value),
    OCC_ATTRIBUTION_ASSUMPTIONS(X)
#undef X
};

static double *find(struct occ_attribution_assumptions *assumptions, const char *name, size_t length)
{
#define X(member, value, text)                                                                               \
    if (length == sizeof #member - 1 && memcmp(name, #member, length) == 0)                                  \
        return &assumptions->member;
    OCC_ATTRIBUTION_ASSUMPTIONS(X)
#undef X
    return NULL;
}

bool occ_attribution_assume(struct occ_attribution_assumptions *assumptions, const char *text)
{
    struct occ_attribution_assumptions read = *assumptions;
    bool is_valid;
    do {
        size_t length = strcspn(text, "=,");
        double *value = text[length] == '=' ? find(&read, text, length) : NULL;
        char *end = NULL;
        if (value)
            *value = strtod(text + length + 1, &end);
        is_valid = value && end != text + length + 1 && (*end == ',' || *end == '\0') && *value > 0 &&
                   *value <= VALUE_MAX;
        text = is_valid ? end + 1 : text;
    } while (is_valid && text[-1] == ',');
    if (is_valid)
        *assumptions = read;
    return is_valid;
}

void occ_attribution_print_assumptions(const struct occ_attribution_assumptions *assumptions,
                                       char text[OCC_ASSUMPTIONS_BYTES])
{
    size_t used = 0;
#define X(name, usual, meaning)                                                                              \
    used += (size_t)snprintf(text + used, OCC_ASSUMPTIONS_BYTES - used, "%s" #name "=%.6g",                  \
                             used > 0 ? "," : "", assumptions->name);
    OCC_ATTRIBUTION_ASSUMPTIONS(X)
#undef X
}
