/* Rules of the build gate: a build against its pins. One thread. */
#pragma once

#include "cli/gate/gate.h"
#include "cli/rules/judge.h"

struct pin_terms {
    const struct pins *lock;
    const struct gate_build *build;
    const struct pin_pairs *pairs; /* of the lock and the build */
    const struct gate_recorded *recorded;
    int64_t now_s; /* seconds since 1970 */
};

/* A judgement with a result for each of PIN_RULES. `texts` owns texts of its findings. *ret_changed: kernels
 * that differ from their pins and break no rule. */
int judge_pins(const struct pin_terms *terms, struct occ_arena *texts, struct judgement *ret_judgement,
               size_t *ret_changed, struct occ_error *err);
