/* See governor.h. */
#include "governor.h"

#include <stdio.h>
#include <string.h>

#define CALM_WINDOWS_MIN 6u   /* a minute */
#define CALM_WINDOWS_MAX 360u /* an hour */

enum { PERCENT_BYTES = 24 };

void occ_governor_init(struct occ_governor *governor, double budget)
{
    *governor = (struct occ_governor){
        .budget = budget, .calm_windows_needed = CALM_WINDOWS_MIN, .since_up = CALM_WINDOWS_MAX};
}

void occ_governor_skip(struct occ_governor *governor, const struct occ_governor_cost *cost)
{
    governor->begin = *cost;
    governor->calm_windows = 0;
}

/* A counter that moved backwards (the thread's clock is gone) counts as no cost. */
static double grown(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) : 0;
}

static double share_since(const struct occ_governor_cost *from, const struct occ_governor_cost *to)
{
    double elapsed = grown(from->now_ns, to->now_ns), cpu = grown(from->process_cpu_ns, to->process_cpu_ns);
    double base = elapsed > cpu ? elapsed : cpu;
    return base > 0 ? grown(from->own_cpu_ns, to->own_cpu_ns) / base : 0;
}

static bool step_down(struct occ_governor *g)
{
    bool was_too_early = g->since_up < CALM_WINDOWS_MIN;
    g->calm_windows = 0;
    if (g->step == OCC_STEP_NOTHING)
        return false;
    if (!was_too_early)
        g->calm_windows_needed = CALM_WINDOWS_MIN;
    else if (g->calm_windows_needed < CALM_WINDOWS_MAX)
        g->calm_windows_needed *= 2;
    g->step++;
    return true;
}

static bool step_up(struct occ_governor *g)
{
    if (g->step == OCC_STEP_FULL || g->calm_windows < g->calm_windows_needed)
        return false;
    g->calm_windows = 0;
    g->since_up = 0;
    g->step--;
    return true;
}

bool occ_governor_round(struct occ_governor *governor, const struct occ_governor_cost *cost)
{
    struct occ_governor *g = governor;
    if (g->begin.now_ns == 0)
        g->begin = *cost;
    if (cost->now_ns - g->begin.now_ns < OCC_GOVERNOR_WINDOW_NS)
        return false;
    g->share = share_since(&g->begin, cost);
    g->begin = *cost;
    g->calm_windows = g->share < g->budget / 2 ? g->calm_windows + 1 : 0;
    if (g->since_up < CALM_WINDOWS_MAX)
        g->since_up++;
    return g->share > g->budget ? step_down(g) : step_up(g);
}

/* Prints a ratio in percent with a point, also where the program's locale has a decimal comma. */
static void print_percent(double ratio, int digits, char text[PERCENT_BYTES])
{
    (void)snprintf(text, PERCENT_BYTES, "%.*g", digits, ratio * 100);
    size_t number = strspn(text, "-0123456789"), separator = strcspn(text + number, "-+e0123456789");
    if (separator == 0)
        return;
    text[number] = '.';
    memmove(text + number + 1, text + number + separator, strlen(text + number + separator) + 1);
}

void occ_governor_describe(const struct occ_governor *governor, char *text, size_t size)
{
    enum { DIGITS_MIN = 2, DIGITS_MAX = 9 };
    char share[PERCENT_BYTES], budget[PERCENT_BYTES];
    int digits = DIGITS_MIN;
    do {
        print_percent(governor->share, digits, share);
        print_percent(governor->budget, digits, budget);
    } while (strcmp(share, budget) == 0 && digits++ < DIGITS_MAX);
    (void)snprintf(text, size, ": overhead was %s %%, the budget is %s %% (OCCTRACE_BUDGET)", share, budget);
}
