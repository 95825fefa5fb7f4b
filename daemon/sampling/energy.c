/* See energy.h. */
#include "energy.h"

#include <math.h>
#include <stddef.h>

#define SECOND_NS INT64_C(1000000000)
#define RETRY_NS  (60 * SECOND_NS)
/* A rate over minutes would show the energy of a longer time as power. */
#define PAUSE_NS (10 * SECOND_NS)
#define STEP_NS  (SECOND_NS / 2) /* a larger difference of two clocks means that one was set */

static void begin_anew(struct occ_energy *e, uint64_t mj, int64_t now_ns, int64_t monotonic_ns)
{
    e->has_last = true;
    e->last_ns = e->from_ns = now_ns;
    e->last_monotonic_ns = monotonic_ns;
    e->last_mj = mj;
    e->mj = 0;
}

/* Opens the counter and reads it. */
static bool read_counter(struct occ_energy *e, int64_t monotonic_ns, uint64_t *ret_mj)
{
    if (!e->counter && e->kind && monotonic_ns >= e->retry_ns) {
        e->counter = e->kind->open(e->uuid);
        e->retry_ns = monotonic_ns + RETRY_NS;
    }
    if (!e->counter)
        return false;
    if (e->kind->read(e->counter, ret_mj))
        return true;
    occ_energy_close(e);
    e->has_last = false; /* the driver may start again, and its counter with it */
    return false;
}

/* True if the energy since the last reading is known. */
static bool continues(const struct occ_energy *e, uint64_t mj, int64_t now_ns, int64_t monotonic_ns)
{
    int64_t passed_ns = now_ns - e->last_ns,
            difference_ns = passed_ns - (monotonic_ns - e->last_monotonic_ns);
    return e->has_last && passed_ns > 0 && passed_ns <= OCC_ENERGY_GAP_NS && difference_ns < STEP_NS &&
           difference_ns > -STEP_NS && mj >= e->last_mj &&
           (double)(mj - e->last_mj) * 1e6 / (double)passed_ns <= OCC_ENERGY_POWER_MAX_W;
}

bool occ_energy_poll(struct occ_energy *e, int64_t now_ns, int64_t monotonic_ns,
                     struct occ_energy_second *ret_second)
{
    uint64_t mj = 0;
    int64_t end_ns = now_ns / SECOND_NS * SECOND_NS;
    if ((e->has_last && end_ns <= e->last_ns && now_ns >= e->last_ns) || now_ns <= 0 ||
        !read_counter(e, monotonic_ns, &mj))
        return false;
    if (!continues(e, mj, now_ns, monotonic_ns)) {
        begin_anew(e, mj, now_ns, monotonic_ns);
        return false;
    }
    double more_mj = (double)(mj - e->last_mj);
    double before = (double)(end_ns - e->last_ns) / (double)(now_ns - e->last_ns);
    *ret_second = (struct occ_energy_second){.second = end_ns / SECOND_NS - 1,
                                             .length_ns = end_ns - e->from_ns,
                                             .mj = llround(e->mj + more_mj * before)};
    e->has_total = true;
    e->total_mj += now_ns - e->last_ns <= PAUSE_NS ? more_mj : 0;
    begin_anew(e, mj, now_ns, monotonic_ns);
    e->from_ns = end_ns;
    e->mj = more_mj * (1 - before);
    return true;
}

void occ_energy_close(struct occ_energy *e)
{
    if (e->counter)
        e->kind->close(e->counter);
    e->counter = NULL;
}
