/* Text, JSON and Markdown; see report.h. One thread (stdio). */
#include "report.h"

#include <inttypes.h>
#include <math.h>

#include "cli/json.h"
#include "cli/usage.h"
#include "support/text.h"

enum { LINE = 2048, INDENT = 2 };

const char *diff_caveat(const struct diff *diff)
{
    return diff->by_minutes
               ? "Verdicts are by blocks of whole minutes, at most 20 a side, without the first (warm-up); "
                 "fewer than 9 minutes decide nothing. The spread between runs is unknown."
           : diff->by_runs ? "Verdicts are by the spread between runs."
           : diff->runs[DIFF_A] > 1 || diff->runs[DIFF_B] > 1
               ? "Fewer than three runs on a side: verdicts are by blocks of launches without the first "
                 "(warm-up)."
               : "One run each: the spread between runs is unknown; verdicts are by blocks of launches "
                 "without the first (warm-up).";
}

static const char *duration(double ns, char buffer[32])
{
    return isnan(ns) ? "-" : occ_format_duration((int64_t)llround(ns), buffer, 32);
}

/* "+10.0%" */
static const char *percent(double change, char buffer[16])
{
    (void)snprintf(buffer, 16, isfinite(change) ? "%+.1f%%" : "-", 100 * change);
    return buffer;
}

/* "1 worse, 3 better, ..." */
static void print_counts(FILE *out, const struct diff_summary *s)
{
    static const enum diff_verdict order[] = {DIFF_WORSE,     DIFF_BETTER, DIFF_SAME,
                                              DIFF_UNDECIDED, DIFF_NEW,    DIFF_GONE};
    for (size_t i = 0; i < DIFF_VERDICT_COUNT; i++)
        (void)fprintf(out, "%s%" PRIu32 " %s", i ? ", " : "", s->verdicts[order[i]],
                      diff_verdict_word(order[i]));
    (void)fputc('\n', out);
}

static void print_sums(FILE *out, const struct diff_summary *s)
{
    double a = s->time_ns[DIFF_A];
    char from[32], to[32], text[5][16];
    (void)fprintf(out,
                  "time     %s -> %s (%s): duration of launches %s,\n"
                  "         number of launches %s, new kernels %s, gone %s\n",
                  duration(a, from), duration(s->time_ns[DIFF_B], to),
                  percent(s->time_ns[DIFF_B] / a - 1, text[0]), percent(s->time_duration / a, text[1]),
                  percent(s->time_launches / a, text[2]), percent(s->time_new / a, text[3]),
                  percent(s->time_gone / a, text[4]));
    (void)fprintf(out, "elapsed  %s -> %s", cli_percent_text(s->elapsed[DIFF_A], from, sizeof from),
                  cli_percent_text(s->elapsed[DIFF_B], to, sizeof to));
    if (!isnan(s->elapsed_kernels))
        (void)fprintf(out, ": kernels %+.1f points, mix of kernels %+.1f", 100 * s->elapsed_kernels,
                      100 * s->elapsed_mix);
    (void)fputc('\n', out);
    (void)fprintf(out, "waste    %s -> %s warp-seconds\n",
                  cli_amount_text(s->waste[DIFF_A], from, sizeof from),
                  cli_amount_text(s->waste[DIFF_B], to, sizeof to));
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        if (s->only_measured[side] > 0)
            (void)fprintf(
                out, "measured in %c only: %" PRIu32 " %s; elapsed, waste and causes are the expected ones\n",
                "AB"[side], s -> only_measured[side], s -> only_measured[side] == 1 ? "row" : "rows");
}

void diff_print_summary(FILE *out, const struct diff_report *r)
{
    struct diff_summary summary;
    diff_sum_up(r->diff, r->floor, r->min_share, &summary);
    print_sums(out, &summary);
    print_counts(out, &summary);
}

void diff_print_footer(FILE *out, const struct diff_report *r)
{
    if (r->shown < r->diff->n_pairs)
        (void)fprintf(out, "\n%zu of %" PRIu32 " rows, by the change of total time (-n shows more)\n",
                      r->shown, r->diff->n_pairs);
}

/* ---- text ---- */

static void print_wrapped(const char *text, int indent)
{
    (void)printf("%*s", indent, "");
    (void)cli_print_wrapped(stdout, text, indent, indent ? indent : 3);
}

