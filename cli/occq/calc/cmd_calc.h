/* occq calc's table. */
#ifndef OCC_CALC_CMD_CALC_H
#define OCC_CALC_CMD_CALC_H

#include "cli/options.h"

extern const struct cli_command cli_calc;

#endif
