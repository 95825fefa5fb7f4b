/* `occq diff` as text; see diff_forms.h. */
#include <inttypes.h>
#include <math.h>

#include "cli/usage.h"
#include "diff_forms.h"

enum { LINE = 2048, INDENT = 2 };

static void print_wrapped(const char *text, int indent)
{
    (void)fprintf(cli_out(), "%*s", indent, "");
    (void)cli_print_wrapped(cli_out(), text, indent, indent ? indent : 3);
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
        (void)snprintf(text, sizeof text, "%s -> %s a launch, %s%s, %s of the time",
                       diff_duration_text(line->mean_ns[DIFF_A], from),
                       diff_duration_text(line->mean_ns[DIFF_B], to), diff_change_text(line->change, change),
                       interval, share);
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
        (void)cli_print_wrapped(cli_out(), note, 0, 0);
    if (r->incomparable)
        (void)fprintf(cli_out(), "Not comparable: %s.\n", r->incomparable);
    (void)cli_print_wrapped(cli_out(), diff_caveat(r->diff), 0, 0);
    (void)fputc('\n', cli_out());
    diff_print_summary(cli_out(), r);
    for (size_t i = 0; i < r->diff->n_pairs && i < r->shown; i++) {
        (void)fputc('\n', cli_out());
        print_line(&lines[i]);
    }
    diff_print_footer(cli_out(), r);
}
