/* Demangled names of kernels. Pure apart from malloc; any thread. */
#pragma once

/* Both names are malloc'ed and sanitised, since names come from traced programs. A name that is not mangled
 * stays as it is. 0 or OCC_E_NO_MEMORY. */
int occ_demangle(const char *mangled, char **ret_demangled, char **ret_short);

/* The function's own name in a demangled name: after the last blank or "::" outside of brackets, before its
 * template arguments and parameters. */
void occ_demangled_base(const char *name, const char **ret_begin, const char **ret_end);

/* The position after the bracket that closes the one at `s`, or the end of the text. A ">" inside parentheses
 * compares: "enable_if<((8)>(0)), void>". "->" and "operator<" directly inside template arguments are not
 * recognized, since they are rare in names of kernels. */
const char *occ_demangled_skip_brackets(const char *s);
