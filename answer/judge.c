/* Judges single kernels of an overview; see answer.h. One thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_totals.h"
#include "support/text.h"

static uint64_t key_of(int64_t kernel, int64_t device)
{
    return (uint64_t)kernel << 32 | (uint32_t)device;
}

int occ_judge_open(const struct occ_overview *overview, struct occ_kernel_judge *ret_judge,
                   struct occ_error *err)
{
    const struct occ_totals *totals = &overview->totals;
    struct occ_kernel_judge *j = ret_judge;
    *j = (struct occ_kernel_judge){.overview = overview};
    j->shares = calloc(totals->n_kernels + 1, sizeof *j->shares);
    bool is_done = j->shares && occ_share_kernels(totals, j->shares) == 0;
    for (size_t i = 0; i < totals->n_kernels && is_done; i++)
        is_done = occ_map_put(&j->rows, key_of(totals->kernels[i].kernel, overview->kernels[i].device),
                              (uint32_t)i) != OCC_MAP_NONE;
    if (is_done)
        return 0;
    occ_judge_close(j);
    return occ_no_memory(err);
}

void occ_judge_close(struct occ_kernel_judge *judge)
{
    free(judge->shares);
    occ_map_free(&judge->rows);
    occ_arena_free(judge->memory.blocks);
    *judge = (struct occ_kernel_judge){0};
}

/* Returns the row's share of the GPU time; of communication, which has no share of its own in the findings,
 * the share by durations. */
static double share_of(const struct occ_kernel_judge *judge, size_t at)
{
    const struct occ_answer_kernel *kernel = &judge->overview->kernels[at];
    return occ_is_communication(&judge->overview->totals.kernels[at])
               ? occ_overview_share(judge->overview, OCC_SHARE_OF_COMMUNICATION, kernel->device,
                                    (double)kernel->total_ns)
               : judge->shares[at];
}

static struct occ_finding unknown_finding(size_t at, double share)
{
    return (struct occ_finding){.kind = OCC_FINDING_KERNEL,
                                .kernel = at,
                                .share = share,
                                .lost = NAN,
                                .cause = OCC_PART_COUNT,
                                .change = OCC_CHANGE_NONE,
                                .advice = OCC_ADVICE_COUNT,
                                .saves = {NAN, NAN, NAN, 0},
                                .forecast = {NAN, NAN, NAN, 0, 0, false, false},
                                .confidence = OCC_CONFIDENCE_MODELLED};
}

int occ_judge_kernel(struct occ_kernel_judge *judge, const struct occ_config_row *dominant,
                     struct occ_kernel_answer *ret_answer, struct occ_error *err)
{
    const struct occ_overview *o = judge->overview;
    uint32_t at = occ_map_get(&judge->rows, key_of(dominant->kernel.id, dominant->kernel.device));
    struct occ_kernel_answer *answer = ret_answer;
    if (at == OCC_MAP_NONE)
        return occ_fail(err, OCC_E_NOT_FOUND, "kernel %" PRId64 " has no launches", dominant->kernel.id);
    struct occ_kernel_totals kernel = o->totals.kernels[at];
    bool has_time = o->time.window_s > 0;
    *answer = (struct occ_kernel_answer){.used = kernel.used,
                                         .is_known = isfinite(kernel.used),
                                         .is_of_gpu_time = has_time,
                                         .rest_ratio = kernel.rest_ratio,
                                         .config = dominant->id,
                                         .gpu_share = occ_overview_share(o, occ_overview_share_of(o, at),
                                                                         dominant->kernel.device,
                                                                         (double)o->kernels[at].total_ns),
                                         .cause_ratio = NAN};
    occ_kernel_owner(dominant->kernel.demangled ? dominant->kernel.demangled : "", &answer->owner);
    kernel.owner = &answer->owner;
    if (kernel.n_candidates == 0 && dominant->analysed &&
        !occ_candidates_set(dominant, &kernel, &judge->memory))
        return occ_no_memory(err);
    double share = has_time ? share_of(judge, at) : 1;
    answer->finding = answer->is_known
                          ? occ_judge(&(struct occ_totals){.kernels = &kernel, .n_kernels = 1}, 0, share)
                          : unknown_finding(at, share);
    answer->finding.kernel = at;
    if (answer->finding.cause < OCC_PART_COUNT) /* a gain after the cause makes the loss smaller */
        answer->cause_ratio =
            occ_at_most(kernel.part[answer->finding.cause], 1 - occ_at_most(occ_positive(kernel.used), 1));
    answer->why = occ_why_of(&o->kernels[at].config, answer->finding.cause,
                             answer->owner.owner == OCC_OWNER_COMMUNICATION);
    return 0;
}

/* ---- the saving ---- */

#define SAVING_MIN 1e-4 /* share of the time; smaller savings have no digits for people */

static bool is_none(const struct occ_finding *f)
{
    return f->change == OCC_CHANGE_NONE || f->change == OCC_CHANGE_LEAVE || f->change == OCC_CHANGE_BUSY;
}

const char *occ_saving_text(const struct occ_kernel_answer *answer, char *text, size_t size)
{
    const struct occ_finding *f = &answer->finding;
    const struct occ_forecast *p = &f->forecast;
    char predicted[96];
    text[0] = '\0';
    if (is_none(f)) {
        (void)snprintf(text, size, "%s", answer->is_known ? "nothing that the model knows" : "not known");
        return text;
    }
    if (isnan(p->ratio)) {
        (void)snprintf(text, size, "measure it: no prediction");
        return text;
    }
    if (p->is_promised) {
        bool is_small = f->saves.median < SAVING_MIN;
        occ_text_append(text, size, "", is_small ? "below %.2g%% of %s" : "about %.2g%% of %s",
                        100 * (is_small ? SAVING_MIN : f->saves.median),
                        answer->is_of_gpu_time ? "the GPU time" : "the kernel's time");
        if (answer->rest_ratio > 0.005)
            occ_text_append(text, size, "",
                            " in configuration %" PRId64 " alone (%.2g%% of the kernel's time)",
                            answer->config, 100 * (1 - answer->rest_ratio));
        occ_text_append(text, size, "", ": ");
    }
    occ_text_append(text, size, "", "%s%s", p->is_promised ? "" : "measure it: ",
                    occ_predicted_text(p->ratio, p->low, p->high, predicted, sizeof predicted));
    if (f->saves.cases == 0)
        occ_text_append(text, size, "", "; no published case");
    else
        occ_text_append(text, size, "", "; %u published cases: %u faster, %u slower", f->saves.cases,
                        p->faster, p->slower);
    return text;
}
