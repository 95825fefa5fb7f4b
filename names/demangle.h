/* Demangled names of kernels. Pure apart from malloc; any thread. */
#pragma once

/* Sets the demangled name, and the function's own name without scope, arguments and parameters (at most 256
 * bytes). Both are sanitised, since names come from traced programs; the caller frees them. A name that is
 * not mangled, or too long when demangled (16 KiB), stays mangled. Returns 0 or OCC_E_NO_MEMORY; then neither
 * is set. */
int occ_demangle(const char *mangled, char **ret_demangled, char **ret_short);

/* Finds the function's own name in a demangled name: after the last blank or "::" outside of brackets, before
 * its template arguments and parameters. Empty (*ret_begin == *ret_end) if there is none. */
void occ_demangled_base(const char *name, const char **ret_begin, const char **ret_end);

/* Returns the position after the bracket that closes the bracket at `s`, or the end of the text. A ">" inside
 * parentheses compares: "enable_if<((8)>(0)), void>". "->" and "operator<" directly inside template arguments
 * are not recognized, since they are rare in names of kernels. */
const char *occ_demangled_skip_brackets(const char *s);
