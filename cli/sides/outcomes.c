/* See outcomes.h. */
#include "outcomes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/history/sql_table.h"
#include "support/cleanup.h"
#include "support/clock.h"

enum {
    PATIENCE_MS = 20,
    KEPT_MAX = 256 /* maximum outcomes of a comparison: more than these cannot come from a single change */
};

/* Returns the history of both sides if this user owns it and may write outcomes into it; else NULL. Root too
 * must own it: root would otherwise write into other users' files. */
static const char *own_history(const struct sides *sides)
{
    struct occ_store *a = sides->side[DIFF_A].store, *b = sides->side[DIFF_B].store;
    struct stat file;
    if (sides->cluster || !a || !b)
        return NULL;
    const char *path = cli_history_path(a), *other = cli_history_path(b);
    bool is_current =
        sql_number(occ_store_sqlite(a), "PRAGMA user_version") == (int64_t)occ_store_newest_version();
    return path && other && path[0] && strcmp(path, other) == 0 && is_current && stat(path, &file) == 0 &&
                   file.st_uid == geteuid() && access(path, W_OK) == 0
               ? path
               : NULL;
}

static uint64_t time_of(const struct diff_line *line)
{
    return line->total_ns[DIFF_A] + line->total_ns[DIFF_B];
}

static int by_time(const void *left, const void *right)
{
    const struct diff_line *const *a = left, *const *b = right;
    return (time_of(*a) > time_of(*b)) - (time_of(*a) < time_of(*b));
}

/* Lists outcomes in ascending order of their time. The history keeps the last outcome of two configurations:
 * the outcome with the most time. */
static size_t list_outcomes(const struct diff_report *report, const struct diff_line *lines,
                            struct occ_advice_outcome outcomes[KEPT_MAX])
{
    const struct diff_line *kept[KEPT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < report->diff->n_pairs && n < KEPT_MAX; i++)
        if (lines[i].outcome.change[0])
            kept[n++] = &lines[i];
    if (n > 1)
        qsort(kept, n, sizeof *kept, by_time);
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = kept[i]->outcome;
        outcomes[i].compared_ns = occ_now_ns();
    }
    return n;
}

void diff_keep_outcomes(const struct sides *sides, const struct diff_report *report,
                        const struct diff_line *lines)
{
    struct occ_advice_outcome outcomes[KEPT_MAX];
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE, .busy_timeout_ms = PATIENCE_MS};
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    const char *path = report->incomparable ? NULL : own_history(sides);
    size_t n = path ? list_outcomes(report, lines, outcomes) : 0;
    if (n > 0 && occ_store_open(path, &options, &store, NULL) == 0)
        (void)occ_store_put_outcomes(store, outcomes, n, NULL);
}
