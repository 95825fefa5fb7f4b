/*
 * The guest's side of --exact: libocctrace-exact.so beside our own library, opened only when $OCCTRACE_EXACT
 * asks for it. Thread: the one that initialises CUDA.
 */
#pragma once

#include "exact/exact.h"

struct occ_exact_client {
    const struct occ_exact_library *call; /* valid if `run` is */
    struct occ_exact *run;                /* NULL: nothing is measured */
};

/* Starts measuring; `self` is the path of our own library. The reason: what happens, or why `run` stays
 * NULL. */
void occ_exact_client_start(struct occ_exact_client *client, const char *self, const struct occ_cupti *cupti,
                            char reason[OCC_REASON_BYTES]);
