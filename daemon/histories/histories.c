/* See histories.h. */
#include "histories.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/owners/owner_directory.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/node.h"
#include "support/process.h"
#include "support/text.h"

#define MAX_OPEN        256
#define OWNER_CACHE_KIB 256 /* page cache of an owner's history: a writer gains nothing from a larger one */
#define IDLE_NS         INT64_C(60000000000)
#define REOPEN_NS       INT64_C(500000000)
#define UPKEEP_NS       INT64_C(60000000000)
#define UPKEEP_SOON_NS  INT64_C(20000000)

/* ---- opening and closing ---- */

int occ_histories_path(const struct occ_histories *all, const struct occ_owner *owner, char **ret_path,
                       struct occ_error *err)
{
    const char *path = all->options->path, *file = strrchr(path, '/');
    if (!all->options->split)
        return occ_format_text(ret_path, err, "%s", path);
    return occ_format_text(ret_path, err, "%.*s/%s%s", (int)(file - path), path, owner->name, file);
}

void occ_history_note_use(struct occ_history *h)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(h->collector, &stats);
    if (stats.launches != h->launches_noted)
        occ_owner_directory_note_use(h->path);
    h->launches_noted = stats.launches;
}

static void free_history(const struct occ_histories *all, struct occ_history *h)
{
    if (all->options->split && h->collector)
        occ_history_note_use(h);
    occ_sampler_remove_history(all->options->sampler, h->number);
    occ_collector_free(h->collector);
    occ_store_close(h->store);
    free(h->path);
    free(h);
}

static bool is_alive(int64_t pid, int64_t start_ns)
{
    return pid > 0 && pid <= INT32_MAX && !occ_process_is_gone((int32_t)pid, start_ns);
}

static void end_lost_runs(struct occ_history *h)
{
    struct occ_error err = OCC_ERROR_INIT;
    char hostname[OCC_NODE_NAME_BYTES];
    (void)occ_node_name(hostname, NULL);
    if (occ_store_end_lost_runs(h->store, hostname, NULL, is_alive, &h->lost_runs, &err) != 0)
        occ_log(OCC_LOG_WARNING, "%s: runs of killed daemons stay without an end: %s", h->path, err.message);
}

static void note_failed_reopen(struct occ_history *h, int64_t now_ns, const char *reason,
                               const struct occ_error *err)
{
    if (h->next_reopen_ns == 0)
        occ_log(OCC_LOG_ERROR, "%s %s: %s; it is tried again", h->path, reason, err->message);
    h->next_reopen_ns = now_ns + REOPEN_NS;
    h->reopen_error = *err;
}

static int open_store(const struct occ_histories *all, struct occ_history *h,
                      const struct occ_store_options *store, struct occ_error *err)
{
    int status = all->options->split ? occ_owner_directory_make(h->path, h->owner.uid, err) : 0;
    if (status == 0)
        status = occ_store_open(h->path, store, &h->store, err);
    if (status == 0)
        end_lost_runs(h);
    if (status != OCC_E_FULL || !all->options->waits)
        return status;
    note_failed_reopen(h, occ_monotonic_ns(), "could not be opened", err);
    return occ_store_open_later(h->path, store, &h->store, err);
}

