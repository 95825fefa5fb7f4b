/*
 * Asks the CUDA driver how its own start went, where CUPTI refused to record: the driver calls the guest
 * before it knows, and CUPTI says "unknown error" of a machine without a GPU.
 *
 * A thread asks, since a call of the driver inside InitializeInjection would wait for itself. It ends when it
 * has the answer; the program's end waits for it a bounded time.
 */
#pragma once

#include "guest.h"

/* STARTING -> ASKING, later QUIET; QUIET at once if no thread can be had. `reason` is the guest's. */
void occ_ask_start(struct occ_guest *guest, const char *reason);

/* By the exiting thread: waits for the answer at most 0.5 s. A thread that still asks then touches nothing of
 * the guest any more, and the ring stays as it is. */
void occ_ask_finish(struct occ_guest *guest);
