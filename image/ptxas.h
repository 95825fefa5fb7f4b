/*
 * What `nvcc -Xptxas -v` (or `ptxas -v`) says about kernels, in the forms of CUDA 4 to 13:
 *
 *   ptxas info    : Compiling entry function 'k' for 'sm_90'
 *   ptxas info    : Function properties for k
 *       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
 *   ptxas info    : Used 32 registers, used 1 barriers, 8 bytes cumulative stack size, 1024 bytes smem, 364 bytes cmem[0]
 *
 * Older: no "used N barriers"; shared memory as "48+16 bytes smem" (the second is the system's: parameters on
 * capability 1.x), "0 bytes lmem". Newer toolkits add lines that are passed over, as are the compiler's warnings and
 * everything else that a build writes in between: text without a kernel is no error, it gives no kernels.
 * Functions that are not entry points have properties but no registers and are left out.
 *
 * The text is hostile until checked: numbers that do not fit and figures that miss their kernel are an error with the
 * line's number; lines over the limit are too. Errors as in image.h. Pure apart from malloc; any thread.
 */
#ifndef OCC_IMAGE_PTXAS_H
#define OCC_IMAGE_PTXAS_H

#include "image.h"

#define OCC_PTXAS_MAX_BYTES   (UINT64_C(1) << 30) /* of the whole text */
#define OCC_PTXAS_MAX_LINE    65536 /* of a line that speaks of a kernel; mangled names are long */
#define OCC_PTXAS_MAX_KERNELS 65536

struct occ_ptxas_kernel {
    const char *name; /* mangled; lives as long as the report */
    uint32_t sm;      /* 90, also for sm_90a and sm_90f */
    char suffix;      /* 'a' or 'f' of sm_90a; 0: none */
    uint32_t registers;
    uint32_t barriers; /* 0 when the toolkit does not say */
    bool has_barriers; /* the toolkit said */
    uint32_t static_smem_bytes;
    bool has_stack;             /* the toolkit said; without, stack and spills are 0 */
    uint32_t stack_bytes;       /* frame per thread */
    uint32_t spill_store_bytes; /* per thread */
    uint32_t spill_load_bytes;
    uint32_t line; /* of "Compiling entry function", from 1 */
};

struct occ_ptxas {
    size_t count;
    struct occ_ptxas_kernel *kernels; /* in the text's order; a kernel appears once for each architecture */
};

/* Reads a whole output; the text need not end with 0. `report` with count 0 is possible. */
int occ_ptxas_read(const char *text, size_t size, struct occ_ptxas **ret_report, struct occ_image_error *err);

/* NULL is fine. */
void occ_ptxas_free(struct occ_ptxas *report);

#endif
