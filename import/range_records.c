/* See range_records.h. */
#include "range_records.h"

#define COMPARE(member)                                                                                      \
    if (a->member != b->member)                                                                              \
    return a->member < b->member ? -1 : 1

int occ_compare_events(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    COMPARE(process);
    COMPARE(thread);
    COMPARE(start_ns);
    COMPARE(is_call);
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1; /* the outer range first */
    COMPARE(order);
    return 0;
}

int occ_compare_links(const void *left, const void *right)
{
    const struct link *a = left, *b = right;
    COMPARE(process);
    COMPARE(sequence);
    COMPARE(start_ns);
    COMPARE(is_backward);
    COMPARE(thread);
    COMPARE(place);
    return 0;
}

int occ_compare_origins(const struct occ_import_origin *a, const struct occ_import_origin *b)
{
    COMPARE(is_node);
    COMPARE(process);
    COMPARE(id);
    return 0;
}

int occ_compare_ends(const void *left, const void *right)
{
    const struct end *a = left, *b = right;
    int order = occ_compare_origins(&a->origin, &b->origin);
    if (order != 0)
        return order;
    COMPARE(is_launch);
    return 0;
}

int occ_compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    COMPARE(launch);
    return 0;
}
