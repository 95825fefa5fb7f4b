/* See check_verdict.h. */
#include "check_verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/work.h"
#include "support/cleanup.h"
#include "support/text.h"

/* ---- the question ---- */

/* Sets the filter of the side's runs. False: no filter describes them, such as the newest runs without the
 * other side's runs. */
static bool choose_runs(const struct sides *sides, unsigned which, struct occ_filter *ret_filter)
{
    const struct side *side = &sides->side[which];
    *ret_filter = side->filter;
    if (side->n_runs == 1)
        ret_filter->run = side->runs[0];
    else if (side->last > 0 && side->n_runs > 0)
        ret_filter->first_run = side->runs[side->n_runs - 1];
    return side->n_runs > 0 && (which == DIFF_B || side->n_runs == 1 || side->last == 0);
}

int check_verdict_ask(const struct sides *sides, struct check_verdict *ret_verdict, struct occ_error *err)
{
    struct check_verdict *v = ret_verdict;
    int status = 0;
    *v = (struct check_verdict){.is_known = {false}, .work = diff_work_of(&sides->diff)};
    for (unsigned i = 0; i < DIFF_SIDES && status == 0; i++) {
        const struct side *side = &sides->side[i];
        struct occ_filter filter;
        if (!side->store || !choose_runs(sides, i, &filter))
            continue;
        status = occ_overview_ask(side->store, &filter, &v->overview[i], err);
        v->is_known[i] = status == 0 && v->overview[i].time.window_s > 0;
        v->runs[i] = side->n_runs;
    }
    return status;
}

void check_verdict_free(struct check_verdict *verdict)
{
    for (unsigned i = 0; i < DIFF_SIDES; i++)
        occ_overview_free(&verdict->overview[i]);
}

/* ---- the part that grew ---- */

enum { TIMES = 5 }; /* parts that are no cause of lost occupancy */

/* Returns the seconds in a part of the work of a run of A, and the name of the part. */
static double seconds_of(const struct check_verdict *v, unsigned side, unsigned part, const char **ret_text)
{
    const struct occ_gpu_time *t = &v->overview[side].time;
    const struct {
        const char *text;
        double share;
    } times[TIMES] = {{"waiting for launches", t->launch_wait},
                      {v->overview[side].lost > 0 ? "pauses or lost launches" : "longer pauses", t->pause},
                      {"communication", t->communication},
                      {"copies", t->copies},
                      {"kernels, used", t->used}};
    *ret_text = part < TIMES ? times[part].text : occ_part_text(part - TIMES, 1);
    double work = side == DIFF_B ? v->runs[DIFF_A] * v->work : v->runs[DIFF_A];
    return (part < TIMES ? times[part].share : t->lost[part - TIMES]) * t->window_s / work;
}

static void grown_text(const struct check_verdict *v, char *text, size_t size)
{
    double most = 0;
    text[0] = '\0';
    for (unsigned part = 0; part < TIMES + OCC_PART_COUNT; part++) {
        const char *what;
        char before[32], after[32];
        double a = seconds_of(v, DIFF_A, part, &what), b = seconds_of(v, DIFF_B, part, &what);
        if (!(b - a > most)) /* also without a known ratio of the work */
            continue;
        most = b - a;
        (void)snprintf(text, size,
                       "grew most since the baseline: %s%s, %s -> %s of GPU time for the same work",
                       part < TIMES ? "" : "kernels, ", what,
                       occ_format_duration(llround(a * 1e9), before, sizeof before),
                       occ_format_duration(llround(b * 1e9), after, sizeof after));
    }
}

/* ---- output ---- */

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

void check_verdict_print(FILE *out, const struct check_verdict *verdict, const char *title)
{
    enum { FINDINGS = 3 };
    const struct occ_overview *o = &verdict->overview[DIFF_B];
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES], grown[256];
    size_t n = occ_overview_text(o, lines);
    if (n == 0)
        return;
    (void)snprintf(grown, sizeof grown, "GPU time of %s", title);
    print_line(out, grown);
    for (size_t i = 0; i < n; i++)
        print_line(out, lines[i]);
    if (verdict->is_known[DIFF_A] && verdict->is_known[DIFF_B]) {
        grown_text(verdict, grown, sizeof grown);
        if (grown[0])
            print_line(out, grown);
    }
    for (size_t i = 0; i < o->n_findings && i < FINDINGS; i++)
        print_finding(out, o, &o->findings[i]);
}
