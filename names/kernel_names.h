/*
 * Names that tell kernels apart. If several kernels have the same short name, it gets the template arguments,
 * parts of lambdas, parameters or namespaces in which the kernels differ, from left to right, and of each
 * only the differing part:
 *
 *   matmul<64>                                          of matmul<64, 8>(float*) and matmul<32, 8>(float*)
 *   vectorized_elementwise_kernel<4,FillFunctor<float>>
 *   Kernel<…64x64_32x6_nn…>                             common parts of identifiers are left out
 *
 * "…" (UTF-8) stands for omitted text before and between; omitted arguments at the end have no mark.
 *
 * Pure apart from malloc; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct occ_kernel_name {
    int64_t id;                         /* unique */
    const char *short_name, *demangled; /* names from occ_demangle(), or any other text */
    char *name;  /* set by occ_kernel_names_distinguish(): at most 512 bytes; the caller frees it */
    char *words; /* set by occ_kernel_names_describe(); NULL: no rule knows the kernel; the caller frees it */
};

/* Sets all names; earlier names are not freed. No two are equal, the order of the kernels does not matter,
 * and a kernel with a unique short name keeps it. Names of kernels with equal full names end with " #ID".
 * Returns 0 or OCC_E_NO_MEMORY; then all names are NULL. */
int occ_kernel_names_distinguish(struct occ_kernel_name *kernels, size_t n);

/*
 * Sets words for people, for places that are too narrow for a name: family and tile (owners.h), and the words
 * of the name that tell the kernels of one family apart:
 *
 *   GEMM 64x64 align1 32x4 nn      of cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>
 *   radix sort Onesweep float      of cub::DeviceRadixSortOnesweepKernel<...>
 *   PyTorch concatenate #12        no word tells it apart: the number does
 *
 * Words have a blank. No two are equal, and none equals a name; the order of the kernels does not matter.
 * Call it after occ_kernel_names_distinguish(); earlier words are not freed. The time is about linear in the
 * length of all names (10 us a kernel). Returns 0 or OCC_E_NO_MEMORY; then all words are NULL.
 */
int occ_kernel_names_describe(struct occ_kernel_name *kernels, size_t n);

/* Returns true if `word`, of n bytes, is one of the words of the name, from which
 * occ_kernel_names_describe() chooses. */
bool occ_kernel_name_has_word(const char *demangled, const char *word, size_t n);
