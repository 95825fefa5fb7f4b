/* Prints sums, sides and JSON of the answer; see report.h. One thread (stdio). */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/json.h"
#include "cli/screen.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "verdicts.h"

#define WORK_SHOWN 0.005 /* smaller differences of the work are not mentioned */

const char *diff_caveat(const struct diff *diff)
{
    return diff->by_minutes
               ? "Verdicts are by blocks of whole minutes, at most 20 a side, without the first (warm-up); "
                 "fewer than 9 minutes decide nothing. The spread between runs is unknown."
           : diff->by_runs ? "Verdicts are by the spread between runs."
           : diff->runs[DIFF_A] > 1 || diff->runs[DIFF_B] > 1
               ? "Fewer than three runs on a side: verdicts are by blocks of launches without the first "
                 "(warm-up)."
               : "One run each: the spread between runs is unknown; verdicts hold within these runs. To be "
                 "sure "
                 "across runs, record each side 3 times.";
}

void diff_print_counts(FILE *out, const struct diff_summary *s)
{
    static const enum diff_verdict order[] = {DIFF_WORSE, DIFF_BETTER, DIFF_NEW,
                                              DIFF_GONE,  DIFF_SAME,   DIFF_UNDECIDED};
    const char *separator = "rows     ";
    if (s->verdicts[DIFF_WORSE] + s->verdicts[DIFF_BETTER] + s->verdicts[DIFF_NEW] + s->verdicts[DIFF_GONE] ==
        0)
        return;
    for (size_t i = 0; i < DIFF_VERDICT_COUNT; i++) {
        if (s->verdicts[order[i]] == 0)
            continue;
        (void)fprintf(out, "%s%" PRIu32 " %s", separator, s->verdicts[order[i]], diff_verdict_word(order[i]));
        separator = ", ";
    }
    (void)fputc('\n', out);
}

/* Prints the ratio of B's work to A's work, or that it is unknown; nothing if both did the same work. */
static void print_work(FILE *out, const struct diff_summary *s)
{
    char change[16];
    if (isnan(s->work) && fabs(s->time_launches) > WORK_SHOWN * s->time_ns[DIFF_A])
        (void)fputs("work     unknown: numbers of launches changed, and too few equal kernels agree on\n"
                    "         one ratio; the total times do not compare\n",
                    out);
    else if (fabs(s->work - 1) > WORK_SHOWN)
        (void)fprintf(out,
                      "work     B did %.3g times the work of A, by the launches of equal kernels:\n"
                      "         time for the same work %s, new and gone rows included\n",
                      s->work, diff_change_text(s->per_work, change));
}

void diff_print_sums(FILE *out, const struct diff_summary *s)
{
    double a = s->time_ns[DIFF_A];
    char from[32], to[32], text[5][16];
    bool per_run = s->per_runs[DIFF_A] != s->per_runs[DIFF_B];
    (void)fprintf(out,
                  "time     %s -> %s%s (%s): duration of launches %s,\n"
                  "         number of launches %s, new rows %s, gone %s\n",
                  diff_duration_text(a, from), diff_duration_text(s->time_ns[DIFF_B], to),
                  per_run ? " a run" : "", diff_change_text(s->time_ns[DIFF_B] / a - 1, text[0]),
                  diff_change_text(s->time_duration / a, text[1]),
                  diff_change_text(s->time_launches / a, text[2]), diff_change_text(s->time_new / a, text[3]),
                  diff_change_text(s->time_gone / a, text[4]));
    print_work(out, s);
    (void)fprintf(out, "elapsed  %s -> %s", cli_percent_text(s->elapsed[DIFF_A], from, sizeof from),
                  cli_percent_text(s->elapsed[DIFF_B], to, sizeof to));
    if (!isnan(s->elapsed_kernels))
        (void)fprintf(out, ": kernels %+.1f points, mix of kernels %+.1f", 100 * s->elapsed_kernels,
                      100 * s->elapsed_mix);
    (void)fputc('\n', out);
    (void)fprintf(out, "waste    %s -> %s warp-seconds%s\n",
                  cli_amount_text(s->waste[DIFF_A], from, sizeof from),
                  cli_amount_text(s->waste[DIFF_B], to, sizeof to), per_run ? " a run" : "");
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        if (s->only_measured[side] > 0)
            (void)fprintf(
                out, "measured in %c only: %" PRIu32 " %s; elapsed, waste and causes are the expected ones\n",
                "AB"[side], s -> only_measured[side], s -> only_measured[side] == 1 ? "row" : "rows");
}

