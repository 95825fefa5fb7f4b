/* See check_verdict.h. */
#include "check_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"

/* Prints a line that no CI system takes for a command, sanitised: it has names of kernels and GPUs. */
static void print_line(FILE *out, const char *line)
{
    _cleanup_(occ_freep) char *clean = strdup(line);
    if (!clean)
        return;
    occ_text_sanitise(clean);
    (void)fprintf(out, "          | %s\n", clean);
}

static void print_finding(FILE *out, const struct occ_overview *o, const struct occ_finding *f)
{
    const char *name = f->kernel == SIZE_MAX ? NULL : o->kernels[f->kernel].name;
    char line[512];
    (void)snprintf(line, sizeof line, "%.200s: %.1f%% of the GPU time%s%s; %s",
                   name ? name : occ_overview_finding_text(o, f->kind), f->share * 100,
                   f->cause < OCC_PART_COUNT ? ", " : "",
                   f->cause < OCC_PART_COUNT ? occ_part_text(f->cause, 1) : "", occ_change_text(f->change));
    print_line(out, line);
}

/* True if a rule prints the change of the GPU time. */
static bool is_in_a_rule(const struct judgement *judgement)
{
    for (size_t i = 0; i < judgement->n; i++) {
        const struct rule_result *result = &judgement->results[i];
        if (result->rule->metric == RULE_METRIC_GPU_TIME && (result->n_findings > 0 || result->undecided > 0))
            return true;
    }
    return false;
}

void check_verdict_print(FILE *out, const struct sides_gpu_time *time, double floor,
                         const struct judgement *judgement, const char *title)
{
    enum { FINDINGS = 3 };
    const struct occ_overview *o = &time->overview[DIFF_B];
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES], text[SIDES_GPU_TIME_BYTES], line[600];
    bool fails = judgement->count[RULE_FAILS] > 0;
    size_t n = occ_overview_text(o, lines);
    bool has_change = sides_gpu_time_text(time, floor, text)[0] != '\0';
    if (n == 0)
        return;
    if (has_change && !is_in_a_rule(judgement)) {
        (void)snprintf(line, sizeof line, "GPU time: %s", text);
        print_line(out, line);
    }
    if (fails || !has_change) {
        (void)snprintf(line, sizeof line, "GPU time of %s", title);
        print_line(out, line);
    }
    for (size_t i = 0; i < n && (fails || (!has_change && i == 0)); i++)
        print_line(out, lines[i]);
    for (size_t i = 0; i < o->n_findings && i < FINDINGS && fails; i++)
        print_finding(out, o, &o->findings[i]);
}
