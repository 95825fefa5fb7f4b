/*
 * The time of the simulation, in ns since the epoch.
 *
 * real     CLOCK_REALTIME; waits for the device sleep until the device's time
 * ahead    CLOCK_REALTIME, but no wait sleeps: the device may be ahead of the clock
 * virtual  starts at SIM_CLOCK_EPOCH_NS and moves only with the program's calls: the same program gets
 *          the same timestamps (with one thread)
 *
 * Any thread.
 */
#pragma once

#include <stdint.h>

#define SIM_CLOCK_EPOCH_NS UINT64_C(1700000000000000000)

uint64_t sim_clock_now(void);

/* Spends the time of a host action: moves virtual time only. */
void sim_clock_spend(uint64_t ns);

/* Lets the host wait until the device reaches `ns`. */
void sim_clock_wait_until(uint64_t ns);