void diff_print_summary(FILE *out, const struct diff_report *r)
{
    struct diff_summary summary;
    diff_sum_up_runs(r->diff, r->floor, r->min_share, &summary);
    diff_print_sums(out, &summary);
    diff_print_counts(out, &summary);
}

const struct diff_line *diff_next_line(const struct diff_report *r, const struct diff_line *lines,
                                       const struct diff_line *line, size_t *ret_printed)
{
    const struct diff_line *end = lines + r->diff->n_pairs;
    *ret_printed = line ? *ret_printed : 0;
    line = line ? line + 1 : lines;
    while (line < end && !line->matters && !r->all_rows)
        line++;
    if (line == end || *ret_printed == r->shown)
        return NULL;
    ++*ret_printed;
    return line;
}

void diff_print_footer(FILE *out, const struct diff_report *r, size_t printed)
{
    if (printed == 0 && r->diff->n_pairs > 0)
        (void)fprintf(out, "\n--rows shows %" PRIu32 " rows, each a kernel in a layer\n", r->diff->n_pairs);
    else if (printed < r->diff->n_pairs)
        (void)fprintf(out, "\n%zu of %" PRIu32 " rows, by the change of total time (%s)\n", printed,
                      r->diff->n_pairs, r->all_rows ? "-n shows more" : "--rows shows the others, -n more");
}

/* ---- sides ---- */

const char *diff_side_text(const struct diff_report *r, uint32_t side, char line[DIFF_SIDE_BYTES])
{
    const struct diff_facts *facts = &r->side[side];
    char time[32], each[32], per_run[64] = "", gpus[96] = "";
    uint32_t runs = diff_per_runs(r->diff, side);
    if (runs > 1)
        (void)snprintf(per_run, sizeof per_run, " (%s a run)",
                       diff_duration_text((double)r->diff->total_ns[side] / runs, each));
    if (facts->n_devices)
        (void)snprintf(gpus, sizeof gpus, " (GPU%s %s)", facts->n_devices == 1 ? "" : "s", facts->device_ids);
    (void)snprintf(line, DIFF_SIDE_BYTES, "%c: %s; %" PRIu64 " launch%s, %s%s; %s%s%s", "AB"[side],
                   facts -> title, facts -> launches, facts -> launches == 1 ? "" : "es",
                   diff_duration_text((double)r->diff->total_ns[side], time), per_run, facts->device, gpus,
                   facts->simulated ? " - simulated" : "");
    occ_text_sanitise(line);
    return line;
}

/* ---- JSON ---- */

/* Returns the side's lost launches; no value instead of 0 if the loss of a run is unknown. */
static struct cli_value lost_of(const struct cli_column *column, const void *row)
{
    const struct diff_facts *facts = row;
    (void)column;
    return facts->lost == 0 && facts->is_loss_unknown ? (struct cli_value){.type = CLI_NONE}
                                                      : cli_unsigned(facts->lost);
}

static struct cli_value runs_of(const struct cli_column *column, const void *row)
{
    uint32_t runs = ((const struct diff_facts *)row)->runs;
    (void)column;
    return runs ? cli_unsigned(runs) : (struct cli_value){.type = CLI_NONE};
}

#define SIDE(name, unit, member, help) CLI_FIELD(name, name, unit, 0, struct diff_facts, member, help)
static const struct cli_column side_columns[] = {
    SIDE("title", CLI_PLAIN, title, ""),
    SIDE("device", CLI_PLAIN, device, ""),
    SIDE("device_ids", CLI_PLAIN, device_ids, ""),
    SIDE("sm_count", CLI_PLAIN, sm_count, ""),
    SIDE("simulated", CLI_PLAIN, simulated, ""),
    SIDE("serialised", CLI_PLAIN, serialised, ""),
    {.name = "runs", .key = "runs", .get = runs_of},
    SIDE("launches", CLI_PLAIN, launches, ""),
    {.name = "lost", .key = "lost", .get = lost_of},
    CLI_COLUMN_END,
};

