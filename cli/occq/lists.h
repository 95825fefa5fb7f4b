/* Lists of commands that `occq report` shows too; `selection`, `filter` and `number` are the caller's.
 * Constants.
 */
#pragma once

#include "sql_table.h"

extern const struct sql_list runs_list, info_list;
