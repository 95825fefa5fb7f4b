/* See verdict.h. */
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/fit.h"
#include "cli/screen.h"
#include "cli/values.h"
#include "names/kernel_names.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { WORST = 3, WIDTH = 80, LEAST_WIDTH = 40, LEAST_NAME = 8, NAMES_MAX = 4096 };

/* ---- lines ---- */

static size_t width(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST_WIDTH ? size.ws_col : WIDTH;
}

void summary_line(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    occ_text_sanitise(line);
    cli_put_line(stderr, line, width());
}

/* ---- names of the worst kernels ---- */

/* Kernels of one short name. */
struct namesakes {
    struct occ_kernel_name *list;
    size_t n, allocated;
};

static void free_namesakes(struct namesakes *namesakes)
{
    for (size_t i = 0; i < namesakes->n; i++) {
        free((char *)(uintptr_t)namesakes->list[i].short_name);
        free((char *)(uintptr_t)namesakes->list[i].demangled);
        free(namesakes->list[i].name);
    }
    free(namesakes->list);
}

static bool add_namesake(struct namesakes *namesakes, int64_t id, const char *name, const char *demangled)
{
    if (!occ_grow((void **)&namesakes->list, &namesakes->allocated, namesakes->n, NAMES_MAX,
                  sizeof *namesakes->list))
        return false;
    struct occ_kernel_name *added = &namesakes->list[namesakes->n++];
    *added = (struct occ_kernel_name){
        .id = id, .short_name = strdup(name), .demangled = strdup(demangled ? demangled : name)};
    return added->short_name && added->demangled;
}

/* Loads all kernels of the history with this short name. Returns false without memory or if there are too
 * many. */
static bool load_namesakes(sqlite3 *db, const char *name, struct namesakes *namesakes)
{
    sqlite3_stmt *row = NULL;
    bool is_complete =
        sqlite3_prepare_v2(db, "SELECT kernel_id, kernel, kernel_demangled FROM kernel WHERE kernel = ?", -1,
                           &row, NULL) == SQLITE_OK &&
        sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC) == SQLITE_OK;
    while (is_complete && sqlite3_step(row) == SQLITE_ROW)
        is_complete =
            add_namesake(namesakes, sqlite3_column_int64(row, 0), (const char *)sqlite3_column_text(row, 1),
                         (const char *)sqlite3_column_text(row, 2));
    (void)sqlite3_finalize(row);
    return is_complete;
}

/* Returns the name that occq prints, to be freed: the short name, with the parts in which kernels of that
 * name differ. NULL: no memory. */
static char *name_of(struct occ_store *store, int64_t kernel, const char *short_name)
{
    struct namesakes same = {0};
    char *name = NULL;
    if (load_namesakes(occ_store_sqlite(store), short_name, &same) && same.n > 1 &&
        occ_kernel_names_distinguish(same.list, same.n) == 0)
        for (size_t i = 0; i < same.n; i++)
            if (same.list[i].id == kernel && same.list[i].name)
                name = strdup(same.list[i].name);
    free_namesakes(&same);
    return name ? name : cli_screen_text(short_name);
}

/* ---- the worst kernels ---- */

struct worst {
    struct occ_worst_kernel kernels[WORST];
    char *names[WORST];
    char rest[WORST][128]; /* the line behind the name */
    size_t n;
};

static void free_worst(struct worst *worst)
{
    for (size_t i = 0; i < worst->n; i++)
        free(worst->names[i]);
}