const char *diff_side_text(const struct diff_report *r, uint32_t side, char line[DIFF_SIDE_BYTES])
{
    const struct diff_facts *facts = &r->side[side];
    char time[32], gpus[96] = "";
    if (facts->n_devices)
        (void)snprintf(gpus, sizeof gpus, " (GPU%s %s)", facts->n_devices == 1 ? "" : "s", facts->device_ids);
    (void)snprintf(line, DIFF_SIDE_BYTES, "%c: %s; %" PRIu64 " launch%s, %s; %s%s%s", "AB"[side],
                   facts -> title, facts -> launches, facts -> launches == 1 ? "" : "es",
                   duration((double)r->diff->total_ns[side], time), facts->device, gpus,
                   facts->simulated ? " - simulated" : "");
    occ_text_sanitise(line);
    return line;
}

static void print_times(const struct diff_line *line)
{
    char from[32], to[32], change[16], low[16], high[16], share[16], interval[64] = "", text[LINE];
    uint32_t side = line->launches[DIFF_A] ? DIFF_A : DIFF_B;
    (void)cli_percent_text(line->share, share, sizeof share);
    if (!isnan(line->low))
        (void)snprintf(interval, sizeof interval, " (95 %%: %s to %s)", percent(line->low, low),
                       percent(line->high, high));
    if (line->pair->level == DIFF_ONE_SIDE)
        (void)snprintf(text, sizeof text, "%" PRIu64 " launch%s of %s, %s of the time", line->launches[side],
                       line->launches[side] == 1 ? "" : "es", duration(line->mean_ns[side], from), share);
    else
        (void)snprintf(text, sizeof text, "%s -> %s a launch, %s%s, %s of the time",
                       duration(line->mean_ns[DIFF_A], from), duration(line->mean_ns[DIFF_B], to),
                       percent(line->change, change), interval, share);
    print_wrapped(text, INDENT);
}

static void print_line(const struct diff_line *line)
{
#define LEVEL_TEXT(name, word, text) text,
    static const char *const levels[] = {DIFF_LEVELS(LEVEL_TEXT)};
    char text[LINE];
    (void)snprintf(text, sizeof text, "%s: %s", line->verdict, line->kernel);
    print_wrapped(text, 0);
    if (line->range[0]) {
        (void)snprintf(text, sizeof text, "in %s", line->range);
        print_wrapped(text, INDENT);
    }
    print_times(line);
    if (line->changes[0])
        print_wrapped(line->changes, INDENT);
    if (line->advice[0])
        print_wrapped(line->advice, INDENT);
    if (line->pair->level > DIFF_NAME && line->pair->level < DIFF_ONE_SIDE) {
        (void)snprintf(text, sizeof text, "matched: %s", levels[line->pair->level]);
        print_wrapped(text, INDENT);
    }
}

void diff_print_text(const struct diff_report *r, const struct diff_line *lines)
{
    char side[DIFF_SIDE_BYTES], note[DIFF_NOTE_BYTES];
    print_wrapped(diff_side_text(r, DIFF_A, side), 0);
    print_wrapped(diff_side_text(r, DIFF_B, side), 0);
    if (diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note)[0])
        (void)cli_print_wrapped(stdout, note, 0, 0);
    if (r->incomparable)
        (void)printf("Not comparable: %s.\n", r->incomparable);
    (void)cli_print_wrapped(stdout, diff_caveat(r->diff), 0, 0);
    (void)putchar('\n');
    diff_print_summary(stdout, r);
    for (size_t i = 0; i < r->diff->n_pairs && i < r->shown; i++) {
        (void)putchar('\n');
        print_line(&lines[i]);
    }
    diff_print_footer(stdout, r);
}

/* ---- JSON ---- */

/* As of a run: losses that nobody knows beside none that are known are not 0. */
static struct cli_value lost_of(const struct cli_column *column, const void *row)
{
    const struct diff_facts *facts = row;
    (void)column;
    return facts->lost == 0 && facts->is_loss_unknown ? (struct cli_value){.type = CLI_NONE}
                                                      : cli_unsigned(facts->lost);
}

