/*
 * Owners and families of kernels, by name. The names of kernels are the only evidence: a table of rules knows
 * the names of libraries, frameworks and generators. A kernel that no rule knows is OCC_OWNER_UNKNOWN, which
 * people read as "yours?": most such kernels are the program's own.
 *
 * Pure: no allocation, no state, time linear in the length of the name (OCC_OWNER_NAME_BYTES at most); any
 * thread. Names come from traced programs and may be hostile.
 */
#pragma once

#include <stdint.h>

#include "occupancy/owner.h"

enum {
    OCC_FAMILY_BYTES = 64,
    OCC_TILE_BYTES = 16,
    OCC_KERNEL_LABEL_BYTES = OCC_FAMILY_BYTES + OCC_TILE_BYTES + 16,
    OCC_OWNER_NAME_BYTES = 4096, /* rules read no more of a name */
};

struct occ_kernel_owner {
    enum occ_owner owner;
    const char *library; /* static text: "cuBLAS", "PyTorch"; "": no rule knows the kernel or its library */
    /* "GEMM", "elementwise add", "layer norm backward"; of an unknown kernel the function's name. A text that
     * is too long ends with an ellipsis. */
    char family[OCC_FAMILY_BYTES];
    uint32_t traits; /* enum occ_kernel_trait bits */
    /* the rest only for OCC_TRAIT_GEMM; "" and 0: not named */
    char tile[OCC_TILE_BYTES]; /* rows x columns of a block's part of the result: "128x64" */
    char layout[4];            /* "tn": first operand transposed, second not; a third letter is the result */
    uint16_t alignment;        /* alignment of the operands in elements: 1 for "align1" */
    uint16_t stages;           /* tiles of the operands in shared memory at once */
    uint16_t architecture;     /* compute capability that the kernel was written for: 80 for "sm80_" */
};

/* Finds the owner. `demangled`: a name from occ_demangle(), which stays mangled if it cannot be demangled, or
 * any other text. *ret_owner has no pointer into it. */
void occ_kernel_owner(const char *demangled, struct occ_kernel_owner *ret_owner);

/* Formats "GEMM 128x64 align1": family, tile, and an alignment of one element, which costs performance.
 * Returns `label`. */
const char *occ_kernel_label(const struct occ_kernel_owner *owner, char label[OCC_KERNEL_LABEL_BYTES]);

/* Return static texts: words for programs ("unknown", "user", "triton", "framework", "library",
 * "communication") and texts for people ("yours?", "yours", "Triton" ...). */
const char *occ_owner_word(enum occ_owner owner);
const char *occ_owner_text(enum occ_owner owner);
