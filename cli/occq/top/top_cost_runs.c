/* See top_cost_runs.h. */
#include "top_cost_runs.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/history/names.h"
#include "support/array.h"
#include "support/text.h"

#define WORD(word, expression, among) word,
#define INSIDE_WORD(word, by)         word,
#define UNIT(word, expression, among) {{expression, among}, OCC_BILL_BY_RUN},
#define INSIDE_UNIT(word, by)         {{"NULL", "NULL"}, by},
const char *const top_cost_words[] = {TOP_COST_BY(WORD) TOP_COST_INSIDE(INSIDE_WORD) NULL};
static const struct unit {
    const char *expressions[2]; /* of one history, of all */
    enum occ_bill_by by;
} units[] = {TOP_COST_BY(UNIT) TOP_COST_INSIDE(INSIDE_UNIT)};

static const struct unit *unit_of(const char *word)
{
    size_t at = 0;
    while (strcmp(top_cost_words[at], word) != 0)
        at++;
    return &units[at];
}

enum occ_bill_by top_cost_unit(const char *word)
{
    return unit_of(word)->by;
}

/* ---- runs ---- */

struct list {
    struct occ_bill_run *runs;
    size_t n, allocated;
};

static int add_run(struct list *list, sqlite3_stmt *s, struct occ_arena *texts, struct occ_error *err)
{
    const char *key = (const char *)sqlite3_column_text(s, 1);
    if (!occ_grow((void **)&list->runs, &list->allocated, list->n, UINT32_MAX, sizeof *list->runs))
        return occ_no_memory(err);
    if (key && !(key = occ_arena_copy(texts, key)))
        return occ_no_memory(err);
    list->runs[list->n++] = (struct occ_bill_run){.run = sqlite3_column_int64(s, 0),
                                                  .key = key,
                                                  .has_epoch = sqlite3_column_int(s, 2) != 0,
                                                  .is_billed = sqlite3_column_int(s, 3) != 0};
    return 0;
}

static int read_runs(struct occ_store *store, const char *owner, const struct top_cost_choice *choice,
                     struct list *list, struct occ_arena *texts, struct occ_error *err)
{
    char sql[1024];
    int status = 0, step = 0;
    sqlite3_stmt *s = NULL;
    sqlite3 *db = occ_store_sqlite(store);
    (void)snprintf(sql, sizeof sql, "SELECT run_id, %s, time_base = 'epoch', %s%s FROM run ORDER BY run_id",
                   unit_of(choice->by)->expressions[owner != NULL],
                   choice->needs_epoch ? "time_base = 'epoch' AND " : "", OCC_FILTER_RUNS);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        return occ_fail(err, OCC_E_CORRUPT, "the runs cannot be read: %s", sqlite3_errmsg(db));
    occ_filter_bind_runs(s, choice->filter);
    if (owner)
        (void)sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, ":owner"), owner, -1, SQLITE_STATIC);
    while (status == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        status = add_run(list, s, texts, err);
    if (status == 0 && step != SQLITE_DONE)
        status = occ_fail(err, OCC_E_CORRUPT, "the runs cannot be read: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(s);
    return status;
}

/* ---- histories ---- */

static int open_one(const struct cli_args *common, const char *owner, const struct top_cost_choice *choice,
                    struct top_cost_runs *runs, struct occ_error *err)
{
    struct occ_bill_history *history = &runs->list[runs->n];
    struct kernel_names *names = NULL;
    struct list list = {0};
    int status = cli_open_history(common, OCC_STORE_READ, &history->store, err);
    if (status != 0)
        return status;
    runs->owners[runs->n++] = owner;
    status = read_runs(history->store, owner, choice, &list, &runs->texts, err);
    history->runs = list.runs;
    history->n_runs = list.n;
    if (status == 0 && top_cost_unit(choice->by) == OCC_BILL_BY_KERNEL)
        status = kernel_names_load(history->store, NULL, &names, err);
    history->names = names;
    return status;
}

static int allocate(struct top_cost_runs *runs, size_t n, struct occ_error *err)
{
    *runs = (struct top_cost_runs){.list = calloc(n + 1, sizeof *runs->list),
                                   .owners = calloc(n + 1, sizeof *runs->owners)};
    return runs->list && runs->owners ? 0 : occ_no_memory(err);
}

int top_cost_open(const struct cli_args *common, const struct top_cost_choice *choice,
                  struct top_cost_runs *ret_runs, struct occ_error *err)
{
    int status = allocate(ret_runs, 1, err);
    return status == 0 ? open_one(common, NULL, choice, ret_runs, err) : status;
}

/* Each open history has three files, and all are open at once. */
static void allow_files(size_t histories)
{
    enum { FILES = 3, OTHERS = 64 };
    struct rlimit limit;
    rlim_t needed = histories * FILES + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return;
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int top_cost_open_all(const struct cli_args *common, const struct cli_owners *owners,
                      const struct top_cost_choice *choice, struct top_cost_runs *ret_runs,
                      struct occ_error *err)
{
    struct cli_args one = *common;
    int status = allocate(ret_runs, owners->n, err);
    allow_files(owners->n);
    if (status == 0 && owners->closed > 0)
        status =
            occ_fail(err, OCC_E_IO,
                     "you may not read the histories of %zu owner%s below %s: the time that owners share "
                     "cannot be divided",
                     owners->closed, owners->closed == 1 ? "" : "s", common->all_users);
    for (size_t i = 0; i < owners->n && status == 0; i++) {
        one.db = owners->list[i].path;
        status = open_one(&one, owners->list[i].name, choice, ret_runs, err);
        if (status == OCC_E_NOT_FOUND)
            status = 0;
    }
    return status;
}

const char *top_cost_kernel_name(const void *names, int64_t kernel)
{
    struct occ_row_kernel row = {.id = kernel};
    kernel_names_apply(names, &row);
    return row.short_name;
}

void top_cost_runs_free(struct top_cost_runs *runs)
{
    for (size_t i = 0; runs->list && i < runs->n; i++) {
        free((void *)runs->list[i].runs);
        kernel_names_free((struct kernel_names *)runs->list[i].names);
        occ_store_close(runs->list[i].store);
    }
    free(runs->list);
    free((void *)runs->owners);
    occ_arena_free(runs->texts.blocks);
}

/* ---- neighbours ---- */

/* Cuts the last name of the path. Returns the name; NULL: there is none. */
static char *cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return NULL;
    *slash = 0;
    return slash + 1;
}

/* Returns true if another directory than `own` has a history, or if the directories may not be listed, as
 * those of a service. */
static bool has_others(const char *directory, const char *own)
{
    DIR *listing = opendir(directory);
    bool found = !listing && errno == EACCES;
    const struct dirent *entry = NULL;
    while (listing && !found && (entry = readdir(listing))) {
        _cleanup_(occ_freep) char *path = NULL;
        found = entry->d_name[0] != '.' && strcmp(entry->d_name, own) != 0 &&
                occ_format_text(&path, NULL, "%s/%s/history.db", directory, entry->d_name) == 0 &&
                (access(path, F_OK) == 0 || errno == EACCES);
    }
    if (listing)
        (void)closedir(listing);
    return found;
}

bool top_cost_has_neighbours(struct occ_store *store)
{
    _cleanup_(occ_freep) char *path = strdup(cli_history_path(store));
    const char *name = path ? cut_name(path) : NULL;
    bool is_named = name && strcmp(name, "history.db") == 0;
    const char *own = is_named ? cut_name(path) : NULL;
    return own && has_others(path, own);
}
