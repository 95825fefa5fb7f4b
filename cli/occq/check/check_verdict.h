/* The verdict about the checked side: its GPU time, findings, and the part that grew. One thread (stdio). */
#pragma once

#include "answer/answer.h"
#include "cli/sides/sides.h"

struct check_verdict {
    struct occ_overview overview[DIFF_SIDES];
    bool is_known[DIFF_SIDES]; /* false: the side has no GPU time, or no filter describes its runs */
    double runs[DIFF_SIDES];
    double work; /* of B / A's, by numbers of launches (compare/work.h); NaN: not known */
};

/* Asks the histories of both sides; of B alone without a baseline. Free with check_verdict_free(), also after
 * a failure. */
int check_verdict_ask(const struct sides *sides, struct check_verdict *ret_verdict, struct occ_error *err);
void check_verdict_free(struct check_verdict *verdict);

/* Prints the GPU time, the part that grew most per run, and the first findings. */
void check_verdict_print(FILE *out, const struct check_verdict *verdict, const char *title);