static uint64_t smaller_quota(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The single history of all programs has the limit for all histories. */
static uint64_t quota_of(const struct occ_histories *all, uint64_t own_bytes)
{
    const struct occ_histories_options *options = all->options;
    return smaller_quota(options->store.max_bytes, options->split ? own_bytes : options->max_total_bytes);
}

static int open_files(struct occ_history *h, const struct occ_histories *all, struct occ_error *err)
{
    const struct occ_histories_options *options = all->options;
    struct occ_store_options store = options->store;
    store.like = all->first ? all->first->store : NULL;
    store.cache_kib = options->split ? OWNER_CACHE_KIB : 0;
    store.max_bytes = quota_of(all, 0);
    int status = occ_histories_path(all, &h->owner, &h->path, err);
    if (status == 0)
        status = open_store(all, h, &store, err);
    return status == 0 ? 0 : occ_error_prefix(err, "cannot use the history");
}

static int open_history(struct occ_histories *all, const struct occ_owner *owner,
                        struct occ_history **ret_history, struct occ_error *err)
{
    struct occ_collector_options options = all->options->collector;
    struct occ_history *h = calloc(1, sizeof *h);
    if (!h)
        return occ_no_memory(err);
    *h = (struct occ_history){.context = all->options->context,
                              .number = all->opened,
                              .owner = *owner,
                              .has_unreferenced_names = true};
    options.context = h;
    int status = open_files(h, all, err);
    if (status == 0)
        status = occ_collector_new(h->store, &options, &h->collector, err);
    if (status == 0)
        status = occ_sampler_add_history(all->options->sampler, h->number, h->store, h->collector, err);
    if (status != 0) {
        free_history(all, h);
        return status;
    }
    struct occ_history **link = &all->first;
    while (*link)
        link = &(*link)->next;
    *link = h;
    all->n++;
    all->opened++;
    *ret_history = h;
    return 0;
}

/* Ends runs of killed daemons in histories that are not open; their owners may not come back soon. A history
 * that was closed properly has no write-ahead log. */
static void end_others_lost_runs(const struct occ_histories_options *options)
{
    static const char log[] = "-wal";
    _cleanup_(occ_freep) char *pattern = NULL;
    glob_t found = {0};
    const char *file = strrchr(options->path, '/');
    if (occ_format_text(&pattern, NULL, "%.*s/*%s%s", (int)(file - options->path), options->path, file,
                        log) == 0)
        (void)glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_history h = {.path = found.gl_pathv[i]};
        h.path[strlen(h.path) - strlen(log)] = '\0';
        if (occ_store_open(h.path, &options->store, &h.store, &err) == 0)
            end_lost_runs(&h);
        else
            occ_log(OCC_LOG_WARNING, "%s", err.message);
        occ_store_close(h.store);
    }
    globfree(&found);
}

int occ_histories_open(struct occ_histories *all, const struct occ_histories_options *options,
                       struct occ_error *err)
{
    struct occ_history *first;
    const struct occ_owner root = {.name = "u0", .uid = 0};
    *all = (struct occ_histories){.options = options};
    int status = options->split ? occ_owner_directory_let_shipper_list(options->path, err) : 0;
    if (options->split)
        end_others_lost_runs(options);
    return status != 0 ? status : open_history(all, &root, &first, err);
}

void occ_histories_close(struct occ_histories *all)
{
    while (all->first) {
        struct occ_history *next = all->first->next;
        free_history(all, all->first);
        all->first = next;
    }
    all->n = 0;
}

void occ_histories_configure(struct occ_histories *all, struct occ_histories_options *own,
                             const struct occ_histories_limits *limits)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_collector_options next = limits->collector;
    next.gone = own->collector.gone;
    next.appended = own->collector.appended;
    next.leveled = own->collector.leveled;
    next.memory = own->collector.memory;
    next.committing = own->collector.committing;
    next.accounts = own->collector.accounts;
    own->collector = next;
    own->store.max_bytes = limits->max_bytes;
    own->max_total_bytes = limits->max_total_bytes;
    own->store.ages = limits->ages;
    for (struct occ_history *h = all->first; h; h = h->next) {
        occ_collector_configure(h->collector, &limits->collector);
        h->quota_bytes = 0;
        if (occ_store_set_limits(h->store, quota_of(all, 0), &limits->ages, &err) != 0)
            occ_log(OCC_LOG_ERROR, "%s", err.message);
        h->next_upkeep_ns = 0;
    }
}

void occ_histories_limit(struct occ_histories *all, struct occ_history *h, uint64_t quota_bytes)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (h->quota_bytes == quota_bytes)
        return;
    h->quota_bytes = quota_bytes;
    h->next_upkeep_ns = 0;
    if (occ_store_set_limits(h->store, quota_of(all, quota_bytes), &all->options->store.ages, &err) != 0)
        occ_log(OCC_LOG_ERROR, "%s", err.message);
}

