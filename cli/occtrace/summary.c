/* The summary; see summary.h. One thread. */
#include "summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/text.h"

enum { SHOWN_RUNS = 8, LINE = OCC_ERROR_MESSAGE_BYTES + 64 };

void summary_say(const char *format, ...)
{
    char line[LINE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    occ_text_sanitise(line);
    (void)fprintf(stderr, "occtrace: %s\n", line);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

static void say_recorded(const struct occ_run_row *row)
{
    char duration[32];
    const char *devices = row->devices && row->devices[0] ? row->devices : NULL;
    summary_say("%.60s (pid %d): %" PRIu64 " launch%s of %" PRIu64 " kernel%s, %s on %.100s%s",
                file_name(row->exe), row->pid, row->launches, row->launches == 1 ? "" : "es", row->kernels,
                plural(row->kernels), occ_format_duration((int64_t)row->gpu_ns, duration, sizeof duration),
                devices ? devices : "no device",
                row->simulated && !(devices && strstr(devices, "simulated")) ? " - simulated" : "");
}

static void say_weakness(const struct occ_run_row *row)
{
    char cost[64] = "not measured";
    if (row->process_cpu_ns)
        (void)snprintf(cost, sizeof cost, "%.2f%% of its CPU time",
                       100.0 * (double)row->helper_cpu_ns / (double)row->process_cpu_ns);
    bool causes = row->lost && row->lost_text && row->lost_text[0];
    summary_say("  lost: %" PRIu64 "%s%.150s%s; own cost: %s", row->lost, causes ? " (" : "",
                causes ? row->lost_text : "", causes ? ")" : "", cost);
}

/* What a level means, for runs where nothing more is to be said. The words are the history's. */
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

static void say_level(const struct occ_run_row *row)
{
    const char *level = row->level && row->level[0] ? row->level : "unknown";
    const char *why = row->level_reason && row->level_reason[0] ? row->level_reason : level_text(level);
    summary_say("  level: %s%s%.300s", level, why[0] ? ": " : "", why);
}

/* A process of which nothing could be had: one line with the reason is all there is to say. */
static bool is_blank(const struct occ_run_row *row)
{
    return row->launches == 0 && row->lost == 0 && row->level && strcmp(row->level, "nothing") == 0 &&
           row->level_reason && row->level_reason[0];
}

static void say_run(const struct occ_run_row *row)
{
    if (is_blank(row)) {
        summary_say("%.60s (pid %d): nothing was recorded: %.300s", file_name(row->exe), row->pid,
                    row->level_reason);
        return;
    }
    say_recorded(row);
    say_weakness(row);
    say_level(row);
}

static bool any_launches(const struct occ_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        if (runs->rows[i].launches)
            return true;
    return false;
}

void summary_print(const struct occ_runs *runs, const char *db)
{
    size_t shown = runs->n < SHOWN_RUNS ? runs->n : SHOWN_RUNS;
    /* newest first in the history; here in the order in which they started */
    for (size_t i = shown; i-- > 0;)
        say_run(&runs->rows[i]);
    if (runs->n > shown)
        summary_say("and %zu more processes: occq runs%s%s", runs->n - shown, db ? " -d " : "", db ? db : "");
    if (any_launches(runs))
        summary_say("ask: occq top --low-occupancy%s%s", db ? " -d " : "", db ? db : "");
}

void summary_print_absence(const char *reason)
{
    summary_say("nothing was recorded: %s", reason);
}
