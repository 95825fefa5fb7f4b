/* See pm_sets.h. */
#include "pm_sets.h"

#include <stdio.h>
#include <string.h>

/* Parameters common to the configuration of all sets. */
struct target {
    const struct occ_pm_library *library;
    const char *chip;
    const struct occ_cupti_image *availability;
};

static bool has(const struct occ_counter_set *set, enum occ_counter counter)
{
    uint32_t i = 0;
    while (i < set->n && set->counter[i] != counter)
        i++;
    return i < set->n;
}

/* true if the set yields occupancy over active and over elapsed cycles. */
static bool has_occupancy(const struct occ_counter_set *set)
{
    return has(set, OCC_COUNTER_WARPS) && has(set, OCC_COUNTER_ACTIVE) && has(set, OCC_COUNTER_ELAPSED);
}

/* true if the set has more counters than active and elapsed cycles, which the first set has too. */
static bool has_extra_counters(const struct occ_counter_set *set)
{
    return set->n > (uint32_t)has(set, OCC_COUNTER_ACTIVE) + has(set, OCC_COUNTER_ELAPSED);
}

static void add_missing(struct occ_pm_sets *sets, const char *metric)
{
    uint32_t i = 0;
    while (i < sets->n_missing && strcmp(sets->missing[i], metric) != 0)
        i++;
    if (i == sets->n_missing && i < OCC_PM_MISSING_MAX)
        sets->missing[sets->n_missing++] = metric;
}

void occ_pm_sets_write_missing(const struct occ_pm_sets *sets, char text[OCC_PM_MISSING_BYTES])
{
    uint32_t n = sets->n_missing;
    char more[32] = "";
    if (n > 1)
        (void)snprintf(more, sizeof more, " and %u more", n - 1);
    (void)snprintf(text, OCC_PM_MISSING_BYTES, "%s%s", n > 0 ? sets->missing[0] : "", more);
}

static enum occ_source_state open_set(struct occ_pm_sets *sets, const struct target *target, uint32_t at,
                                      struct occ_error *err)
{
    return occ_pm_configure(target->library, target->chip, target->availability, &sets->set[at],
                            &sets->host[at], err);
}

/* Leaves out metrics that this GPU does not count, or not in the same pass as the metrics before them. */
static enum occ_source_state open_reduced(struct occ_pm_sets *sets, const struct target *target, uint32_t at,
                                          const struct occ_counter_set *wanted)
{
    struct occ_counter_set *set = &sets->set[at];
    set->n = 0;
    for (uint32_t i = 0; i < wanted->n; i++) {
        set->metric[set->n] = wanted->metric[i];
        set->counter[set->n++] = wanted->counter[i];
        if (open_set(sets, target, at, NULL) == OCC_SOURCE_OK) {
            occ_cupti_host_close(&sets->host[at]);
        } else {
            set->n--;
            add_missing(sets, wanted->metric[i]);
        }
    }
    return set->n > 0 ? open_set(sets, target, at, NULL) : OCC_SOURCE_NOT_SUPPORTED;
}

static enum occ_source_state add_set(struct occ_pm_sets *sets, const struct target *target,
                                     const struct occ_counter_set *wanted,
                                     bool (*is_useful)(const struct occ_counter_set *set),
                                     struct occ_error *err)
{
    uint32_t at = sets->n;
    sets->set[at] = *wanted;
    enum occ_source_state state = open_set(sets, target, at, err);
    if (state != OCC_SOURCE_OK && open_reduced(sets, target, at, wanted) == OCC_SOURCE_OK)
        state = OCC_SOURCE_OK;
    if (state == OCC_SOURCE_OK && !is_useful(&sets->set[at])) {
        char missing[OCC_PM_MISSING_BYTES];
        occ_pm_sets_write_missing(sets, missing);
        occ_cupti_host_close(&sets->host[at]);
        (void)occ_fail(err, OCC_E_INVALID, "%s lacks %s", target->chip, missing);
        state = OCC_SOURCE_NOT_SUPPORTED;
    }
    sets->n += state == OCC_SOURCE_OK;
    return state;
}

enum occ_source_state occ_pm_sets_configure(struct occ_pm_sets *sets, const struct occ_pm_library *library,
                                            const char *chip, const struct occ_cupti_image *availability,
                                            struct occ_error *err)
{
    const struct target target = {library, chip, availability};
    const struct occ_chip_sets *row = occ_chip_sets_find(chip), *smallest = occ_chip_sets_find("");
    enum occ_source_state state = add_set(sets, &target, row->sets[0], has_occupancy, err);
    if (state != OCC_SOURCE_OK && row != smallest)
        state = add_set(sets, &target, smallest->sets[0], has_occupancy, NULL);
    for (uint32_t i = 1; i < row->n && state == OCC_SOURCE_OK; i++)
        (void)add_set(sets, &target, row->sets[i], has_extra_counters, NULL);
    return state;
}

void occ_pm_sets_free(struct occ_pm_sets *sets)
{
    for (uint32_t i = 0; i < OCC_SETS_MAX; i++)
        occ_cupti_host_close(&sets->host[i]);
}
