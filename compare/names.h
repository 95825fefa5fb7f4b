/*
 * Names of kernels without the numbers that compilers and code generators change with every build. Pure; any
 * thread.
 */
#pragma once

#include <stdbool.h>

/*
 * Copies the name without hashes of anonymous namespaces (_GLOBAL__N__..., _INTERNAL_...) and static
 * functions (__nv_static_...), numbers of lambdas (#3}), ABI tags ([abi:v2]), the trailing counter of
 * Inductor's kernels (triton_..._17) and hexadecimal suffixes of 8 digits or more. `loose`: also without tile
 * sizes (64x64_32x6) and integer template arguments. `out` holds as many bytes as `demangled` with its NUL.
 */
void diff_normalise_name(const char *demangled, bool loose, char *out);
