/* `occq diff` as text; see diff_forms.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/sides/verdicts.h"
#include "cli/usage.h"
#include "diff_forms.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { LINE = 2048, INDENT = 2 };

static void print_wrapped(const char *text, int indent)
{
    (void)fprintf(cli_out(), "%*s", indent, "");
    (void)cli_print_wrapped(cli_out(), text, indent, indent ? indent : 3);
}

static void print_verdict(enum diff_verdict verdict, const char *word)
{
    static const enum cli_tone tones[DIFF_VERDICT_COUNT] = {
        [DIFF_WORSE] = CLI_TONE_BAD, [DIFF_BETTER] = CLI_TONE_GOOD, [DIFF_UNDECIDED] = CLI_TONE_UNSURE};
    cli_put_word(cli_out(), tones[verdict], word, 0);
}

static void print_times(const struct diff_line *line)
{
    char from[32], to[32], change[16], low[16], high[16], share[16], interval[64] = "", text[LINE];
    uint32_t side = line->launches[DIFF_A] ? DIFF_A : DIFF_B;
    (void)cli_percent_text(line->share, share, sizeof share);
    if (!isnan(line->low))
        (void)snprintf(interval, sizeof interval, " (95 %%: %s to %s)", diff_change_text(line->low, low),
                       diff_change_text(line->high, high));
    if (line->pair->level == DIFF_ONE_SIDE)
        (void)snprintf(text, sizeof text, "%" PRIu64 " launch%s of %s, %s of the time", line->launches[side],
                       line->launches[side] == 1 ? "" : "es", diff_duration_text(line->mean_ns[side], from),
                       share);
    else
        (void)snprintf(text, sizeof text, "%s -> %s a launch, %s%s%s, %s of the time",
                       diff_duration_text(line->mean_ns[DIFF_A], from),
                       diff_duration_text(line->mean_ns[DIFF_B], to), diff_change_text(line->change, change),
                       diff_work_words(line), interval, share);
    if (diff_config_of(line))
        occ_text_append(text, sizeof text, "", ", configuration %" PRId64, diff_config_of(line));
    print_wrapped(text, INDENT);
}

static void print_line(const struct diff_line *line)
{
#define LEVEL_TEXT(name, word, text) text,
    static const char *const levels[] = {DIFF_LEVELS(LEVEL_TEXT)};
    char text[LINE];
    print_verdict(line->time_verdict, line->verdict);
    (void)snprintf(text, sizeof text, ": %s", line->kernel);
    (void)cli_print_wrapped(cli_out(), text, (int)strlen(line->verdict), 3);
    if (line->range[0]) {
        (void)snprintf(text, sizeof text, "in %s", line->range);
        print_wrapped(text, INDENT);
    }
    print_times(line);
    if (line->reason[0])
        print_wrapped(line->reason, INDENT);
    if (line->changes[0])
        print_wrapped(line->changes, INDENT);
    if (line->advice[0])
        print_wrapped(line->advice, INDENT);
    if (line->pair->level > DIFF_NAME && line->pair->level < DIFF_ONE_SIDE) {
        (void)snprintf(text, sizeof text, "matched: %s", levels[line->pair->level]);
        print_wrapped(text, INDENT);
    }
}

/* ---- groups ---- */

static void print_group(const struct diff_report *r, const struct diff_group_line *lines,
                        const struct diff_group_line *line)
{
    char place[DIFF_PLACE_BYTES], text[DIFF_GROUP_BYTES], all[DIFF_PLACE_BYTES + DIFF_GROUP_BYTES + 4];
    const char *word = diff_group_word(line->group->verdict);
    (void)snprintf(all, sizeof all, "%s: %s", diff_group_place(line, place),
                   diff_group_text(r, lines, line, text));
    print_verdict(line->group->verdict, word);
    (void)fputc(' ', cli_out());
    (void)cli_print_wrapped(cli_out(), all, (int)strlen(word) + 1, INDENT);
}

void diff_print_gpu_time(const struct diff_report *r)
{
    enum diff_verdict verdict = diff_gpu_time_verdict(r);
    char text[SIDES_GPU_TIME_BYTES], all[SIDES_GPU_TIME_BYTES + sizeof DIFF_GPU_TIME_PLACE + 2];
    const char *word = diff_group_word(verdict);
    if (!sides_gpu_time_text(&r->gpu_time, r->floor, text)[0])
        return;
    (void)snprintf(all, sizeof all, DIFF_GPU_TIME_PLACE ": %s", text);
    print_verdict(verdict, word);
    (void)fputc(' ', cli_out());
    (void)cli_print_wrapped(cli_out(), all, (int)strlen(word) + 1, INDENT);
}

void diff_print_others(const struct diff_report *r, const struct diff_group_line *groups)
{
    char text[DIFF_GROUP_BYTES];
    if (diff_control_text(r, text)[0])
        print_wrapped(text, 0);
    if (diff_undecided_text(r, groups, text)[0])
        print_wrapped(text, 0);
}

static int print_groups(const struct diff_report *r, struct occ_error *err)
{
    _cleanup_(occ_freep) struct diff_group_line *lines = diff_make_group_lines(r);
    size_t printed = 0;
    if (!lines)
        return occ_no_memory(err);
    diff_print_gpu_time(r);
    for (const struct diff_group_line *line = NULL;
         printed < r->shown && (line = diff_next_group(r, lines, line)); printed++)
        print_group(r, lines, line);
    diff_print_others(r, lines);
    (void)fputs(r->levels.n > 0 || r->gpu_time.is_known ? "\n" : "", cli_out());
    return 0;
}

void diff_print_heading(const struct diff_report *r)
{
    char side[DIFF_SIDE_BYTES], note[DIFF_NOTE_BYTES];
    print_wrapped(diff_side_text(r, DIFF_A, side), 0);
    print_wrapped(diff_side_text(r, DIFF_B, side), 0);
    if (diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note)[0])
        (void)cli_print_wrapped(cli_out(), note, 0, 0);
    if (r->incomparable)
        (void)fprintf(cli_out(), "Not comparable: %s.\n", r->incomparable);
    (void)cli_print_wrapped(cli_out(), diff_caveat(r->diff), 0, 0);
    (void)fputc('\n', cli_out());
}

int diff_print_text(const struct diff_report *r, const struct diff_line *lines, struct occ_error *err)
{
    diff_print_heading(r);
    int status = print_groups(r, err);
    diff_print_summary(cli_out(), r);
    size_t printed = 0;
    for (const struct diff_line *line = NULL; (line = diff_next_line(r, lines, line, &printed));) {
        (void)fputc('\n', cli_out());
        print_line(line);
    }
    diff_print_footer(cli_out(), r, printed);
    return status;
}
