/*
 * The answer of an OTLP server: how many points or profiles it rejected, and its message, as JSON. Another
 * body, such as a proxy's page, has neither. No state; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OCC_OTLP_MESSAGE_BYTES 200

struct occ_otlp_answer {
    uint64_t rejected;                    /* partialSuccess.rejectedDataPoints, .rejectedProfiles */
    char message[OCC_OTLP_MESSAGE_BYTES]; /* partialSuccess.errorMessage, or a failure's message; printable */
};

/* Parses `n` bytes of any text; *ret_answer is overwritten. */
void occ_otlp_answer_parse(const char *text, size_t n, struct occ_otlp_answer *ret_answer);
