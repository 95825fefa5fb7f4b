/* Lists of a history with their columns, each printed by a command of its own and by `occq report`. The
 * caller sets `selection`, `filter` and `number`. Constants. */
#pragma once

#include "sql_table.h"

/* Observed programs, newest first. */
extern const struct cli_column runs_columns[];
extern const struct sql_list runs_list;

/* The history's content: counts, sizes, oldest and newest times. */
extern const struct cli_column info_columns[];
extern const struct sql_list info_list;
