/*
 * Asks the CUDA driver how its own start went, where CUPTI refused to record: the driver calls the guest
 * before it knows, and CUPTI says "unknown error" of a machine without a GPU.
 *
 * A thread asks, since a call of the driver inside InitializeInjection would wait for itself. It ends when it
 * has the answer. The program's end waits for it a bounded time, and so does the program's next fork(2): a
 * child would inherit the driver's locks that the thread holds.
 */
#pragma once

#include "guest.h"

/* STARTING -> ASKING, later QUIET; QUIET at once if no thread can be had. `reason` is the guest's. */
void occ_ask_start(struct occ_guest *guest, const char *reason);

/* By the thread that is about to fork. A thread that has not begun never asks; else the answer is waited for,
 * once and 0.5 s at most: the driver may hang. Async-signal-safe. */
void occ_ask_before_fork(struct occ_guest *guest);

/* By the exiting thread: waits for the answer at most 0.5 s, and not beyond `exit_ns` of CLOCK_MONOTONIC. A
 * thread that still asks then touches nothing of the guest any more, and the ring stays as it is. */
void occ_ask_finish(struct occ_guest *guest, uint64_t exit_ns);
