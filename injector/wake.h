/* Waking the helper: a counter that it sleeps on (futex(2)); no descriptor that the program could close. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds one and wakes all sleepers. Any thread; async-signal-safe; errno may change. */
void occ_wake(_Atomic uint32_t *counter);

/* Sleeps until the counter differs from `seen` or `timeout_ns` have passed; may return earlier. */
void occ_wake_wait(_Atomic uint32_t *counter, uint32_t seen, uint64_t timeout_ns);

/* Sleeps until the counter is not 0, at most until `limit_ns` of CLOCK_MONOTONIC. False: the counter is 0. */
bool occ_wake_await(_Atomic uint32_t *counter, uint64_t limit_ns);
