/* Finds ranges by a text: a range's path, a path that a narrow screen cut, or a regular expression. One
 * thread. */
#include <string.h>

#include "query.h"
#include "support/array.h"
#include "support/cut.h"
#include "support/regexp.h"

/* Selects ranges by the one member that is set. */
struct range_condition {
    const char *path, *cut;
    struct occ_regexp *regexp;
};

/* True for the range itself, or a range inside it: a launch refers to the innermost range. */
static bool is_within(const char *path, const char *outer)
{
    size_t n = strlen(outer);
    return strncmp(path, outer, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool holds(const struct range_condition *condition, const char *path)
{
    return condition->path  ? is_within(path, condition->path)
           : condition->cut ? occ_text_is_cut_of(condition->cut, path)
                            : !condition->regexp || occ_regexp_matches(condition->regexp, path);
}

static const char *path_of(sqlite3_stmt *stmt)
{
    const char *path = (const char *)sqlite3_column_text(stmt, 2);
    return path ? path : "";
}

static bool add_group(struct occ_resolved_filter *f, const char *path, bool is_backward)
{
    if (!occ_grow((void **)&f->range_groups, &f->ranges_allocated, f->n_ranges, UINT32_MAX,
                  sizeof *f->range_groups))
        return false;
    f->range_groups[f->n_ranges++] =
        (struct occ_range_group){path ? occ_arena_copy(&f->range_texts, path) : NULL, is_backward};
    return !f->range_texts.failed;
}

/* Finds matching ranges of the runs. Equal paths, which follow each other, are one group, or two groups if
 * phases are told apart. Group 0 has no path. */
static int find_ranges(struct occ_store *s, const struct range_condition *condition,
                       struct occ_resolved_filter *f, struct occ_error *err)
{
    sqlite3_stmt *stmt = f->n_runs == 1 ? occ_store_query(s, OCC_SQL_RANGES_OF_RUN, OCC_INTS(f->runs[0].id))
                                        : occ_store_query(s, OCC_SQL_RANGES, NULL, 0);
    bool matches = false, done = add_group(f, NULL, false);
    int rc = done ? 0 : occ_no_memory(err);
    while (occ_store_next(s, stmt, &rc, err)) {
        const struct occ_range_group *last = &f->range_groups[f->n_ranges - 1];
        const char *path = path_of(stmt);
        bool is_backward = f->by_phase && sqlite3_column_int(stmt, 3) != 0;
        uint64_t key = occ_range_key(sqlite3_column_int64(stmt, 0), (uint64_t)sqlite3_column_int64(stmt, 1));
        if (!last->path || strcmp(last->path, path) != 0 || last->is_backward != is_backward) {
            matches = holds(condition, path);
            done = add_group(f, path, is_backward);
        }
        if (!done || (matches && occ_map_put(&f->ranges, key, (uint32_t)f->n_ranges - 1) == OCC_MAP_NONE))
            rc = occ_no_memory(err);
    }
    return rc;
}

/* Checks if a range has the text as its path, or as the cut form of its path. */
static int find_path(struct occ_store *s, const char *text, struct range_condition *ret_condition,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_RANGES, NULL, 0);
    bool is_path = false, is_cut = strstr(text, OCC_ELLIPSIS) != NULL;
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        is_path = is_path || strcmp(path_of(stmt), text) == 0;
    *ret_condition =
        (struct range_condition){.path = is_path ? text : NULL, .cut = !is_path && is_cut ? text : NULL};
    return rc;
}

int occ_filter_resolve_ranges(struct occ_store *s, const char *text, struct occ_resolved_filter *f,
                              struct occ_error *err)
{
    struct range_condition condition = {0};
    struct occ_error why = OCC_ERROR_INIT;
    int rc = text ? find_path(s, text, &condition, err) : 0;
    if (rc == 0 && text && !condition.path && !condition.cut &&
        occ_regexp_compile(text, &condition.regexp, &why) != 0)
        rc = why.code == OCC_E_INVALID
                 ? occ_fail(err, OCC_E_USAGE, "no range has this path, and %s", why.message)
                 : occ_fail(err, why.code, "%s", why.message);
    if (rc == 0 && (text || f->by_range))
        rc = find_ranges(s, &condition, f, err);
    if (rc == 0 && condition.regexp && f->ranges.used == 0 && strstr(text, OCC_ASCII_ELLIPSIS)) {
        f->n_ranges = 0;
        rc = find_ranges(s, &(struct range_condition){.cut = text}, f, err);
    }
    occ_regexp_free(condition.regexp);
    return rc;
}
