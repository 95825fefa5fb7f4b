/* See collect.h. */
#include "collect.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "cluster/ask/tables.h"
#include "cluster/seen/changes.h"
#include "layers.h"
#include "store/store.h"
#include "support/text.h"

#define NS_MAX       (INT64_C(1) << 53)     /* GPU time of a row in a profile: sums stay exact */
#define LAUNCHES_MAX INT64_C(1000000000000) /* more launches than a GPU can start in a minute */

/* Runs of this node; minute -1 is the row of a run. */
static const char read_changes[] =
    "SELECT c.change, c.minute, c.run_id FROM stored_minute_change c JOIN stored_run r USING(run_id) WHERE "
    "c.change > ?1 AND c.minute >= ?2 AND r.source_hash IS NULL AND r.time_base IS NOT 'unknown' ORDER BY "
    "c.change";
enum { CHANGE, CHANGED_MINUTE, CHANGED_RUN };

/* A program's claim makes a job of its own: it adds nothing to the job that it names. */
static const char read_job[] =
    "SELECT coalesce(iif(r.job_trust = 'claimed', 'claimed:', '') || coalesce('slurm:' || r.slurm_job, "
    "'pod:' || r.k8s_pod_uid, 'container:' || r.container), '" OCC_SUMS_NO_JOB
    "'), r.slurm_job, r.k8s_namespace, r.k8s_pod, r.k8s_pod_uid, r.container, r.job_trust "
    "FROM stored_run r WHERE r.run_id = ?1";
enum { N_JOB_TEXTS = 7 };

static const char read_rows[] =
    "SELECT m.config_id, m.launches, m.total_duration_ns, CASE WHEN d.uuid IS NULL THEN d.name "
    "ELSE " OCC_SHIP_UUID(
        "d.uuid") " END, d.name, d.memory_bytes, k.short, coalesce(d.sm_count * c.max_warps_per_sm, 0), "
                  "c.theoretical, c.expected_achieved_low, c.expected_achieved_high, c.expected_elapsed_low, "
                  "e.achieved_sum, e.achieved_ns, e.achieved_error_sum, e.achieved_error_ns, "
                  "1.0 * c.grid_x * c.grid_y * c.grid_z, 1.0 * c.block_x * c.block_y * c.block_z, "
                  "d.simulated "
                  "FROM stored_minute m JOIN stored_launch_config c USING(config_id) JOIN stored_kernel k "
                  "USING(kernel_id) JOIN stored_device d USING(device_id) LEFT JOIN stored_measured_minute e "
                  "ON "
                  "e.config_id = m.config_id AND e.minute = m.minute AND e.run_id = m.run_id "
                  "WHERE m.minute = ?1 AND m.run_id = ?2";
enum {
    CONFIG,
    LAUNCHES,
    TOTAL,
    GPU,
    MODEL,
    MEMORY,
    KERNEL,
    WARPS,
    THEORETICAL,
    LOW,
    HIGH,
    ELAPSED,
    ACHIEVED_SUM,
    ACHIEVED_NS,
    ERROR_SUM,
    ERROR_NS,
    GRID,
    BLOCK,
    SIMULATED
};

/* A history during a pass. */
struct history {
    struct occ_collect *collect;
    struct occ_store *store;
    sqlite3 *db;
    sqlite3_stmt *changes, *job, *rows;
    struct occ_layers *layers; /* NULL: no profiles */
    struct occ_sums_position position;
    int64_t first_minute;  /* rows of earlier minutes were evicted */
    int64_t oldest_minute; /* the sums no longer know which launches of earlier minutes were counted */
    bool is_broken;        /* the history failed, not the sums */
};

static int fail_history(struct history *h, struct occ_error *err)
{
    h->is_broken = true;
    return occ_fail(err, OCC_E_CORRUPT, "%s: %s", sqlite3_db_filename(h->db, "main"), sqlite3_errmsg(h->db));
}

