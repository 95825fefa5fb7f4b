/*
 * The measured waterfall; waterfall.h has the formulas and the picture. Threads: any.
 */
#include "waterfall.h"

#include <math.h>

/* What no counter can have said was not measured. */
#define MOST_RATIO  2.0    /* twice what is possible; noise and rounding stay far below */
#define MOST_BLOCKS 4096.0 /* per SM */

static double sane(double value, double most)
{
    return value >= 0 && value <= most ? value : (double)NAN;
}

/* Two of elapsed = achieved * active give the third. */
static void complete(double elapsed, double *achieved, double *active)
{
    if (isnan(*active) && *achieved > 0)
        *active = sane(elapsed / *achieved, MOST_RATIO);
    else if (isnan(*achieved) && *active > 0)
        *achieved = sane(elapsed / *active, MOST_RATIO);
}

#define ROUNDING 1e-12 /* what differences of equal levels may leave */

/* A part from one level to the next. */
static void step(struct occ_waterfall *w, enum occ_part part, double *level, double next)
{
    double size = *level - next;
    w->part[part] = fabs(size) < ROUNDING ? 0 : size;
    *level = next;
}

static void measured_parts(const struct occ_result *result, const struct occ_measurement *m, double level,
                           struct occ_waterfall *w)
{
    double elapsed = w->used, achieved = sane(m->achieved, MOST_RATIO);
    double active = sane(m->sm_active, MOST_RATIO), blocks = sane(m->resident_blocks, MOST_BLOCKS);
    double most_warps = result->max_warps_per_sm;
    complete(elapsed, &achieved, &active);
    if (!isnan(active))
        step(w, OCC_PART_IDLE, &level, active * result->expected_achieved);
    if (!isnan(active) && !isnan(achieved)) {
        double warps = active * achieved;
        if (isnan(blocks) || most_warps <= 0) {
            step(w, OCC_PART_IMBALANCE, &level, warps);
        } else {
            step(w, OCC_PART_BETWEEN, &level, active * blocks * result->warps_per_block / most_warps);
            step(w, OCC_PART_WITHIN, &level, warps);
        }
    }
    step(w, OCC_PART_UNEXPLAINED, &level, elapsed);
}

void occ_explain(const struct occ_result *result, const struct occ_measurement *measurement,
                 struct occ_waterfall *ret_waterfall)
{
    struct occ_waterfall w = {
        .used = result->expected_elapsed, .error = (double)NAN, .source = OCC_FROM_MODEL};
    double level = 1;
    for (int i = 0; i < OCC_PART_COUNT; i++)
        w.part[i] = (double)NAN;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        if (i == OCC_CAUSE_PARTIAL_WARP)
            continue;
        w.part[i] = result->cause[i];
        level -= result->cause[i];
    }
    if (measurement && measurement->source != OCC_FROM_MODEL &&
        !isnan(sane(measurement->elapsed, MOST_RATIO))) {
        w.source = measurement->source;
        w.used = measurement->elapsed;
        w.error = OCC_ERRORS_OF_95_PERCENT * sane(measurement->elapsed_error, MOST_RATIO);
        measured_parts(result, measurement, level, &w);
    }
    *ret_waterfall = w;
}

enum occ_limit occ_most_stalled(const struct occ_measurement *measurement)
{
    double most = OCC_STALL_LEAST;
    enum occ_limit found = OCC_LIMIT_COUNT;
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++)
        if (measurement->stall[i] > most) {
            most = measurement->stall[i];
            found = (enum occ_limit)i;
        }
    return found;
}

/* ---- words ---- */

static const struct {
    const char *word, *text, *above;
    enum occ_advice_kind advice;
} measured_causes[] = {
#define X(name, word, text, above, advice) {word, text, above, OCC_##advice},
    OCC_MEASURED_CAUSES(X)
#undef X
};

const char *occ_part_word(unsigned part)
{
    if (part < OCC_CAUSE_COUNT)
        return occ_cause_word((enum occ_cause)part);
    return part < OCC_PART_COUNT ? measured_causes[part - OCC_CAUSE_COUNT].word : "unknown";
}

const char *occ_part_text(unsigned part, double ratio)
{
    if (part < OCC_CAUSE_COUNT)
        return occ_cause_text((enum occ_cause)part);
    if (part >= OCC_PART_COUNT)
        return "unknown";
    return ratio < 0 ? measured_causes[part - OCC_CAUSE_COUNT].above
                     : measured_causes[part - OCC_CAUSE_COUNT].text;
}

static const struct {
    const char *word, *text;
} value_sources[] = {
#define X(name, word, text) {word, text},
    OCC_VALUE_SOURCES(X)
#undef X
};

const char *occ_value_source_word(enum occ_value_source source)
{
    return (unsigned)source < OCC_FROM_COUNT ? value_sources[source].word : "unknown";
}

const char *occ_value_source_text(enum occ_value_source source)
{
    return (unsigned)source < OCC_FROM_COUNT ? value_sources[source].text : "unknown";
}

enum occ_advice_kind occ_part_advice(unsigned part)
{
    static const enum occ_advice_kind of_cause[OCC_CAUSE_COUNT] = {
        [OCC_CAUSE_REGISTERS] = OCC_ADVICE_REGISTERS,   [OCC_CAUSE_SMEM] = OCC_ADVICE_SMEM,
        [OCC_CAUSE_CARVEOUT] = OCC_ADVICE_CARVEOUT,     [OCC_CAUSE_BARRIERS] = OCC_ADVICE_BARRIERS,
        [OCC_CAUSE_CLUSTER] = OCC_ADVICE_CLUSTER,       [OCC_CAUSE_BLOCKS] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_CAUSE_BLOCK_SIZE] = OCC_ADVICE_BLOCK_SIZE, [OCC_CAUSE_PARTIAL_WARP] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_CAUSE_SMALL_GRID] = OCC_ADVICE_FILL_WAVE,  [OCC_CAUSE_TAIL] = OCC_ADVICE_GRID_UP,
    };
    if (part < OCC_CAUSE_COUNT)
        return of_cause[part];
    return part < OCC_PART_COUNT ? measured_causes[part - OCC_CAUSE_COUNT].advice : OCC_ADVICE_COUNT;
}
