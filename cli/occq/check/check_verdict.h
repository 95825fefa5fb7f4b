/* The verdict about the checked side: its GPU time beside the baseline's, and findings. One thread (stdio).
 */
#pragma once

#include "cli/rules/judge.h"
#include "cli/sides/sides.h"

/* Prints the GPU time for the same work unless a rule's line has it, or the busy time without a baseline; if
 * a rule fails, also the parts of the GPU time, and the first findings. */
void check_verdict_print(FILE *out, const struct sides_gpu_time *time, double floor,
                         const struct judgement *judgement, const char *title);
