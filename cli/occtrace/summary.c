/* The summary; see summary.h. One thread. */
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/text.h"
#include "trace.h"

enum { SHOWN_RUNS = 8 };

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

static void print_recorded(const struct occ_run_row *row)
{
    char duration[32];
    const char *devices = row->devices && row->devices[0] ? row->devices : NULL;
    trace_note("%.60s (pid %d): %" PRIu64 " launch%s of %" PRIu64 " kernel%s, %s on %.100s%s",
               file_name(row->exe), row->pid, row->launches, row->launches == 1 ? "" : "es", row->kernels,
               plural(row->kernels), occ_format_duration((int64_t)row->gpu_ns, duration, sizeof duration),
               devices ? devices : "no device",
               row->simulated && !(devices && strstr(devices, "simulated")) ? " - simulated" : "");
}

/* What CUPTI held when a signal ended the program (at most a flush interval) is not counted anywhere. */
static void print_losses(const struct occ_run_row *row, bool was_killed)
{
    char cost[64] = "not measured";
    if (row->process_cpu_ns)
        (void)snprintf(cost, sizeof cost, "%.2f%% of the program's CPU time",
                       100.0 * (double)row->helper_cpu_ns / (double)row->process_cpu_ns);
    bool causes = row->lost && row->lost_text && row->lost_text[0];
    trace_note("  lost: %s%" PRIu64 "%s%.150s%s%s; overhead: %s", was_killed ? "at least " : "", row->lost,
               causes ? " (" : "", causes ? row->lost_text : "", causes ? ")" : "",
               was_killed ? " (killed: up to 1 s of launches)" : "", cost);
}

/* What a level means, where the run has no reason. The words are the history's. */
static const char *level_text(const char *level)
{
    static const struct {
        const char *word, *text;
    } levels[] = {
        {"full", "launches, times and hardware counters"},
        {"gpm", "launches, times and device-level counters"},
        {"trace", "launches and times; occupancy is the model's"},
        {"shapes", "launch configurations only"},
    };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i].word, level) == 0)
            return levels[i].text;
    return "";
}

static void print_level(const struct occ_run_row *row)
{
    const char *level = row->level && row->level[0] ? row->level : "unknown";
    const char *why = row->level_reason && row->level_reason[0] ? row->level_reason : level_text(level);
    trace_note("  level: %s%s%.300s", level, why[0] ? ": " : "", why);
}

/* A process without records: one line with the reason is enough. */
static bool is_blank(const struct occ_run_row *row)
{
    return row->launches == 0 && row->lost == 0 && row->level && strcmp(row->level, "nothing") == 0 &&
           row->level_reason && row->level_reason[0];
}

static void print_run(const struct occ_run_row *row, bool was_killed)
{
    if (is_blank(row)) {
        trace_note("%.60s (pid %d): nothing was recorded: %.300s", file_name(row->exe), row->pid,
                   row->level_reason);
        return;
    }
    print_recorded(row);
    print_losses(row, was_killed);
    print_level(row);
}

static bool any_launches(const struct occ_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        if (runs->rows[i].launches)
            return true;
    return false;
}

void summary_print(const struct occ_runs *runs, const char *db, bool was_killed)
{
    size_t shown = runs->n < SHOWN_RUNS ? runs->n : SHOWN_RUNS;
    char run[32] = "";
    if (runs->n == 1)
        (void)snprintf(run, sizeof run, " --run %" PRId64, runs->rows[0].id);
    /* newest first in the history; here in the order in which they started */
    for (size_t i = shown; i-- > 0;)
        print_run(&runs->rows[i], was_killed);
    if (runs->n > shown)
        trace_note("and %zu more processes: occq runs%s%s", runs->n - shown, db[0] ? " -d " : "", db);
    if (any_launches(runs))
        trace_note("next: occq top --low-occupancy%s%s%s", run, db[0] ? " -d " : "", db);
}
