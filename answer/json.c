/* Writes an overview as JSON; see answer.h. One thread (stdio). */
#include <string.h>

#include "answer.h"

void occ_gpu_time_json(struct occ_json *json, const char *key, const struct occ_overview *o)
{
    const struct occ_gpu_time *t = &o->time;
    const struct {
        const char *key;
        double share;
    } shares[] = {{"launch_wait_ratio", t->launch_wait},
                  {"pause_ratio", t->pause},
                  {"communication_ratio", t->communication},
                  {"copies_ratio", t->has_copies ? t->copies : NAN},
                  {"kernels_ratio", t->kernels},
                  {"used_ratio", t->used},
                  {"unknown_ratio", t->unknown}};
    if (!(t->window_s > 0)) {
        occ_json_null(json, key);
        return;
    }
    occ_json_object(json, key, false);
    occ_json_unsigned(json, "gpus", o->totals.n_gpus);
    occ_json_real(json, "recorded_s", t->window_s);
    occ_json_real(json, "unrecorded_s", t->unrecorded_s);
    occ_json_real(json, "kernel_s", o->kernel_s);
    occ_json_real(json, "busy_ratio", t->communication + t->kernels);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        occ_json_real(json, shares[i].key, shares[i].share);
    occ_json_object(json, "lost_ratio", false);
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        if (t->lost[i] > 0)
            occ_json_real(json, occ_part_word(i), t->lost[i]);
    occ_json_close(json);
    occ_json_real(json, "read_ratio", o->read_ratio);
    occ_json_bool(json, "busy_is_maximum", o->is_busy_most);
    occ_json_bool(json, "busy_is_minimum", o->lost > 0);
    occ_json_bool(json, "communication_is_estimated", t->is_divided);
    occ_json_real(json, "measured_ratio", o->measured_ratio);
    occ_json_bool(json, "simulated", o->is_simulated);
    occ_json_close(json);
}

static void put_saving(struct occ_json *json, const struct occ_saving *saves)
{
    occ_json_object(json, "saves", true);
    occ_json_real(json, "gpu_time_ratio", saves->median);
    occ_json_real(json, "low", saves->low);
    occ_json_real(json, "high", saves->high);
    occ_json_unsigned(json, "published_cases", saves->cases);
    occ_json_close(json);
}

static void put_kernel(struct occ_json *json, const struct occ_overview *o, size_t at)
{
    const struct occ_kernel_totals *totals = &o->totals.kernels[at];
    const struct occ_answer_kernel *kernel = &o->kernels[at];
    occ_json_object(json, "kernel", false);
    occ_json_integer(json, "kernel_id", totals->kernel);
    occ_json_string(json, "kernel", kernel->demangled);
    occ_json_string(json, "label", kernel->label && kernel->label[0] ? kernel->label : NULL);
    occ_json_string(json, "owner", occ_owner_word(totals->owner ? totals->owner->owner : OCC_OWNER_UNKNOWN));
    occ_json_string(json, "library",
                    totals->owner && totals->owner->library[0] ? totals->owner->library : NULL);
    occ_json_integer(json, "config_id", totals->config);
    occ_json_integer(json, "device_id", kernel->device);
    occ_json_string(json, "device", kernel->device_name);
    occ_json_close(json);
}

/* Writes null without a prediction. */
static void put_forecast(struct occ_json *json, const struct occ_forecast *forecast)
{
    if (isnan(forecast->ratio)) {
        occ_json_null(json, "predicted");
        return;
    }
    occ_json_object(json, "predicted", true);
    occ_json_real(json, "ratio", forecast->ratio);
    occ_json_real(json, "low", forecast->low);
    occ_json_real(json, "high", forecast->high);
    occ_json_bool(json, "promised", forecast->is_promised);
    occ_json_unsigned(json, "cases_faster", forecast->faster);
    occ_json_unsigned(json, "cases_slower", forecast->slower);
    occ_json_close(json);
}

/* Writes cause, change and confidence. */
static void put_judgement(struct occ_json *json, const struct occ_finding *f)
{
    bool has_value = f->advice != OCC_ADVICE_COUNT;
    char text[64];
    occ_json_string(json, "cause", f->cause < OCC_PART_COUNT ? occ_part_word(f->cause) : NULL);
    occ_json_string(json, "cause_text", f->cause < OCC_PART_COUNT ? occ_part_text(f->cause, 1) : NULL);
    occ_json_string(json, "change", occ_change_word(f->change));
    occ_json_string(json, "change_text", occ_change_text(f->change));
    occ_json_string(json, "parameter", has_value ? occ_advice_word(f->advice) : NULL);
    if (has_value) {
        occ_json_unsigned(json, "now", f->now);
        occ_json_unsigned(json, "needed", f->needed);
    }
    put_saving(json, &f->saves);
    put_forecast(json, &f->forecast);
    occ_json_string(json, "by_design", f->low_reasons ? occ_low_reason_text(f->low_reasons) : NULL);
    occ_json_string(json, "confidence", occ_confidence_word(f->confidence));
    occ_json_string(json, "confidence_text", occ_confidence_text(f, text, sizeof text));
    occ_json_real(json, "measured_ratio", f->measured_ratio);
}

static void put_finding(struct occ_json *json, const struct occ_overview *o, const struct occ_finding *f)
{
    occ_json_object(json, NULL, false);
    occ_json_string(json, "kind", occ_finding_word(f->kind));
    occ_json_string(json, "text", occ_overview_finding_text(o, f->kind));
    if (f->kernel == SIZE_MAX)
        occ_json_null(json, "kernel");
    else
        put_kernel(json, o, f->kernel);
    occ_json_real(json, "gpu_time_ratio", f->share);
    occ_json_real(json, "lost_ratio", f->lost);
    put_judgement(json, f);
    occ_json_close(json);
}

void occ_kernel_answer_json(struct occ_json *json, const char *key, const struct occ_kernel_answer *answer)
{
    const struct occ_finding *f = &answer->finding;
    occ_json_object(json, key, false);
    occ_json_string(json, "owner", occ_owner_word(answer->owner.owner));
    occ_json_string(json, "library", answer->owner.library[0] ? answer->owner.library : NULL);
    occ_json_string(json, "shares_of", answer->is_of_gpu_time ? "gpu_time" : "kernel_time");
    occ_json_real(json, answer->is_of_gpu_time ? "gpu_time_ratio" : "kernel_time_ratio", f->share);
    occ_json_real(json, "lost_ratio", answer->is_known ? f->lost : NAN);
    occ_json_real(json, "used", answer->used);
    put_judgement(json, f);
    occ_json_close(json);
}

void occ_overview_json(struct occ_json *json, const struct occ_overview *o, size_t max)
{
    occ_gpu_time_json(json, "gpu_time", o);
    occ_json_array(json, "findings", false);
    for (size_t i = 0; i < o->n_findings && i < max; i++)
        put_finding(json, o, &o->findings[i]);
    occ_json_close(json);
}
