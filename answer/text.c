/* Prints an overview in at most OCC_OVERVIEW_LINES lines; see answer.h. Pure. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "support/text.h"

/* ---- GPUs and busy time ---- */

/* Prints "NVIDIA B200", "2 x NVIDIA H100" or, for several models, "3 GPUs". */
static void gpus_text(const struct occ_overview *o, char *text, size_t size)
{
    const char *name = NULL;
    bool is_one_model = true;
    for (size_t i = 0; i < o->totals.n_kernels; i++) {
        const char *other = o->kernels[i].device_name;
        is_one_model = is_one_model && (!name || !other || strcmp(name, other) == 0);
        name = name ? name : other;
    }
    if (!is_one_model || !name)
        (void)snprintf(text, size, "%zu GPU%s", o->totals.n_gpus, o->totals.n_gpus == 1 ? "" : "s");
    else if (o->totals.n_gpus > 1)
        (void)snprintf(text, size, "%zu x %.60s", o->totals.n_gpus, name);
    else
        (void)snprintf(text, size, "%.60s", name);
}

static void busy_text(const struct occ_overview *o, char *text, size_t size)
{
    char gpus[80], time[32], unrecorded[32], rest[96] = "";
    const char *bound = o->is_busy_most && o->lost > 0 ? "about "
                        : o->is_busy_most              ? "at most "
                        : o->lost > 0                  ? "at least "
                                                       : "";
    double busy = o->time.communication + o->time.kernels;
    gpus_text(o, gpus, sizeof gpus);
    if (o->time.unrecorded_s > 0)
        (void)snprintf(
            rest, sizeof rest, ", %s not recorded",
            occ_format_duration(llround(o->time.unrecorded_s * 1e9), unrecorded, sizeof unrecorded));
    if (o->lost > 0)
        occ_text_append(rest, sizeof rest, "", ", %" PRIu64 " launch%s lost", o->lost,
                        o->lost == 1 ? "" : "es");
    if (o->time.window_s > 0)
        (void)snprintf(text, size, "%s, %s recorded%s: kernels ran %s%.1f%% of the time", gpus,
                       occ_format_duration(llround(o->time.window_s * 1e9), time, sizeof time), rest, bound,
                       busy * 100);
    else
        (void)snprintf(text, size, "%s: kernels %s, replayed one by one: busy time is not known", gpus,
                       occ_format_duration(llround(o->kernel_s * 1e9), time, sizeof time));
}

/* ---- parts of the GPU time ---- */

static unsigned sum_lost(const struct occ_gpu_steps *steps)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        sum += steps->lost[i];
    return sum;
}

const char *occ_overview_unknown_text(const struct occ_overview *overview)
{
    const struct occ_totals *totals = &overview->totals;
    bool is_entering = false, is_without_model = false;
    for (size_t i = 0; i < totals->n_gpus; i++)
        is_entering = is_entering || totals->gpus[i].unlisted_s > 0;
    for (size_t i = 0; i < totals->n_kernels; i++)
        is_without_model =
            is_without_model || (isnan(totals->kernels[i].used) && totals->kernels[i].time_s > 0);
    return !is_entering       ? "kernels without a model"
           : is_without_model ? "kernels without a model or from before"
                              : "kernels from before the period";
}

/* Prints the parts that are not rounded to 0 %; they add up to 100 %. */
static void parts_text(const struct occ_overview *o, char *text, size_t size)
{
    const struct occ_gpu_steps steps = occ_overview_steps(&o->time, 100);
    const struct {
        unsigned percent;
        const char *what;
    } parts[] = {{steps.used, "used"},
                 {sum_lost(&steps), "lost in kernels"},
                 {steps.unknown, occ_overview_unknown_text(o)},
                 {steps.communication, "communication"},
                 {steps.copies, "copies"},
                 {steps.launch_wait, "waiting for launches"},
                 {steps.pause, o->lost > 0 ? "pauses or lost launches" : "pauses"}};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].percent > 0)
            occ_text_append(text, size, ", ", "%s%u%% %s", text[0] ? "" : "GPU time: ", parts[i].percent,
                            parts[i].what);
}

