/*
 * Resources of kernels in the output of `nvcc -Xptxas -v` or `ptxas -v`, in the forms of CUDA 4 to 13:
 *
 *   ptxas info    : Compiling entry function 'k' for 'sm_90'
 *   ptxas info    : Function properties for k
 *       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
 *   ptxas info    : Used 32 registers, used 1 barriers, 8 bytes cumulative stack size, 1024 bytes smem
 *
 * Older toolkits: no "used N barriers"; shared memory as "48+16 bytes smem" (the second part is the system's:
 * parameters on capability 1.x), "0 bytes lmem". All other lines are skipped: a text without kernels gives an
 * empty report. Functions that are not entry points have properties but no registers and are left out.
 *
 * Input is untrusted: numbers out of range, values without their kernel and lines above the maximum are
 * errors with the line's number. Errors as in image.h. Pure apart from malloc; any thread.
 */
#pragma once

#include "image.h"

#define OCC_PTXAS_MAX_BYTES   (UINT64_C(1) << 30) /* of the whole text */
#define OCC_PTXAS_MAX_LINE    65536               /* bytes of a line about a kernel; mangled names are long */
#define OCC_PTXAS_MAX_KERNELS 65536

struct occ_ptxas_kernel {
    char *name;  /* mangled; lives as long as the report */
    uint32_t sm; /* 90, also for sm_90a and sm_90f */
    char suffix; /* 'a' or 'f' of sm_90a; 0: none */
    uint32_t registers;
    uint32_t barriers;
    bool has_barriers; /* false: not in the text, and `barriers` is 0 */
    uint32_t static_smem_bytes;
    bool has_stack;             /* false: not in the text, and stack and spills are 0 */
    uint32_t stack_bytes;       /* frame per thread */
    uint32_t spill_store_bytes; /* per thread */
    uint32_t spill_load_bytes;
    uint32_t line; /* of "Compiling entry function", from 1 */
};

struct occ_ptxas {
    size_t count;
    struct occ_ptxas_kernel *kernels; /* in the text's order; a kernel appears once for each architecture */
};

/* `text` need not end with NUL. A text without kernels is a report with count 0. */
int occ_ptxas_read(const char *text, size_t size, struct occ_ptxas **ret_report, struct occ_image_error *err);

/* NULL is fine. */
void occ_ptxas_free(struct occ_ptxas *report);
