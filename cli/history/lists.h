/* Lists of a history that a command of its own prints and `occq report` shows, with their columns;
 * `selection`, `filter` and `number` are the caller's. Constants.
 */
#pragma once

#include "sql_table.h"

/* Observed programs, the newest first. */
extern const struct cli_column runs_columns[];
extern const struct sql_list runs_list;

/* What the history holds: counts, sizes, the oldest and the newest. */
extern const struct cli_column info_columns[];
extern const struct sql_list info_list;
