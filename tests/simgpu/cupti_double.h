/* Common declarations of the CUPTI double's files. See cupti_activity.c for the path of records. */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cupti.h>
#pragma GCC visibility pop

#include "hook.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest record of any version. */
#define SIM_RECORD_MAX_BYTES 256

/* ---- cupti_version.c: the difference between the builds of this library ---- */
extern const uint32_t sim_cupti_built_version;

/* ---- cupti_common.c ---- */
/* The version that this process sees, see OCCSIM_CUPTI_VERSION. */
uint32_t sim_cupti_version(void);
/* Stores a failure for cuptiGetLastError and returns `result`. */
CUptiResult sim_cupti_result(CUptiResult result);
/* libcupti registers exit handlers when it is loaded and with the first context, and destroys its state in
 * them. Here a later call of a client aborts the program; records and buffers are dropped. */
bool sim_cupti_is_torn_down(void);
void sim_cupti_follow_context(void);
void sim_cupti_enter(const char *function);
/* The same for calls that may break a stream's capture: during a capture they abort the program too. */
void sim_cupti_enter_uncaptured(const char *function);
/* Finds and hooks the driver at the first call; NULL: no simulated driver. */
const struct sim_driver *sim_cupti_driver(void);
/* False without a device: CUPTI calls then return "unknown error" (seen with 13.0.85 on drivers 550 and 580).
 */
bool sim_cupti_has_device(void);
/* The driver's time; CLOCK_REALTIME without a driver. */
uint64_t sim_cupti_now(void);

/* ---- cupti_records.c ---- */
/* Returns the bytes of a kind's record in this version of the library; 0: a kind without records here. */
size_t sim_record_bytes(CUpti_ActivityKind kind, uint32_t version);
/* Writes one record of `kind` for an activity; returns its length. `to` has SIM_RECORD_MAX_BYTES. */
size_t sim_record_write(const struct sim_activity *activity, CUpti_ActivityKind kind, uint32_t version,
                        uint8_t *to);
/* Change or read start and end of a record in place; all kinds but EXTERNAL_CORRELATION have both. */
void sim_record_set_times(uint8_t *record, uint64_t start_ns, uint64_t end_ns);
void sim_record_times(const uint8_t *record, uint64_t *ret_start_ns, uint64_t *ret_end_ns);

/* ---- cupti_range.c ---- */
/* Returns true if the profiler's own kernel ran before this one; `wait` is its activity. ret_is_measured: a
 * kernel of a context with a session. */
bool sim_range_activity(const struct sim_activity *activity, struct sim_activity *wait,
                        bool *ret_is_measured);
/* Waits for outstanding work of a measured context, and for launches of other threads. */
void sim_range_before_launch(CUcontext context);
void sim_range_after_launch(void);

/* ---- cupti_client.c ---- */
/* Begins or ends a session of another client of the program, if one is due. */
void sim_client_before_launch(void);

/* ---- cupti_activity.c ---- */
/* without_times: the record has start = end = 0. */
void sim_cupti_activity(const struct sim_activity *activity, bool without_times);
void sim_cupti_stop(void);