/* ---- the largest loss ---- */

/* Prints the loss in kernels, with its largest cause. */
static void kernel_loss_text(const struct occ_gpu_time *t, const struct occ_gpu_steps *percent, char *text,
                             size_t size)
{
    unsigned cause = occ_largest_part(t->lost, OCC_PART_COUNT);
    (void)snprintf(text, size, "largest loss: empty warp slots in kernels, %u%%; %u%% %s", sum_lost(percent),
                   percent->lost[cause], occ_part_text(cause, 1));
}

const char *occ_overview_finding_text(const struct occ_overview *o, enum occ_finding_kind kind)
{
    return o->lost == 0                      ? occ_finding_text(kind)
           : kind == OCC_FINDING_PAUSE       ? "the GPU is idle in longer pauses, or ran lost launches"
           : kind == OCC_FINDING_LAUNCH_WAIT ? "the GPU waits for launches, or ran lost launches"
                                             : occ_finding_text(kind);
}

/* Prints the largest loss with its cause or change, in the percentages of parts_text(). */
static void largest_loss_text(const struct occ_overview *o, char *text, size_t size)
{
    const struct occ_gpu_time *t = &o->time;
    const struct occ_gpu_steps percent = occ_overview_steps(t, 100);
    const struct {
        double share;
        unsigned percent;
        enum occ_finding_kind kind;
        enum occ_owner_change change;
    } losses[] = {{t->pause, percent.pause, OCC_FINDING_PAUSE, OCC_CHANGE_FIND_WAIT},
                  {t->launch_wait, percent.launch_wait, OCC_FINDING_LAUNCH_WAIT, OCC_CHANGE_CUDA_GRAPHS},
                  {t->communication, percent.communication, OCC_FINDING_COMMUNICATION, OCC_CHANGE_OVERLAP},
                  {t->copies, percent.copies, OCC_FINDING_COPIES, OCC_CHANGE_OVERLAP}};
    double lost = 0;
    size_t largest = 0;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        lost += t->lost[i];
    for (size_t i = 1; i < sizeof losses / sizeof *losses; i++)
        largest = losses[i].share > losses[largest].share ? i : largest;
    text[0] = '\0';
    if (lost > 0 && lost >= losses[largest].share)
        kernel_loss_text(t, &percent, text, size);
    else if (losses[largest].share >= OCC_FINDING_MIN)
        (void)snprintf(text, size, "largest loss: %s, %u%%; %s",
                       occ_overview_finding_text(o, losses[largest].kind), losses[largest].percent,
                       occ_change_text(losses[largest].change));
}

/* ---- source of the occupancy ---- */

static void source_text(const struct occ_overview *o, char *text, size_t size)
{
    double percent = o->measured_ratio * 100;
    text[0] = '\0';
    if (o->is_simulated)
        (void)snprintf(text, size, "occupancy: simulated");
    else if (percent > 0)
        (void)snprintf(text, size,
                       percent < 1 ? "occupancy: measured in less than 1%% of the time"
                                   : "occupancy: measured in %.0f%% of the time, else modelled",
                       percent);
    else
        (void)snprintf(text, size, "occupancy: modelled, not measured");
    if (o->read_ratio < 0.995 && !o->is_busy_most && o->time.window_s > 0)
        occ_text_append(text, size, "; ", "busy time: from %.2g%% of the launches", o->read_ratio * 100);
}

size_t occ_overview_text(const struct occ_overview *o,
                         char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES])
{
    bool has_time = o->time.window_s > 0;
    size_t n = 0;
    if (o->launches == 0)
        return 0;
    busy_text(o, lines[n++], OCC_OVERVIEW_LINE_BYTES);
    if (has_time)
        parts_text(o, lines[n++], OCC_OVERVIEW_LINE_BYTES);
    if (has_time)
        largest_loss_text(o, lines[n], OCC_OVERVIEW_LINE_BYTES);
    n += has_time && lines[n][0];
    source_text(o, lines[n++], OCC_OVERVIEW_LINE_BYTES);
    return n;
}
