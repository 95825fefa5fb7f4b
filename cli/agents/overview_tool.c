/* The tools "overview" and "findings": where GPU time went, and the first change. One thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/history/sql_table.h"
#include "support/map.h"
#include "question.h"

#define OVERVIEW_DEFINITIONS                                                                                 \
    "ratios of the recorded GPU time, which add up: launch_wait + pause (longer idle) + communication + "    \
    "copies + used + lost + unknown = 1; used: elapsed occupancy x kernel time, lost: empty warp slots by "  \
    "cause; measured_ratio: of kernel time with measured occupancy, the rest is the model's"
#define FINDINGS_DEFINITIONS                                                                                 \
    "ratios of the recorded GPU time; lost: empty warp slots; saves: predicted, median and 80 % interval "   \
    "or "                                                                                                    \
    "bounds; a predicted saving is no measurement"

enum { DEVICES_SHOWN = 3 };

/* ---- overview ---- */

static void put_devices(struct occ_json *json, const struct occ_overview *o)
{
    const char *shown[DEVICES_SHOWN] = {NULL};
    size_t n = 0;
    occ_json_array(json, "quoted_devices", true);
    for (size_t i = 0; i < o->totals.n_kernels && n < DEVICES_SHOWN; i++) {
        const char *name = o->kernels[i].device_name;
        bool is_known = name == NULL;
        for (size_t k = 0; k < n; k++)
            is_known |= strcmp(shown[k], name ? name : "") == 0;
        if (is_known)
            continue;
        shown[n++] = name;
        agent_quote(json, NULL, name);
    }
    occ_json_close(json);
}

static uint64_t count_kernels(const struct occ_overview *o)
{
    struct occ_map ids = {0};
    uint64_t n = 0;
    for (size_t i = 0; i < o->totals.n_kernels; i++)
        n += o->kernels[i].name && occ_map_put(&ids, (uint64_t)o->totals.kernels[i].kernel, (uint32_t)i) == i;
    occ_map_free(&ids);
    return n;
}

static void put_time(struct occ_json *json, const struct occ_overview *o)
{
    const struct occ_gpu_time *t = &o->time;
    if (!(t->window_s > 0)) {
        occ_json_string(json, "gpu_time", "not measured");
        return;
    }
    occ_json_object(json, "gpu_time", true);
    agent_known(json, "recorded_s", t->window_s);
    agent_known(json, "unrecorded_s", t->unrecorded_s);
    agent_known(json, "kernel_s", o->kernel_s);
    agent_known(json, "busy_ratio", t->communication + t->kernels);
    agent_known(json, "launch_wait_ratio", t->launch_wait);
    agent_known(json, "pause_ratio", t->pause);
    agent_known(json, "communication_ratio", t->communication);
    agent_measured(json, "copies_ratio", t->has_copies ? t->copies : (double)NAN);
    agent_known(json, "used_ratio", t->used);
    agent_known(json, "unknown_ratio", t->unknown);
    occ_json_object(json, "lost_ratio", true);
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        if (t->lost[i] >= OCC_FINDING_MIN)
            agent_known(json, occ_part_word(i), t->lost[i]);
    occ_json_close(json);
    if (o->is_busy_most)
        occ_json_bool(json, "busy_is_maximum", true);
    if (o->lost > 0)
        occ_json_bool(json, "busy_is_minimum", true);
    occ_json_close(json);
}

static void put_facts(struct occ_json *json, const struct agent_question *question,
                      const struct occ_overview *o)
{
    struct sqlite3 *db = occ_store_sqlite(question->store);
    const struct sql_partial partial = sql_count_partial(question->store, &question->filter);
    occ_json_integer(json, "runs_in_history", sql_number(db, "SELECT count(*) FROM run"));
    occ_json_integer(json, "last_run", sql_number(db, "SELECT " OCC_FILTER_RUN_LAST));
    occ_json_unsigned(json, "launches", o->launches);
    occ_json_unsigned(json, "kernels", count_kernels(o));
    occ_json_unsigned(json, "gpus", o->totals.n_gpus);
    put_devices(json, o);
    if (o->is_simulated)
        occ_json_bool(json, "simulated", true);
    occ_json_integer(json, "runs_recorded_in_part", partial.runs);
    occ_json_integer(json, "lost_launches", partial.lost);
    if (o->measured_ratio > 0)
        agent_known(json, "measured_ratio", o->measured_ratio);
    else
        occ_json_string(json, "achieved", "not measured");
}