static bool find_worst(struct occ_store *store, const struct occ_overview *o, struct worst *ret_worst)
{
    size_t n = 0;
    if (occ_overview_worst(o, WORST, ret_worst->kernels, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct occ_worst_kernel *kernel = &ret_worst->kernels[i];
        char share[16], used[16], why[OCC_WHY_BYTES];
        ret_worst->names[i] =
            name_of(store, o->totals.kernels[kernel->kernel].kernel, o->kernels[kernel->kernel].name);
        if (!ret_worst->names[i])
            return false;
        ret_worst->n = i + 1;
        (void)occ_overview_why(o, kernel->kernel, why);
        (void)snprintf(ret_worst->rest[i], sizeof ret_worst->rest[i], " %6s of GPU time, %6s used%s%s",
                       cli_percent_text(kernel->share, share, sizeof share),
                       cli_percent_text(kernel->used, used, sizeof used), why[0] ? ": " : "", why);
    }
    return true;
}

/* Replaces names that are wider than `room` by family and tile, if a rule knows the kernel; equal ones get
 * the kernel's number. */
static bool use_labels(struct worst *worst, const struct occ_overview *o, size_t room)
{
    const char *labels[WORST] = {NULL};
    for (size_t i = 0; i < worst->n; i++) {
        const char *label = o->kernels[worst->kernels[i].kernel].label;
        labels[i] = label[0] && cli_text_width(worst->names[i]) > room ? label : NULL;
    }
    for (size_t i = 0; i < worst->n; i++) {
        char id[24] = "", *text = NULL;
        for (size_t k = 0; k < worst->n && labels[i]; k++)
            if (k != i && strcmp(labels[i], labels[k] ? labels[k] : worst->names[k]) == 0)
                (void)snprintf(id, sizeof id, " #%" PRId64,
                               o->totals.kernels[worst->kernels[i].kernel].kernel);
        if (!labels[i])
            continue;
        if (occ_format_text(&text, NULL, "%s%s", labels[i], id) != 0)
            return false;
        free(worst->names[i]);
        worst->names[i] = text;
    }
    return true;
}

/* Prints a line for each kernel: name, share of the GPU time, used part, cause. */
static bool print_worst(struct worst *worst, const struct occ_overview *o)
{
    size_t longest = 0, name = 0;
    for (size_t i = 0; i < worst->n; i++)
        longest = strlen(worst->rest[i]) > longest ? strlen(worst->rest[i]) : longest;
    size_t room = width() > longest + 4 + LEAST_NAME ? width() - longest - 4 : LEAST_NAME;
    if (worst->n > 0 && !use_labels(worst, o, room))
        return false;
    if (worst->n > 0 && !cli_fit_texts(worst->names, worst->n, room, cli_screen_ellipsis()))
        return false;
    for (size_t i = 0; i < worst->n; i++)
        name = cli_text_width(worst->names[i]) > name ? cli_text_width(worst->names[i]) : name;
    for (size_t i = 0; i < worst->n; i++)
        summary_line("    %s%*s%s", worst->names[i], (int)(name - cli_text_width(worst->names[i])), "",
                     worst->rest[i]);
    return true;
}

/* ---- the next step ---- */

/* Prints a command with its filter and history. It is not wrapped, so that it can be copied. */
static void print_step(const struct verdict_runs *runs, const char *what, const char *command,
                       const char *more)
{
    char run[32] = "", line[512];
    _cleanup_(occ_freep) char *quoted = runs->db[0] ? occ_text_quote(runs->db) : NULL;
    if (runs->run > 0)
        (void)snprintf(run, sizeof run, " --run %" PRId64, runs->run);
    (void)snprintf(line, sizeof line, "  %s: occq %s%s%s%s", what, command, run, quoted ? " -d " : "",
                   quoted ? quoted : "");
    occ_text_sanitise(line);
    (void)fputs(line, stderr);
    if (!quoted && strlen(line) + strlen(more) <= width())
        (void)fputs(more, stderr);
    (void)fputc('\n', stderr);
}

static void print_next(const struct verdict_runs *runs, const struct occ_overview *o,
                       const struct worst *worst)
{
    char command[64] = "top", more[64] = "";
    double lost = 0, idle = o->time.launch_wait + o->time.pause;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        lost += o->time.lost[i];
    if (runs->run > 0)
        (void)snprintf(more, sizeof more, "   page: occq report --run %" PRId64 " -o r.html", runs->run);
    if (idle >= OCC_FINDING_MIN && idle > lost) {
        print_step(runs, "why the GPU waits", "top --gaps", more);
    } else if (worst->n > 0) {
        (void)snprintf(command, sizeof command, "show %" PRId64,
                       o->totals.kernels[worst->kernels[0].kernel].kernel);
        print_step(runs, "why and what to do", command, more);
    } else {
        print_step(runs, "all kernels", command, more);
    }
}

/* ---- the verdict ---- */

/* Prints the source of the occupancy, why it was not measured, and the overhead. */
static void print_sources(const struct verdict_runs *runs, const struct occ_overview *o, const char *source)
{
    char text[512], percent[32] = "not measured";
    (void)snprintf(text, sizeof text, "%s", source);
    if (runs->unmeasured[0])
        occ_text_append(text, sizeof text,
                        o->is_simulated ? "; not measured: " : "; cause: ", "%.200s (occq doctor)",
                        runs->unmeasured);
    if (isfinite(runs->overhead))
        (void)snprintf(percent, sizeof percent, "%.2f%% of CPU time%s", 100 * runs->overhead,
                       runs->is_short ? " (short run)" : "");
    summary_line("  %s; overhead: %s", text, percent);
}

static bool print_lines(struct occ_store *store, const struct verdict_runs *runs,
                        const struct occ_overview *o)
{
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES];
    struct worst worst = {.n = 0};
    size_t n = occ_overview_text(o, lines);
    bool is_complete = find_worst(store, o, &worst);
    for (size_t i = 0; i + 1 < n; i++)
        summary_line("  %s", lines[i]);
    is_complete = is_complete && print_worst(&worst, o);
    if (n > 0) {
        print_sources(runs, o, lines[n - 1]); /* the last line has the source */
        print_next(runs, o, &worst);
    }
    free_worst(&worst);
    return is_complete;
}

int verdict_print(struct occ_store *store, const struct verdict_runs *runs, struct occ_error *err)
{
    const struct occ_filter filter = {.session = runs->session};
    _cleanup_(occ_top_free) struct occ_top top = {0};
    _cleanup_(occ_overview_free) struct occ_overview overview = {0};
    int rc = occ_store_top(store, &filter, OCC_TOP_BY_KERNEL, &top, err);
    if (rc == 0)
        rc = occ_overview_make_times(store, &filter, &top, &overview, err);
    return rc == 0 && !print_lines(store, runs, &overview) ? occ_no_memory(err) : rc;
}
