/* Lists of commands that `occq report` shows too; `selection`, `filter` and `number` are the caller's.
 * Constants.
 */
#ifndef OCC_OCCQ_LISTS_H
#define OCC_OCCQ_LISTS_H

#include "sql_table.h"

extern const struct sql_list runs_list, info_list;

#endif