static void put_overview(struct agent_document *document, const struct agent_question *question,
                         const struct occ_overview *o)
{
    struct occ_json *json = &document->json;
    put_facts(json, question, o);
    put_time(json, o);
    occ_json_unsigned(json, "findings", o->n_findings);
    occ_json_string(json, "definitions", OVERVIEW_DEFINITIONS);
    agent_next(document, "findings", NULL, 0);
}

/* ---- findings ---- */

static void put_change(struct occ_json *json, const struct occ_finding *f)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s", occ_change_text(f->change));
    if (f->advice != OCC_ADVICE_COUNT)
        (void)snprintf(text, sizeof text, "%s (%" PRIu64 " -> %" PRIu64 ")", occ_change_text(f->change),
                       f->now, f->needed);
    occ_json_string(json, NULL, text);
}

static void put_kernel(struct occ_json *json, const struct occ_overview *o, const struct occ_finding *f)
{
    if (f->kernel == SIZE_MAX) {
        occ_json_null(json, NULL);
        occ_json_null(json, NULL);
        occ_json_null(json, NULL);
        return;
    }
    const struct occ_kernel_totals *totals = &o->totals.kernels[f->kernel];
    const struct occ_answer_kernel *kernel = &o->kernels[f->kernel];
    occ_json_integer(json, NULL, totals->kernel);
    agent_quote(json, NULL, kernel->name);
    occ_json_string(json, NULL, occ_owner_word(totals->owner ? totals->owner->owner : OCC_OWNER_UNKNOWN));
}

static int put_finding(struct agent_document *document, const struct occ_overview *o,
                       const struct occ_finding *f, struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    occ_json_string(&row.json, NULL, occ_finding_word(f->kind));
    put_kernel(&row.json, o, f);
    agent_known(&row.json, NULL, f->share);
    agent_known(&row.json, NULL, f->lost);
    occ_json_string(&row.json, NULL, f->cause < OCC_PART_COUNT ? occ_part_word(f->cause) : NULL);
    put_change(&row.json, f);
    agent_known(&row.json, NULL, f->saves.median);
    agent_known(&row.json, NULL, f->saves.low);
    agent_known(&row.json, NULL, f->saves.high);
    occ_json_string(&row.json, NULL,
                    f->low_reasons ? occ_low_reason_text(f->low_reasons)
                                   : occ_confidence_word(f->confidence));
    return agent_row_close(&row, document, err);
}

static int put_findings(struct agent_document *document, const struct agent_question *question,
                        const struct occ_overview *o, struct occ_error *err)
{
    static const char *const columns[] = {
        "kind",   "kernel_id", "quoted_kernel", "owner",      "gpu_time_ratio", "lost_ratio", "cause",
        "change", "saves",     "saves_low",     "saves_high", "basis",          NULL};
    size_t offset = (size_t)question->args->offset, shown = 0;
    int status = 1;
    occ_json_unsigned(&document->json, "findings", o->n_findings);
    if (o->lost > 0)
        occ_json_string(&document->json, "lost_launches",
                        "their times are not known: pauses and launch waits may have run them");
    occ_json_string(&document->json, "definitions", FINDINGS_DEFINITIONS);
    agent_list_open(document, columns);
    for (size_t i = offset; i < o->n_findings && status == 1; i++) {
        status = put_finding(document, o, &o->findings[i], err);
        shown += status == 1;
    }
    occ_json_close(&document->json);
    agent_more(document, offset, shown, o->n_findings);
    const struct occ_finding *first = offset < o->n_findings ? &o->findings[offset] : NULL;
    if (first && first->kernel != SIZE_MAX)
        agent_next(document, "kernel", "kernel", o->totals.kernels[first->kernel].kernel);
    return status < 0 ? status : 0;
}

/* ---- the tools ---- */

int agent_overview(const struct agent_question *question, struct agent_document *document,
                   struct occ_error *err)
{
    struct occ_overview overview;
    int status = occ_overview_ask(question->store, &question->filter, &overview, err);
    if (status != 0)
        return status;
    if (overview.launches == 0)
        status = agent_no_launches(question, err);
    else
        put_overview(document, question, &overview);
    occ_overview_free(&overview);
    return status;
}

int agent_findings(const struct agent_question *question, struct agent_document *document,
                   struct occ_error *err)
{
    struct occ_overview overview;
    int status = occ_overview_ask(question->store, &question->filter, &overview, err);
    if (status != 0)
        return status;
    status = overview.launches == 0 ? agent_no_launches(question, err)
                                    : put_findings(document, question, &overview, err);
    occ_overview_free(&overview);
    return status;
}
