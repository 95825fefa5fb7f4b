/*
 * What the virtual tables share: conditions on integer columns, narrowed to ranges as SQL compares. No state, any
 * thread. Compiled twice, as launch_table.h says.
 */
#ifndef OCC_STORE_TABLE_RANGE_H
#define OCC_STORE_TABLE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef OCC_SQLITE_EXTENSION
#include <sqlite3ext.h>
#else
#include <sqlite3.h>
#endif

struct occ_range {
    int64_t low, high; /* both inclusive; empty when low > high */
};

static inline bool occ_in_range(const struct occ_range *r, int64_t v)
{
    return v >= r->low && v <= r->high;
}

/* How a comparison travels from the planner to the scan: one letter; 0: not one of = > >= < <=. */
char occ_range_letter(int sqlite_operator);

/* Narrows the range by a comparison of an integer column with any value, as SQL defines it. */
void occ_range_narrow(struct occ_range *range, char letter, sqlite3_value *value);

#endif
