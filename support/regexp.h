/* POSIX extended regular expressions that compile in bounded memory and time, and match in polynomial time.
 * Any threads. */
#pragma once

#include <regex.h>

#include "error.h"

/* regfree() if it succeeds. OCC_E_INVALID: none (regerror(3)'s words), one with a back-reference, whose
 * matching takes exponential time, or one that is longer than OCC_REGEXP_MAX_NODES when its repetitions are
 * written out, as regcomp(3) does: "a++++" has 16 times "a". */
enum { OCC_REGEXP_MAX_NODES = 1000, OCC_REGEXP_MAX_DEPTH = 64 };
int occ_regexp_compile(const char *pattern, regex_t *ret_regex, struct occ_error *err);
