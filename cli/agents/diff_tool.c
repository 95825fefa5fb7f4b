/* The tool "diff": two sides compared. One thread. */
#include <math.h>
#include <stdlib.h>

#include "agent_sides.h"
#include "cli/sides/diff_advice.h"
#include "question.h"

#define DEFINITIONS                                                                                          \
    "gpu_time: with idle time, for the same work; change: b / a - 1 of the time of a launch (basis launch) " \
    "or for the same work (work), with its 95 % "                                                            \
    "interval low to high; basis null: not comparable; verdict: worse or better only beyond 5 %, with 5 % "  \
    "false discoveries; undecided is no evidence of equality"

static void put_side(struct occ_json *json, const char *key, const struct diff_facts *facts)
{
    occ_json_object(json, key, true);
    agent_quote(json, "quoted_side", facts->title);
    agent_quote(json, "quoted_device", facts->device);
    occ_json_unsigned(json, "launches", facts->launches);
    if (facts->is_loss_unknown)
        occ_json_string(json, "lost_launches", "unknown");
    else
        occ_json_unsigned(json, "lost_launches", facts->lost);
    occ_json_close(json);
}

/* Writes the verdict on the GPU time for the same work, with idle time; null: not known. */
static void put_gpu_time(struct occ_json *json, const struct diff_report *report)
{
    const struct sides_gpu_time *time = &report->gpu_time;
    struct diff_gpu_time_verdict v = diff_judge_gpu_time(&time->change, report->floor);
    char text[SIDES_GPU_TIME_BYTES];
    if (!time->is_known) {
        occ_json_null(json, "gpu_time");
        return;
    }
    occ_json_object(json, "gpu_time", true);
    occ_json_string(json, "verdict", diff_verdict_word(v.verdict));
    agent_known(json, "change", v.ratio.ratio - 1);
    occ_json_string(json, "text", sides_gpu_time_text(time, report->floor, text));
    occ_json_close(json);
}

static void put_sums(struct occ_json *json, const struct diff_report *report)
{
    struct diff_summary sums;
    diff_sum_up(report->diff, report->floor, report->min_share, &sums);
    occ_json_object(json, "total_duration_ns", true);
    occ_json_integer(json, "a", llround(sums.time_ns[DIFF_A]));
    occ_json_integer(json, "b", llround(sums.time_ns[DIFF_B]));
    occ_json_close(json);
    occ_json_object(json, "kernels", true);
    for (unsigned i = 0; i < DIFF_VERDICT_COUNT; i++)
        if (sums.verdicts[i] > 0)
            occ_json_unsigned(json, diff_verdict_word((enum diff_verdict)i), sums.verdicts[i]);
    occ_json_close(json);
}

static int put_line(struct agent_document *document, const struct diff_line *line, struct occ_error *err)
{
    struct agent_row row;
    if (agent_row_open(&row, err) != 0)
        return err->code;
    agent_quote(&row.json, NULL, line->kernel);
    occ_json_string(&row.json, NULL, line->verdict);
    occ_json_string(&row.json, NULL, line->basis);
    agent_known(&row.json, NULL, line->change);
    agent_known(&row.json, NULL, line->low);
    agent_known(&row.json, NULL, line->high);
    occ_json_unsigned(&row.json, NULL, line->total_ns[DIFF_A]);
    occ_json_unsigned(&row.json, NULL, line->total_ns[DIFF_B]);
    agent_quote(&row.json, NULL, line->changes);
    return agent_row_close(&row, document, err);
}

static int put_lines(const struct agent_question *question, struct agent_document *document,
                     const struct diff_line *lines, size_t n, struct occ_error *err)
{
    static const char *const columns[] = {
        "quoted_kernel",       "verdict",        "basis", "change", "low", "high", "total_duration_ns_a",
        "total_duration_ns_b", "quoted_changes", NULL};
    size_t offset = (size_t)question->args->offset, shown = 0;
    int status = 1;
    agent_list_open(document, columns);
    for (size_t i = offset; i < n && status == 1; i++) {
        status = put_line(document, &lines[i], err);
        shown += status == 1;
    }
    occ_json_close(&document->json);
    agent_more(document, offset, shown, n);
    return status < 0 ? status : 0;
}

int agent_diff(const struct agent_question *question, struct agent_document *document, struct occ_error *err)
{
    const struct agent_args *args = question->args;
    struct occ_json *json = &document->json;
    _cleanup_(sides_free) struct sides sides = {.by_range = true};
    _cleanup_(occ_freep) struct diff_line *lines = NULL;
    _cleanup_(diff_report_done) struct diff_report report = {.floor = DIFF_FLOOR,
                                                             .min_share = DIFF_MIN_SHARE};
    int status = agent_sides_compare(question, args->a, args->b, &sides, err);
    if (status == 0)
        status = diff_answer(&sides, args->force, &report, &lines, err);
    if (status != 0)
        return status;
    put_side(json, "a", &report.side[DIFF_A]);
    put_side(json, "b", &report.side[DIFF_B]);
    if (report.incomparable)
        agent_quote(json, "quoted_not_comparable", report.incomparable);
    put_gpu_time(json, &report);
    put_sums(json, &report);
    occ_json_string(json, "definitions", DEFINITIONS);
    return put_lines(question, document, lines, report.diff->n_pairs, err);
}
