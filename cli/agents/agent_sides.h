/* Compares two sides for agents, both within the question's history. One thread. */
#pragma once

#include "cli/sides/sides.h"
#include "question.h"

/* Parses both sides and compares them; `a` NULL: only B is read. The caller frees the sides, also after a
 * failure. OCC_E_INVALID: a side is not words of SIDES_HELP, or names another history. */
int agent_sides_compare(const struct agent_question *question, const char *a, const char *b,
                        struct sides *sides, struct occ_error *err);