void occ_histories_commit_results(const struct occ_histories *all, struct occ_history *h, int64_t now_ns)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(h->collector, &stats);
    bool due = occ_sampler_has_results(all->options->sampler, h->number) && !stats.stalled &&
               stats.commits == h->commits_seen && now_ns >= h->next_results_ns;
    if (due || stats.commits != h->commits_seen)
        h->next_results_ns = now_ns + all->options->collector.commit_interval_ns;
    h->commits_seen = stats.commits;
    if (due) /* the collector logs a failure and repeats the commit */
        (void)occ_collector_commit(h->collector, now_ns, NULL);
}

enum occ_history_state occ_history_state(const struct occ_history *h)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(h->collector, &stats);
    if (h->next_reopen_ns)
        return h->reopen_error.code == OCC_E_FULL ? OCC_HISTORY_FULL : OCC_HISTORY_REPLACED;
    if (!stats.stalled)
        return OCC_HISTORY_OK;
    return stats.stall_code == OCC_E_FULL        ? OCC_HISTORY_FULL
           : stats.stall_code == OCC_E_READ_ONLY ? OCC_HISTORY_READ_ONLY
           : stats.stall_code == OCC_E_BUSY      ? OCC_HISTORY_LOCKED
                                                 : OCC_HISTORY_STALLED;
}

bool occ_history_is_empty(const struct occ_history *h)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(h->collector, &stats);
    return h->next_reopen_ns && stats.producers == 0;
}

OCC_WORDS(occ_history_state_word, enum occ_history_state, OCC_HISTORY_STATES)

/* ---- upkeep ---- */

static void maintain(const struct occ_histories *all, struct occ_history *h, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t began_ns = occ_monotonic_ns(),
            upkeep_ns = all->options->upkeep_ns ? all->options->upkeep_ns : UPKEEP_NS;
    if (h->lost_runs > 0)
        end_lost_runs(h);
    h->needs_upkeep = false;
    int status = occ_store_maintain(h->store, occ_now_ns(), &h->needs_upkeep, &err);
    int64_t took_ns = occ_monotonic_ns() - began_ns, wait_ns = 10 * took_ns;
    h->next_upkeep_ns = now_ns + (!h->needs_upkeep           ? upkeep_ns
                                  : wait_ns > UPKEEP_SOON_NS ? wait_ns
                                                             : UPKEEP_SOON_NS);
    if (status != 0 && status != OCC_E_BUSY)
        occ_log(OCC_LOG_WARNING, "nothing is deleted by age and size: %s", err.message);
}

/* One step of removing unreferenced names; also in a full history, where it frees space. */
static void collect_names(struct occ_history *h)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool more = false;
    if (h->has_unreferenced_names && !h->next_reopen_ns && occ_history_state(h) <= OCC_HISTORY_FULL &&
        occ_collector_collect_names(h->collector, &more, &err) != 0)
        occ_log(OCC_LOG_WARNING, "names that nothing refers to stay: %s", err.message);
    h->has_unreferenced_names = more;
}

int64_t occ_histories_maintain(struct occ_histories *all, int64_t now_ns)
{
    struct occ_history *first = NULL;
    int64_t wait_ns = -1;
    for (struct occ_history *h = all->first; h; h = h->next)
        if (occ_history_state(h) == OCC_HISTORY_OK && (!first || h->next_upkeep_ns < first->next_upkeep_ns))
            first = h;
    if (first && now_ns >= first->next_upkeep_ns)
        maintain(all, first, now_ns);
    for (struct occ_history *h = all->first; h; h = h->next) {
        collect_names(h);
        wait_ns = h->has_unreferenced_names ? UPKEEP_SOON_NS : wait_ns;
    }
    for (struct occ_history *h = all->first; h; h = h->next)
        if ((h->needs_upkeep || h->lost_runs > 0) && (wait_ns < 0 || h->next_upkeep_ns - now_ns < wait_ns))
            wait_ns = h->next_upkeep_ns > now_ns ? h->next_upkeep_ns - now_ns : 0;
    return wait_ns;
}

