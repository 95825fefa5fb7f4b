/*
 * Asks the CUDA driver for the result of its start after CUPTI refused to record: the driver calls the guest
 * before the result is known, and CUPTI reports "unknown error" on a machine without a GPU.
 *
 * A separate thread asks, since a driver call inside InitializeInjection would wait for itself. The thread
 * ends with the driver's answer. The program's exit and the program's next fork(2) wait a bounded time for
 * the thread: a child would inherit the driver's locks that the thread holds.
 */
#pragma once

#include "guest.h"

/* STARTING -> ASKING, later QUIET; QUIET at once if no thread can be started. `reason` is the guest's. */
void occ_ask_start(struct occ_guest *guest, const char *reason);

/* Called by the thread that is about to fork. If the driver has not been asked yet, the question is called
 * off. Otherwise the fork waits for the answer, once and at most 0.5 s, since the driver may hang.
 * Async-signal-safe. */
void occ_ask_before_fork(struct occ_guest *guest);

/* Called by the exiting thread: waits for the answer at most 0.5 s, and not beyond `exit_ns` of
 * CLOCK_MONOTONIC. If the driver has not answered by then, the asking thread no longer touches the guest or
 * the ring. */
void occ_ask_finish(struct occ_guest *guest, uint64_t exit_ns);
