/* The guest's environment variables (env.def), read once when CUDA is initialised, checked, and copied: the
 * program may change its environment at any time. An invalid value is ignored, except for the socket's; an
 * empty path is not set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"
#include "ring/ring_abi.h"

#define OCC_ENV_MAX_MS UINT64_C(31536000000) /* a year */

struct occ_env {
    bool disabled;
    char socket[108]; /* sun_path; "": not set, like the texts below */
    char cupti[4096];
    char label[256];
    char session[33];
    bool exact, nvtx;
    char log[4096];
    uint64_t budget; /* parts per million; 0: not set, like the next three */
    uint64_t delay_ms;
    uint64_t duration_ms;
    uint64_t launches;
    uint64_t ring_slots;
    uint64_t buffers;
    uint64_t buffer_bytes;
    uint32_t rejected; /* bit n: row n of env.def was set but invalid */
};

/* `get` is secure_getenv except in tests. */
void occ_env_read(struct occ_env *env, char *(*get)(const char *name));

/* true: $OCCTRACE_SOCKET is set but invalid. Its daemon is unknown, and no other one may get the records. */
bool occ_env_has_bad_socket(const struct occ_env *env);

/* Name of row n; NULL beyond the last one. */
const char *occ_env_name(unsigned int row);
