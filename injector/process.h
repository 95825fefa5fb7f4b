/* PROCESS records: this process as it describes itself. Called before the helper exists. */
#pragma once

#include "env.h"
#include "ring/producer.h"

/* false: the log is full. `get` is secure_getenv except in tests. */
bool occ_process_log(struct occ_ring_producer *ring, const struct occ_env *env,
                     char *(*get)(const char *name));
/* Writes the libcupti in use; `note`: see tracing.h; `is_exact`: exact measurement has started. false: the
 * log is full. */
bool occ_process_log_cupti(struct occ_ring_producer *ring, const char *path, const char *note, bool is_exact);
