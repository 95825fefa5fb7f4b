/* Other forms of occq runs. */
#pragma once

#include "cli/options.h"

extern const struct cli_command cli_runs_info;