static int read_number(struct history *h, const char *sql, int64_t *ret_number, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool read =
        sqlite3_prepare_v2(h->db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    *ret_number = read ? sqlite3_column_int64(stmt, 0) : 0;
    int rc = read ? 0 : fail_history(h, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int open_history(struct history *h, const char *path, struct occ_error *err)
{
    if (occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &h->store, err) != 0) {
        h->is_broken = true;
        return OCC_E_CORRUPT;
    }
    h->db = occ_store_sqlite(h->store);
    int rc = read_number(h, "SELECT identity FROM stored_identity", &h->position.identity, err);
    if (rc == 0)
        rc = read_number(h, "SELECT first_minute FROM stored_retention", &h->first_minute, err);
    if (rc == 0 && (sqlite3_prepare_v2(h->db, read_changes, -1, &h->changes, NULL) != SQLITE_OK ||
                    sqlite3_prepare_v2(h->db, read_job, -1, &h->job, NULL) != SQLITE_OK ||
                    sqlite3_prepare_v2(h->db, read_rows, -1, &h->rows, NULL) != SQLITE_OK))
        rc = fail_history(h, err);
    if (rc == 0 && h->collect->stacks) {
        rc = occ_layers_open(h->db, &h->layers, err);
        h->is_broken = rc != 0;
    }
    return rc;
}

static void close_history(struct history *h)
{
    (void)sqlite3_finalize(h->changes);
    (void)sqlite3_finalize(h->job);
    (void)sqlite3_finalize(h->rows);
    occ_layers_close(h->layers);
    occ_store_close(h->store);
}

/* A history with fewer changes than were read was replaced by a backup: all changes are read again, and each
 * run counts only minutes after its own newest counted minute. */
static int load_position(struct history *h, struct occ_error *err)
{
    int64_t last_change = 0;
    int rc = occ_sums_load_position(h->collect->sums, h->position.identity, &h->position, err);
    if (rc == 0)
        rc = read_number(h, occ_changes_last_sql, &last_change, err);
    h->oldest_minute = h->position.newest_minute - OCC_SUMS_LATE_MINUTES;
    if (rc == 0 && h->position.done > last_change) {
        h->position.done = 0;
        h->oldest_minute = INT64_MAX;
    }
    return rc;
}

/* ---- rows ---- */

static double real(sqlite3_stmt *stmt, int i)
{
    return sqlite3_column_type(stmt, i) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, i);
}

const char *occ_collect_name(sqlite3_stmt *stmt, int i, char name[OCC_SUMS_TEXT_BYTES])
{
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    char whole[4 * OCC_SUMS_TEXT_BYTES];
    size_t n = 0;
    (void)snprintf(whole, sizeof whole, "%s", text ? text : "");
    occ_text_sanitise(whole);
    for (size_t more = 0; (more = occ_text_character(whole + n)) > 0 && n + more < OCC_SUMS_TEXT_BYTES;)
        n += more;
    memcpy(name, whole, n);
    name[n] = '\0';
    return name;
}

/* Adds a row's newly counted GPU time to the stacks. */
static int add_stacks(struct history *h, const struct occ_sums_minute *row, int64_t new_ns,
                      struct occ_error *err)
{
    const struct occ_stack whole = {.job = row->job,
                                    .gpu = row->gpu,
                                    .kernel = row->kernel,
                                    .is_simulated = sqlite3_column_int(h->rows, SIMULATED) != 0,
                                    .minute = row->minute,
                                    .ns = new_ns < NS_MAX ? new_ns : NS_MAX};
    const struct occ_stacks_key key = {
        .identity = row->identity, .minute = row->minute, .run = row->run, .config = row->config};
    return occ_layers_add(h->layers, h->collect->stacks, key, &whole, err);
}

static int add_row(struct history *h, const char *job, int64_t minute, int64_t run, struct occ_error *err)
{
    char gpu[OCC_SUMS_TEXT_BYTES], model[OCC_SUMS_TEXT_BYTES], kernel[OCC_SUMS_TEXT_BYTES];
    sqlite3_stmt *stmt = h->rows;
    int64_t launches = sqlite3_column_int64(stmt, LAUNCHES);
    const struct occ_sums_minute row = {.identity = h->position.identity,
                                        .minute = minute,
                                        .run = run,
                                        .config = sqlite3_column_int64(stmt, CONFIG),
                                        .job = job,
                                        .gpu = occ_collect_name(stmt, GPU, gpu),
                                        .kernel = occ_collect_name(stmt, KERNEL, kernel),
                                        .launches = launches < LAUNCHES_MAX ? launches : LAUNCHES_MAX,
                                        .total_ns = sqlite3_column_int64(stmt, TOTAL),
                                        .warps = sqlite3_column_double(stmt, WARPS),
                                        .theoretical = real(stmt, THEORETICAL),
                                        .low = real(stmt, LOW),
                                        .high = real(stmt, HIGH),
                                        .expected_elapsed_low = real(stmt, ELAPSED),
                                        .achieved_sum = real(stmt, ACHIEVED_SUM),
                                        .achieved_ns = real(stmt, ACHIEVED_NS),
                                        .error_sum = real(stmt, ERROR_SUM),
                                        .error_ns = real(stmt, ERROR_NS),
                                        .grid_blocks = sqlite3_column_double(stmt, GRID),
                                        .block_threads = sqlite3_column_double(stmt, BLOCK)};
    if (row.launches <= 0 || row.total_ns < 0)
        return 0;
    int64_t new_ns = 0;
    int rc = occ_sums_put_gpu(h->collect->sums, gpu, occ_collect_name(stmt, MODEL, model),
                              sqlite3_column_int64(stmt, MEMORY), err);
    if (rc == 0)
        rc = occ_sums_add(h->collect->sums, &row, &new_ns, err);
    return rc == 0 && h->layers && new_ns > 0 ? add_stacks(h, &row, new_ns, err) : rc;
}

/* Adds the run's job; `job` gets its name. */
static int add_job(struct history *h, int64_t run, char job[OCC_SUMS_TEXT_BYTES], struct occ_error *err)
{
    char texts[N_JOB_TEXTS][OCC_SUMS_TEXT_BYTES];
    (void)sqlite3_bind_int64(h->job, 1, run);
    int rc = sqlite3_step(h->job) == SQLITE_ROW ? 0 : fail_history(h, err);
    for (int i = 0; i < N_JOB_TEXTS && rc == 0; i++)
        (void)occ_collect_name(h->job, i, texts[i]);
    (void)sqlite3_reset(h->job);
    if (rc != 0)
        return rc;
    (void)snprintf(job, OCC_SUMS_TEXT_BYTES, "%s", texts[0]);
    const struct occ_sums_job row = {.job = texts[0],
                                     .slurm_job = texts[1],
                                     .k8s_namespace = texts[2],
                                     .k8s_pod = texts[3],
                                     .k8s_pod_uid = texts[4],
                                     .container = texts[5],
                                     .trust = texts[6]};
    return strcmp(job, OCC_SUMS_NO_JOB) == 0 ? 0 : occ_sums_put_job(h->collect->sums, &row, err);
}

static int add_minute(struct history *h, int64_t minute, int64_t run, struct occ_error *err)
{
    char job[OCC_SUMS_TEXT_BYTES];
    int rc = add_job(h, run, job, err), code = SQLITE_DONE;
    int64_t layer_rows = 0;
    if (rc == 0 && h->layers)
        occ_layers_read(h->layers, minute, run, &h->collect->launches_left, &layer_rows);
    h->collect->rows_left -= layer_rows;
    (void)sqlite3_bind_int64(h->rows, 1, minute);
    (void)sqlite3_bind_int64(h->rows, 2, run);
    for (; rc == 0 && (code = sqlite3_step(h->rows)) == SQLITE_ROW; h->collect->rows_left--)
        rc = add_row(h, job, minute, run, err);
    if (rc == 0 && code != SQLITE_DONE)
        rc = fail_history(h, err);
    (void)sqlite3_reset(h->rows);
    return rc;
}

/* ---- changes ---- */

/* Counts the current change, or a loss. */
static int add_change(struct history *h, struct occ_error *err)
{
    int64_t minute = sqlite3_column_int64(h->changes, CHANGED_MINUTE), counted = -1;
    int64_t run = sqlite3_column_int64(h->changes, CHANGED_RUN), identity = h->position.identity;
    struct occ_sums_counters *counters = h->collect->counters;
    int rc = occ_sums_load_run(h->collect->sums, identity, run, &counted, err);
    bool is_late = minute < h->oldest_minute && minute <= counted;
    if (rc != 0)
        return rc;
    if (minute < h->first_minute || is_late) {
        *(minute < h->first_minute ? &counters->evicted : &counters->late) += 1;
        return 0;
    }
    counters->minutes++;
    h->position.newest_minute = minute > h->position.newest_minute ? minute : h->position.newest_minute;
    rc = occ_sums_store_run(h->collect->sums, identity, run, minute, err);
    return rc == 0 ? add_minute(h, minute, run, err) : rc;
}

static int add_changes(struct history *h, bool *ret_is_whole, struct occ_error *err)
{
    int rc = 0, code = SQLITE_DONE;
    bool waits = false;
    (void)sqlite3_bind_int64(h->changes, 1, h->position.done);
    (void)sqlite3_bind_int64(h->changes, 2, h->collect->counters->since_minute);
    while (rc == 0 && h->collect->rows_left > 0 && (code = sqlite3_step(h->changes)) == SQLITE_ROW) {
        waits = occ_changes_must_wait(h->collect->now_s, sqlite3_column_int64(h->changes, CHANGED_MINUTE));
        if (waits)
            break;
        rc = add_change(h, err);
        h->position.done = sqlite3_column_int64(h->changes, CHANGE);
    }
    *ret_is_whole = code == SQLITE_DONE && h->collect->rows_left > 0;
    if (rc == 0 && code != SQLITE_DONE && code != SQLITE_ROW)
        rc = fail_history(h, err);
    return rc;
}

/* Reads one snapshot of the history. */
static int read_history(struct history *h, const char *path, bool *ret_is_whole, struct occ_error *err)
{
    int rc = open_history(h, path, err);
    if (rc == 0 && sqlite3_exec(h->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        rc = fail_history(h, err);
    if (rc == 0)
        rc = load_position(h, err);
    if (rc == 0)
        rc = add_changes(h, ret_is_whole, err);
    if (rc == 0)
        rc = occ_sums_store_position(h->collect->sums, &h->position, err);
    return rc == 0 && h->layers ? occ_stacks_forget(h->collect->stacks, h->position.identity,
                                                    h->position.newest_minute - OCC_SUMS_LATE_MINUTES, err)
                                : rc;
}

int occ_collect_history(struct occ_collect *collect, const char *path, bool *ret_is_whole,
                        struct occ_error *err)
{
    struct history h = {.collect = collect};
    const struct occ_sums_counters before = *collect->counters;
    *ret_is_whole = false;
    int rc = occ_sums_begin_history(collect->sums, err);
    if (rc != 0)
        return rc;
    rc = read_history(&h, path, ret_is_whole, err);
    close_history(&h);
    if (rc != 0)
        *collect->counters = before;
    int ended = occ_sums_end_history(collect->sums, rc == 0, rc == 0 ? err : NULL);
    if (rc != 0 && h.is_broken && ended == 0)
        return OCC_E_CORRUPT;
    return rc != 0 ? rc : ended;
}
