/* Text requests (support/control.h): parsing, and the answer about the sampler. No sockets. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/sampler.h"
#include "support/error.h"

enum occ_request_kind {
    OCC_REQUEST_PING,
    OCC_REQUEST_FLUSH,
    OCC_REQUEST_STATUS,
    OCC_REQUEST_HISTORY,
    OCC_REQUEST_REFUSALS,
    OCC_REQUEST_COVERAGE,
    OCC_REQUEST_SAMPLER,
    OCC_REQUEST_PAUSE,
    OCC_REQUEST_RESUME,
    OCC_REQUEST_PAUSE_RUN,
    OCC_REQUEST_RESUME_RUN,
};

struct occ_request {
    enum occ_request_kind kind;
    char session[33]; /* argument of flush */
    /* argument of history, refusals and coverage (index), sampler (GPU), pause (seconds), pause_run and
     * resume_run (pid) */
    uint64_t number;
};

/* OCC_E_INVALID: not a valid request; the message is the answer to the client. */
int occ_request_parse(const char *text, struct occ_request *ret_request, struct occ_error *err);

/* true if a peer of user `uid` may command a daemon of user `own`. */
bool occ_control_may_command(uint32_t uid, uint32_t own);

/* Buffer of `size` bytes for an answer, which is cut to fit, with its NUL. */
struct occ_answer {
    char *text;
    size_t size;
};
#define OCC_ANSWER(answer, ...) occ_text_append((answer)->text, (answer)->size, "", __VA_ARGS__)

/* Writes the answer to a "sampler" request, at most `size` bytes with its NUL. */
void occ_control_sampler(struct occ_sampler *sampler, uint64_t gpu, char *answer, size_t size);