static bool has_file(const struct occ_histories *all, const struct occ_owner *owner)
{
    _cleanup_(occ_freep) char *path = NULL;
    return occ_histories_path(all, owner, &path, NULL) == 0 && access(path, F_OK) == 0;
}

/* A pod's history made before its namespace was known stays in use, so that the pod's runs are not split over
 * two histories. */
void occ_histories_owner(const struct occ_histories *all, const struct occ_identity *identity,
                         struct occ_owner *ret_owner)
{
    struct occ_owner own;
    *ret_owner = (struct occ_owner){.name = ""};
    if (!all->options->split)
        return;
    occ_identity_history(identity, ret_owner);
    occ_identity_owner(identity, &own);
    if (strcmp(own.name, ret_owner->name) != 0 && has_file(all, &own))
        *ret_owner = own;
}

struct occ_history *occ_histories_find(const struct occ_histories *all, const struct occ_owner *owner)
{
    struct occ_history *h = all->first;
    while (h && all->options->split && strcmp(h->owner.name, owner->name) != 0)
        h = h->next;
    return h;
}

int occ_histories_of(struct occ_histories *all, const struct occ_owner *owner, int64_t now_ns,
                     struct occ_history **ret_history, struct occ_error *err)
{
    size_t max = all->options->max_open ? all->options->max_open : MAX_OPEN;
    int status = 0;
    *ret_history = occ_histories_find(all, owner);
    if (!*ret_history && all->n >= max)
        return occ_fail(err, OCC_E_FULL, "%zu histories are open already", all->n);
    if (!*ret_history)
        status = open_history(all, owner, ret_history, err);
    if (status == 0)
        (*ret_history)->used_ns = now_ns;
    return status;
}

bool occ_histories_follow(struct occ_histories *all, struct occ_history *h, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    const char *reason = occ_store_reopen_reason(h->store);
    if (!reason || now_ns < h->next_reopen_ns)
        return false;
    int status = all->options->split ? occ_owner_directory_make(h->path, h->owner.uid, &err) : 0;
    if (status == 0)
        status = occ_store_reopen(h->store, &err);
    if (status != 0) {
        note_failed_reopen(h, now_ns, reason, &err);
        return false; /* commits fail, and launches stay in their rings */
    }
    end_lost_runs(h);
    h->next_reopen_ns = 0;
    occ_collector_restart(h->collector, now_ns);
    occ_sampler_restart_history(all->options->sampler, h->number);
    occ_log(OCC_LOG_WARNING, "%s %s: it is opened anew, and recording goes on", h->path, reason);
    return true;
}

struct occ_history *occ_histories_idle(struct occ_histories *all, int64_t now_ns)
{
    int64_t idle_ns = all->options->idle_ns ? all->options->idle_ns : IDLE_NS;
    for (struct occ_history *h = all->first ? all->first->next : NULL; h; h = h->next) {
        if (occ_collector_wait_ns(h->collector, now_ns) >= 0 || h->needs_upkeep)
            h->used_ns = now_ns;
        else if (now_ns - h->used_ns > idle_ns)
            return h;
    }
    return NULL;
}

void occ_histories_remove(const struct occ_histories *all, const struct occ_owner *owner, const char *why)
{
    _cleanup_(occ_freep) char *path = NULL;
    if (occ_histories_path(all, owner, &path, NULL) == 0)
        occ_owner_directory_remove(path, why);
}

void occ_histories_drop(struct occ_histories *all, struct occ_history *history)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_freep) char *spent = NULL;
    struct occ_history **link = &all->first;
    while (*link != history)
        link = &(*link)->next;
    *link = history->next;
    all->n--;
    if (!history->next_reopen_ns && occ_store_finish(history->store, &err) != 0)
        occ_log(OCC_LOG_ERROR, "%s: %s", history->path, err.message);
    else if (all->options->split && !history->next_reopen_ns &&
             occ_store_is_spent(history->store, occ_now_ns()))
        spent = strdup(history->path);
    free_history(all, history);
    if (spent)
        occ_owner_directory_remove(spent, "since all rows were older than retention.hours");
}
