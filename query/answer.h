/*
 * Runs a command of occq and keeps its answer in memory instead of printing it. Commands have state of the
 * process (screen, notes, members of documents): callers take turns by query_lock(). One thread at a time.
 */
#pragma once

#include <stddef.h>

#include "options.h"

enum { QUERY_DOCUMENT_MAX = 256 << 20 };

struct query_answer {
    char *text;  /* the output; NULL: none. malloc'ed */
    char *notes; /* the lines for people; malloc'ed */
    int status;  /* exit status of the command */
};

/* Runs the command with the locale C.UTF-8, which is only this thread's and ends with the call. OCC_E_FULL:
 * the answer exceeds QUERY_DOCUMENT_MAX. Reorders the arguments. */
int query_run(struct query_options *options, struct query_answer *ret_answer, struct occ_error *err);
void query_answer_free(struct query_answer *answer);
