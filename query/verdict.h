/* The question "verdict": the use of the GPU time and the changes that save most, without rows. "occq top"
 * has both around its table. */
#pragma once

#include "cli/options.h"

extern const struct cli_command query_verdict;
