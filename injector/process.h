/* The PROCESS record: what this process is, in its own words. Called once, before the helper exists. */
#ifndef OCC_INJECTOR_PROCESS_H
#define OCC_INJECTOR_PROCESS_H

#include "env.h"
#include "ring/ring.h"

/* False: the log is full. `get` is secure_getenv but in tests. */
bool occ_process_log(struct occ_ring_producer *ring, const struct occ_env *env,
                     char *(*get)(const char *name));

#endif
