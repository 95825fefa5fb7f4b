/* Demangled names of kernels. Pure apart from malloc; any thread. */
#ifndef OCC_SUPPORT_DEMANGLE_H
#define OCC_SUPPORT_DEMANGLE_H

/* Both are malloc'ed and sanitised (names come from traced programs); a name that is not mangled stays as it
 * is. 0 or OCC_E_NO_MEMORY. */
int occ_demangle(const char *mangled, char **ret_demangled, char **ret_short);

#endif
