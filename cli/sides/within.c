/* Groups of a comparison within larger groups with the same change; see verdicts.h. Pure; any thread. */
#include "verdicts.h"

enum { NESTED_MAX = 32 }; /* changed groups that are looked for within each other */
#define WITHIN 0.9        /* part of a group's time that is another group's, too */

static double time_of(const struct diff_group *group)
{
    return (double)group->total_ns[DIFF_A] + (double)group->total_ns[DIFF_B];
}

/* True if at least WITHIN of the part's time is the whole's, too. */
static bool is_within(const struct diff_report *r, const struct diff_group *part,
                      const struct diff_group *whole)
{
    const struct diff *diff = r->diff;
    double all = 0, common = 0;
    for (uint32_t i = 0; i < diff->n_pairs; i++) {
        const struct diff_pair *pair = &diff->pairs[i];
        if (!diff_group_has(diff, &r->levels, part, pair))
            continue;
        double ns = (double)pair->sums[DIFF_A].total_ns + (double)pair->sums[DIFF_B].total_ns;
        all += ns;
        common += diff_group_has(diff, &r->levels, whole, pair) ? ns : 0;
    }
    return all > 0 && common >= WITHIN * all;
}

static bool is_changed(const struct diff_group_line *line)
{
    return diff_is_change(line->group->verdict);
}

void diff_find_within(const struct diff_report *r, struct diff_group_line *lines)
{
    size_t n = r->levels.n;
    struct diff_group_line *changed[NESTED_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n && count < NESTED_MAX; i++)
        if (is_changed(&lines[i]))
            changed[count++] = &lines[i];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const struct diff_group *part = changed[i]->group, *whole = changed[k]->group;
            double own = time_of(part), around = time_of(whole);
            bool is_larger = around > own || (around >= own && k < i);
            double known = changed[i]->within ? time_of(changed[i]->within->group) : 0;
            if (k != i && is_larger && around > known && part->verdict == whole->verdict &&
                is_within(r, part, whole))
                changed[i]->within = changed[k];
        }
    for (size_t i = 0; i < count; i++)
        while (changed[i]->within && changed[i]->within->within)
            changed[i]->within = changed[i]->within->within;
}
