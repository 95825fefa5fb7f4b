/* The layer and the family of a launch, for verdicts on groups (compare/levels.h). Pure; any thread. */
#pragma once

#include "support/arena.h"

/* The layer of a range: its path without operators inside of layers and without numbers of siblings, and its
 * phase: "Net/Block_3/Linear_7/aten::addmm" -> "Net/Block/Linear". NULL: the range is not known. */
const char *side_layer(const char *range, const char *phase, struct occ_arena *texts);

/* The family of a kernel: "GEMM", "batch norm backward"; of an unknown kernel its name. */
const char *side_family(const char *demangled, struct occ_arena *texts);
