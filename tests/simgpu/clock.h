/*
 * The time of the simulation, in ns since the epoch.
 *
 * real      CLOCK_REALTIME; who waits for the device sleeps until its time has come
 * ahead     CLOCK_REALTIME, but nobody waits: the device may be ahead of the clock
 * virtual   starts at SIM_CLOCK_EPOCH_NS and moves only with what the program asks for: the same program gets
 * the same stamps (with one thread)
 *
 * Any thread.
 */
#pragma once

#include <stdint.h>

#define SIM_CLOCK_EPOCH_NS UINT64_C(1700000000000000000)

uint64_t sim_clock_now(void);

/* The host did something that takes about so long: moves virtual time only. */
void sim_clock_spend(uint64_t ns);

/* The host waits for the device to reach `ns`. */
void sim_clock_wait_until(uint64_t ns);
