/* POSIX extended regular expressions that compile and match in bounded memory, and match in polynomial time.
 * One thread per expression. */
#pragma once

#include <stdbool.h>

#include "error.h"

struct occ_regexp;

/* Compiles an expression; the caller frees *ret_regexp. OCC_E_INVALID: not an expression (with the message of
 * regerror(3)); a back-reference, which takes exponential time to match; or more than OCC_REGEXP_MAX_NODES
 * nodes once repetitions are written out as regcomp(3) does: "a++++" has 16 times "a". */
enum { OCC_REGEXP_MAX_NODES = 1000, OCC_REGEXP_MAX_DEPTH = 64, OCC_REGEXP_MAX_TEXT = 512 };
int occ_regexp_compile(const char *pattern, struct occ_regexp **ret_regexp, struct occ_error *err);
/* NULL is fine. */
void occ_regexp_free(struct occ_regexp *regexp);

/* True if the first OCC_REGEXP_MAX_TEXT bytes of the text match. "$" matches at the end of the whole text
 * only. */
bool occ_regexp_matches(struct occ_regexp *regexp, const char *text);