#define SUM(key, member) CLI_FIELD(key, key, CLI_PLAIN, 0, struct diff_summary, member, "")
static const struct cli_column summary_columns[] = {
    SUM("total_duration_ns_a", time_ns[DIFF_A]),
    SUM("total_duration_ns_b", time_ns[DIFF_B]),
    SUM("of_duration_ns", time_duration),
    SUM("of_launches_ns", time_launches),
    SUM("of_new_ns", time_new),
    SUM("of_gone_ns", time_gone),
    SUM("elapsed_a", elapsed[DIFF_A]),
    SUM("elapsed_b", elapsed[DIFF_B]),
    SUM("elapsed_of_kernels", elapsed_kernels),
    SUM("elapsed_of_mix", elapsed_mix),
    SUM("work_ratio", work),
    SUM("time_per_work_change_ratio", per_work),
    SUM("waste_warp_seconds_a", waste[DIFF_A]),
    SUM("waste_warp_seconds_b", waste[DIFF_B]),
    SUM("kernels_measured_in_a_only", only_measured[DIFF_A]),
    SUM("kernels_measured_in_b_only", only_measured[DIFF_B]),
    CLI_COLUMN_END,
};

static void row_json(struct occ_json *json, const char *key, const struct cli_column *columns,
                     const void *row)
{
    occ_json_object(json, key, false);
    cli_json_row(json, columns, row);
    occ_json_close(json);
}

static void add_aligned(const struct diff_report *r, const char *what, const char *name, const char *option,
                        char text[DIFF_KERNELS_BYTES])
{
    char shown[160];
    if (!name)
        return;
    (void)snprintf(shown, sizeof shown, "%.156s", name);
    occ_text_sanitise(shown); /* the end may be a part of a character */
    for (char *at = shown; r->is_markdown && (at = strchr(at, '`')) != NULL;)
        *at = '\'';
    occ_text_append(text, DIFF_KERNELS_BYTES, "; ",
                    r->is_markdown ? "both sides are %s `%s`: %s is another kernel in the other history"
                                   : "both sides are %s %s: %s is another kernel in the other history",
                    what, shown, option);
}

const char *diff_kernels_note(const struct diff_report *r, char text[DIFF_KERNELS_BYTES])
{
    text[0] = '\0';
    add_aligned(r, "of", r->aligned.kernel, "--kernel", text);
    add_aligned(r, "without", r->aligned.exclude, "--exclude", text);
    return text;
}

void diff_json(struct occ_json *json, const struct diff_report *r, const struct diff_line *lines)
{
    _cleanup_(occ_freep) struct diff_group_line *groups = diff_make_group_lines(r);
    struct diff_summary summary, per_run;
    char note[DIFF_NOTE_BYTES], kernels[DIFF_KERNELS_BYTES];
    diff_sum_up_runs(r->diff, r->floor, r->min_share, &per_run);
    diff_sum_up(r->diff, r->floor, r->min_share, &summary);
    row_json(json, "a", side_columns, &r->side[DIFF_A]);
    row_json(json, "b", side_columns, &r->side[DIFF_B]);
    occ_json_string(json, "not_comparable", r->incomparable);
    (void)diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note);
    occ_json_string(json, "devices_note", note[0] ? note : NULL);
    (void)diff_kernels_note(r, kernels);
    occ_json_string(json, "kernels_note", kernels[0] ? kernels : NULL);
    occ_json_string(json, "replicates",
                    r->diff->by_runs      ? "runs"
                    : r->diff->by_minutes ? "minutes"
                                          : "blocks");
    sides_gpu_time_json(json, "gpu_time", &r->gpu_time, r->floor);
    row_json(json, "summary", summary_columns, &summary);
    row_json(json, "summary_per_run", summary_columns, &per_run);
    if (groups)
        diff_verdicts_json(json, r, groups);
    else
        cli_screen_lose_text();
    occ_json_array(json, "kernels", false);
    for (size_t i = 0; i < r->diff->n_pairs; i++)
        row_json(json, NULL, diff_columns, &lines[i]);
    occ_json_close(json);
}
