/* The PROCESS record: this process as it describes itself. Called once, before the helper exists. */
#ifndef OCC_INJECTOR_PROCESS_H
#define OCC_INJECTOR_PROCESS_H

#include "env.h"
#include "ring/ring.h"

/* False: the log is full. `get` is secure_getenv outside tests. */
bool occ_process_log(struct occ_ring_producer *ring, const struct occ_env *env,
                     char *(*get)(const char *name));

#endif