#define SIDE(name, unit, member, help) CLI_FIELD(name, name, unit, 0, struct diff_facts, member, help)
static const struct cli_column side_columns[] = {
    SIDE("title", CLI_PLAIN, title, ""),
    SIDE("device", CLI_PLAIN, device, ""),
    SIDE("device_ids", CLI_PLAIN, device_ids, ""),
    SIDE("sm_count", CLI_PLAIN, sm_count, ""),
    SIDE("simulated", CLI_PLAIN, simulated, ""),
    SIDE("serialised", CLI_PLAIN, serialised, ""),
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

void diff_json(struct occ_json *json, const struct diff_report *r, const struct diff_line *lines)
{
    struct diff_summary summary;
    char note[DIFF_NOTE_BYTES];
    diff_sum_up(r->diff, r->floor, r->min_share, &summary);
    row_json(json, "a", side_columns, &r->side[DIFF_A]);
    row_json(json, "b", side_columns, &r->side[DIFF_B]);
    occ_json_string(json, "not_comparable", r->incomparable);
    (void)diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note);
    occ_json_string(json, "devices_note", note[0] ? note : NULL);
    occ_json_string(json, "replicates",
                    r->diff->by_runs      ? "runs"
                    : r->diff->by_minutes ? "minutes"
                                          : "blocks");
    row_json(json, "summary", summary_columns, &summary);
    occ_json_array(json, "kernels", false);
    for (size_t i = 0; i < r->diff->n_pairs; i++)
        row_json(json, NULL, diff_columns, &lines[i]);
    occ_json_close(json);
}

/* ---- Markdown ---- */

void diff_markdown_code(FILE *out, const char *text)
{
    size_t run = 0, longest = 0;
    for (const char *at = text; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        (void)fputc('`', out);
    (void)fputs(longest ? " " : "", out);
    for (const char *at = text; *at; at++)
        (void)fprintf(out, "%s%c", *at == '|' ? "\\" : "", (unsigned char)*at < ' ' ? '?' : *at);
    (void)fputs(longest ? " " : "", out);
    for (size_t i = 0; i <= longest; i++)
        (void)fputc('`', out);
}

static void print_markdown_line(const struct diff_line *line)
{
    char from[32], to[32], change[16], low[16], high[16];
    (void)printf("| %s | ", line->verdict);
    diff_markdown_code(stdout, line->kernel);
    if (line->range[0]) {
        (void)printf(" in ");
        diff_markdown_code(stdout, line->range);
    }
    (void)printf(" | %s | %s | %s | %s to %s | %s%s%s |\n", duration(line->mean_ns[DIFF_A], from),
                 duration(line->mean_ns[DIFF_B], to), percent(line->change, change), percent(line->low, low),
                 percent(line->high, high), line->changes, line->advice[0] ? "; " : "", line->advice);
}

void diff_print_markdown(const struct diff_report *r, const struct diff_line *lines)
{
    struct diff_summary summary;
    char note[DIFF_NOTE_BYTES];
    diff_sum_up(r->diff, r->floor, r->min_share, &summary);
    (void)fputs("### GPU kernels: ", stdout);
    print_counts(stdout, &summary);
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        (void)printf("\n%c: ", "AB"[side]);
        diff_markdown_code(stdout, r->side[side].title);
        (void)printf(", %" PRIu64 " launch%s on ", r->side[side].launches,
                     r->side[side].launches == 1 ? "" : "es");
        diff_markdown_code(stdout, r->side[side].device);
        if (r->side[side].n_devices)
            (void)printf(" (GPU%s %s)", r->side[side].n_devices == 1 ? "" : "s", r->side[side].device_ids);
        (void)putchar('\n');
    }
    if (diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note)[0])
        (void)printf("\n%s\n", note);
    if (r->incomparable)
        (void)printf("\n**Not comparable: %s.**\n", r->incomparable);
    (void)printf("\n%s\n\n```\n", diff_caveat(r->diff));
    print_sums(stdout, &summary);
    (void)fputs("```\n\n| verdict | kernel | A, a launch | B, a launch | change | 95 % | what changed |\n"
                "|---|---|---:|---:|---:|---:|---|\n",
                stdout);
    for (size_t i = 0; i < r->diff->n_pairs && i < r->shown; i++)
        print_markdown_line(&lines[i]);
    diff_print_footer(stdout, r);
}
