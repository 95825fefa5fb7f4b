/* Columns that tables have or lack: see warehouse.h. */
#include <stdio.h>
#include <string.h>

#include "tables.h"
#include "warehouse.h"

size_t occ_warehouse_names_length(const char *names, unsigned int n)
{
    const char *at = names;
    for (unsigned int i = 0; i < n && *at; i++)
        at += 1 + strcspn(at + 1, ",");
    return (size_t)(at - names);
}

#define QUOTED(column, ...) "'" #column "', "
/* Bit i + 1 for the i-th of the columns that the table has; '' is no column. 18.16 knows no column of a
 * subquery in a lambda. */
#define BITS(table, columns)                                                                                 \
    "groupBitOrIf(bitShiftLeft(toUInt64(1), toUInt8(indexOf([" columns(                                      \
        QUOTED) "''], name))), table = '" table "')"

/* The number of columns before the first one that the table lacks. */
static unsigned int leading(uint64_t bits)
{
    unsigned int n = 0;
    while (n < 63 && bits >> (n + 1) & 1)
        n++;
    return n;
}

int occ_warehouse_find_columns(struct occ_warehouse *w, struct occ_error *err)
{
    char sql[2048];
    uint64_t bits[5] = {0};
    (void)
        snprintf(
            sql, sizeof sql,
            "SELECT countIf(table = 'minute' AND name = 'evidence'), " BITS("run", OCC_SHIP_RUN_ADDED_COLUMNS) ", " BITS(
                "launch",
                OCC_SHIP_JOB_ADDED_COLUMNS) ", " BITS("minute",
                                                      OCC_SHIP_JOB_ADDED_COLUMNS) ", " BITS("hour",
                                                                                            OCC_SHIP_JOB_ADDED_COLUMNS) " FROM system.columns WHERE database = '%s' AND table IN ('run', 'launch', "
                                                                                                                        "'minute', 'hour')",
            w->options.database);
    int rc = occ_warehouse_ask_numbers(w, sql, bits, 5, err);
    w->has_evidence = bits[0] > 0;
    w->added = (struct occ_warehouse_added){.run = leading(bits[1]),
                                            .launch = leading(bits[2]),
                                            .minute = leading(bits[3]),
                                            .hour = leading(bits[4])};
    return rc;
}
