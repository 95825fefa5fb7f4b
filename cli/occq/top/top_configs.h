/* Names of launch configurations in `occq top --by config`. One thread. */
#pragma once

#include "cli/history/names.h"
#include "store/top.h"
#include "support/arena.h"

/* Names configurations by the names of their kernels: "matmul<64> 8x4x1/128x1x1", in words "GEMM 64x64 nn
 * 8x4x1/128x1x1". Texts belong to the arena. Returns false without memory. */
bool top_name_configs(const struct kernel_names *names, struct occ_top *top, struct occ_arena *texts);
