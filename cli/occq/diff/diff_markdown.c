/* `occq diff --markdown`; see diff_forms.h. */
#include <inttypes.h>

#include "cli/sides/verdicts.h"
#include "diff_forms.h"
#include "support/cleanup.h"

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

/* Prints what changed, after the reason for the verdict. */
static void print_changes(const struct diff_line *line)
{
    const char *const texts[] = {line->reason, line->changes, line->advice};
    const char *separator = "";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!texts[i][0])
            continue;
        (void)fprintf(cli_out(), "%s%s", separator, texts[i]);
        separator = "; ";
    }
}

static void print_markdown_line(const struct diff_line *line)
{
    char from[32], to[32], change[16], low[16], high[16];
    (void)fprintf(cli_out(), "| %s | ", line->verdict);
    diff_markdown_code(cli_out(), line->kernel);
    if (diff_config_of(line))
        (void)fprintf(cli_out(), " configuration %" PRId64, diff_config_of(line));
    if (line->range[0]) {
        (void)fprintf(cli_out(), " in ");
        diff_markdown_code(cli_out(), line->range);
    }
    (void)fprintf(
        cli_out(), " | %s | %s | %s%s | %s to %s | ", diff_duration_text(line->mean_ns[DIFF_A], from),
        diff_duration_text(line->mean_ns[DIFF_B], to), diff_change_text(line->change, change),
        diff_work_words(line), diff_change_text(line->low, low), diff_change_text(line->high, high));
    print_changes(line);
    (void)fputs(" |\n", cli_out());
}

static int print_groups(const struct diff_report *r, struct occ_error *err)
{
    _cleanup_(occ_freep) struct diff_group_line *lines = diff_make_group_lines(r);
    char text[DIFF_GROUP_BYTES];
    if (!lines)
        return occ_no_memory(err);
    if (sides_gpu_time_text(&r->gpu_time, r->floor, text)[0])
        (void)fprintf(cli_out(), "- **%s** " DIFF_GPU_TIME_PLACE ": %s\n",
                      diff_group_word(diff_gpu_time_verdict(r)), text);
    for (const struct diff_group_line *line = NULL; (line = diff_next_group(r, lines, line));) {
        (void)fprintf(cli_out(), "- **%s** in %s", diff_group_word(line->group->verdict), line->level);
        if (line->name[0]) {
            (void)fputc(' ', cli_out());
            diff_markdown_code(cli_out(), line->name);
        }
        (void)fprintf(cli_out(), ": %s\n", diff_group_text(r, lines, line, text));
    }
    if (diff_control_text(r, text)[0])
        (void)fprintf(cli_out(), "- %s\n", text);
    return 0;
}

int diff_print_markdown(const struct diff_report *r, const struct diff_line *lines, struct occ_error *err)
{
    struct diff_summary summary;
    char note[DIFF_NOTE_BYTES], kernels[DIFF_KERNELS_BYTES];
    diff_sum_up_runs(r->diff, r->floor, r->min_share, &summary);
    (void)fprintf(cli_out(), "### GPU: %s\n", diff_headline(r));
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        (void)fprintf(cli_out(), "\n%c: ", "AB"[side]);
        diff_markdown_code(cli_out(), r->side[side].title);
        (void)fprintf(cli_out(), ", %" PRIu64 " launch%s on ", r->side[side].launches,
                      r->side[side].launches == 1 ? "" : "es");
        diff_markdown_code(cli_out(), r->side[side].device);
        if (r->side[side].n_devices)
            (void)fprintf(cli_out(), " (GPU%s %s)", r->side[side].n_devices == 1 ? "" : "s",
                          r->side[side].device_ids);
        (void)fputc('\n', cli_out());
    }
    if (diff_devices_note(&r->side[DIFF_A], &r->side[DIFF_B], note)[0])
        (void)fprintf(cli_out(), "\n%s\n", note);
    if (diff_kernels_note(r, kernels)[0])
        (void)fprintf(cli_out(), "\nNote: %s.\n", kernels);
    if (r->incomparable)
        (void)fprintf(cli_out(), "\n**Not comparable: %s.**\n", r->incomparable);
    (void)fprintf(cli_out(), "\n%s\n\n", diff_caveat(r->diff));
    int status = print_groups(r, err);
    (void)fputs("\n```\n", cli_out());
    diff_print_sums(cli_out(), &summary);
    diff_print_counts(cli_out(), &summary);
    (void)fputs("```\n", cli_out());
    size_t printed = 0;
    for (const struct diff_line *line = NULL; (line = diff_next_line(r, lines, line, &printed));) {
        if (printed == 1)
            (void)fputs("\n| verdict | kernel | A, a launch | B, a launch | change | 95 % | what changed |\n"
                        "|---|---|---:|---:|---:|---:|---|\n",
                        cli_out());
        print_markdown_line(line);
    }
    diff_print_footer(cli_out(), r, printed);
    return status;
}
