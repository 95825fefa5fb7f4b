/*
 * The outbox against a warehouse in memory that keeps the newest version of each row. After any sequence of
 * recording, removing, evicting, shipping, kills, a lost state and daemons of two versions of the model the
 * warehouse has the history's minutes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/outbox.h"
#include "sanitized.h"
#include "store/store.h"

#define MINUTE      INT64_C(60000000000)
#define HOUR        (60 * MINUTE)
#define BEGIN       (INT64_C(1700000000000000000) / HOUR * HOUR)
#define MINUTES     200
#define APART       25 /* minutes: so few that some have more configurations than MAX_CONFIGS */
#define RUNS        64
#define DEVICES     2
#define MODELS      2 /* an older version, and the one of this program */
#define CONFIGS     24
#define MAX_CONFIGS 16 /* with rows of their own: the rest of a job is added up */
#define SEEDS       24
#define STEPS       60

static unsigned seed_step = 1;

struct run {
    int64_t id;
    bool has_ended, is_removed;
};

struct world {
    char directory[32], path[64];
    struct occ_store *store; /* the daemon's */
    struct run runs[RUNS];
    int n_runs;
    int64_t devices[DEVICES], configs[MODELS][DEVICES][CONFIGS];
    int model; /* of the daemon */
    sqlite3 *warehouse;
    struct occ_sent sent;
    struct occ_kept kept;
    int64_t position, newest_minute; /* the shipper's state */
    uint64_t version, random;
};

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->message);
}

static uint64_t below(struct world *w, uint64_t n)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w->random >> 33) % n;
}

static void execute(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK || sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int64_t n = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return n;
}

/* ---- the history ---- */

static void put_names(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t kernel = 0;
    check(occ_store_put_kernel(w->store, "k", 1, &kernel, &err), &err);
    for (int d = 0; d < DEVICES; d++) {
        const struct occ_store_device device = {
            .uuid = {(uint8_t)(d + 1)}, .name = "T4", .limits = {.cc = 75, .sm_count = 40}};
        check(occ_store_put_device(w->store, &device, &w->devices[d], &err), &err);
        for (uint32_t c = 0; c < CONFIGS; c++) {
            const struct occ_launch_config config = {.kernel = kernel,
                                                     .device = w->devices[d],
                                                     .launch = {.grid = {c + 1, 1, 1},
                                                                .block = {128, 1, 1},
                                                                .cluster = {1, 1, 1},
                                                                .registers_per_thread = 32,
                                                                .carveout_percent = -1}};
            check(occ_store_put_config(w->store, &config, &w->configs[w->model][d][c], &err), &err);
        }
    }
}

static void put_run(struct world *w, int i)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_run run = {.uuid = {1, (uint8_t)i},
                                .pid = 1000 + i,
                                .start_ns = BEGIN + i,
                                .user = i % 3 == 0 ? "ada" : "bob",
                                .job = {.slurm_job = i % 2 ? "7" : NULL,
                                        .slurm_account = i % 2 ? "phys\\" : NULL,
                                        .slurm_partition = i % 2 ? "gpu" : NULL,
                                        .slurm_array_task = i % 2 ? "3" : NULL,
                                        .k8s_namespace = i % 2 ? NULL : "team"},
                                .session = i % 2 ? NULL : "s"};
    check(occ_store_put_run(w->store, &run, &w->runs[i].id, &err), &err);
    w->runs[i].has_ended = w->runs[i].is_removed = false;
}

static void record(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    int i = (int)below(w, (uint64_t)w->n_runs + 1);
    if (i >= RUNS)
        return;
    if (i == w->n_runs || (w->runs[i].is_removed && below(w, 8) == 0)) {
        put_run(w, i); /* or a removed run, when its daemon stores it again */
        w->n_runs += i == w->n_runs;
    }
    if (w->runs[i].has_ended)
        return;
    int d = i % DEVICES;
    uint64_t minute = APART * below(w, MINUTES / APART), n = 1 + below(w, CONFIGS);
    for (uint64_t c = 0; c < n; c++) {
        const struct occ_store_launch launch = {
            .start_ns = BEGIN + (int64_t)(minute + below(w, 2)) * MINUTE + (int64_t)below(w, MINUTE),
            .duration_ns = 1000 + below(w, 100000),
            .config = (uint32_t)w->configs[w->model][d][below(w, CONFIGS)]};
        check(occ_store_append(w->store, w->runs[i].id, w->devices[d], &launch, 1, &err), &err);
    }
    check(occ_store_commit(w->store, &err), &err);
}

static void end(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (w->n_runs == 0)
        return;
    struct run *run = &w->runs[below(w, (uint64_t)w->n_runs)];
    if (run->has_ended)
        return;
    check(occ_store_end_run(w->store, run->id, &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    run->has_ended = true;
}

struct chosen {
    int64_t runs[RUNS];
    size_t n;
};

static int choose(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                  struct occ_error *err)
{
    const struct chosen *chosen = context;
    (void)store;
    (void)err;
    *ret_runs = chosen->runs;
    *ret_n = chosen->n;
    return 0;
}

/* Removes some ended runs, or all ended runs except the two newest, through a second handle, like occq rm and
 * occq prune. */
static void remove_runs_at(struct world *w, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *other = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    struct chosen chosen = {.n = 0};
    bool is_prune = below(w, 3) == 0;
    for (int i = 0; i < w->n_runs; i++)
        if (w->runs[i].has_ended && !w->runs[i].is_removed &&
            (is_prune ? i < w->n_runs - 2 : below(w, 3) == 0)) {
            chosen.runs[chosen.n++] = w->runs[i].id;
            w->runs[i].is_removed = true;
        }
    check(occ_store_open(w->path, &options, &other, &err), &err);
    check(occ_store_remove_runs(other, &(struct occ_run_chooser){choose, &chosen}, now_ns, &err), &err);
    occ_store_close(other);
}

static void remove_runs(struct world *w)
{
    remove_runs_at(w, BEGIN + 2 * HOUR);
}

static void evict(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_ages ages = {.raw_ns = 24 * HOUR, .minutes_ns = HOUR, .hours_ns = 24 * HOUR};
    bool more = true;
    check(occ_store_set_limits(w->store, 0, &ages, &err), &err);
    while (more)
        check(occ_store_maintain(w->store, BEGIN + (int64_t)(1 + below(w, 2)) * HOUR, &more, &err), &err);
}

/* ---- the warehouse ---- */

static const struct table {
    const char *name;
    int keys, columns; /* the first ones */
} tables[OCC_SHIP_TABLE_COUNT] = {[OCC_SHIP_RUN] = {"run", 4, 41},
                                  [OCC_SHIP_MINUTE] = {"minute", 7, 23},
                                  [OCC_SHIP_RANK_MINUTE] = {"rank_minute", 6, 9}};

/* Inserts a tab-separated row with its version. */
static void insert_row(struct world *w, const struct table *table, char *line, uint64_t version)
{
    sqlite3_stmt *stmt = NULL;
    char sql[512] = "";
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table->name);
    for (int i = 0; i < table->columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ", ?");
    (void)snprintf(sql + n, sizeof sql - (size_t)n, ")");
    if (sqlite3_prepare_v2(w->warehouse, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(w->warehouse));
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)version);
    for (int i = 0; i < table->columns; i++)
        (void)sqlite3_bind_text(stmt, i + 2, strsep(&line, "\t"), -1, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
}

static void insert(struct world *w, enum occ_ship_table table, const struct occ_body *rows, uint64_t version)
{
    if (!tables[table].name || rows->n == 0)
        return;
    char *text = strndup(rows->data, rows->n), *rest = text;
    assert_non_null(text);
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        insert_row(w, &tables[table], line, version);
    free(text);
}

/* Versions only grow, so the newest row is the last one; two of one version have no order. */
static void make_warehouse(struct world *w)
{
    assert_int_equal(sqlite3_open(":memory:", &w->warehouse), SQLITE_OK);
    for (int t = 0; t < OCC_SHIP_TABLE_COUNT; t++) {
        char sql[1024];
        int n = snprintf(sql, sizeof sql, "CREATE TABLE %s(version", tables[t].name ? tables[t].name : "");
        for (int i = 0; i < tables[t].columns; i++)
            n += snprintf(sql + n, sizeof sql - (size_t)n, ", c%d", i);
        n += snprintf(sql + n, sizeof sql - (size_t)n, ", UNIQUE(version");
        for (int i = 0; i < tables[t].keys; i++)
            n += snprintf(sql + n, sizeof sql - (size_t)n, ", c%d", i);
        (void)snprintf(sql + n, sizeof sql - (size_t)n, "))");
        if (tables[t].name)
            execute(w->warehouse, sql);
    }
    execute(
        w->warehouse,
        "CREATE VIEW final_minute AS SELECT max(version), c0 / 60 AS minute, c2 AS job, c3 AS user, "
        "c6 AS config, c8 + 0 AS launches, c9 + 0 AS total, c20 AS account, "
        "c21 AS partition, c22 AS namespace FROM minute GROUP BY c0, c1, c2, c3, c4, c5, c6;"
        "CREATE VIEW final_rank AS SELECT max(version), c0 / 60 AS minute, c4 AS run, c5 AS gpu, "
        "c7 + 0 AS launches, c8 + 0 AS busy FROM rank_minute GROUP BY c0, c1, c2, c3, c4, c5;"
        "CREATE VIEW final_run AS SELECT max(version), c0 AS run, c5 AS user, c8 AS program, c19 AS level, "
        "c36 AS account, c37 AS partition, c38 AS qos, c39 AS array_job, c40 AS task FROM run GROUP BY c0, "
        "c1, c2, c3");
}

/* ---- the shipper ---- */

enum death { LIVES, BEFORE_SENDING, WHILE_SENDING, BEFORE_STORING };

/* Ships a batch, in the order of cluster/ship.c. Returns true if more batches may follow. */
static bool ship_batch(struct world *w, struct occ_outbox *outbox, enum death death)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_batch batch;
    const struct occ_batch_options options = {.cluster = "c",
                                              .node = "n",
                                              .version = ++w->version,
                                              .max_configs = MAX_CONFIGS,
                                              .added = {.run = 5, .launch = 3, .minute = 3, .hour = 3},
                                              .newest_minute = w->newest_minute,
                                              .sent = &w->sent,
                                              .kept = &w->kept,
                                              .raw = {.jobs = ""}};
    check(occ_outbox_read(outbox, w->position, outbox->last_change, &options, &batch, &err), &err);
    bool more = batch.is_full;
    if (batch.newest_minute > w->newest_minute)
        w->newest_minute = batch.newest_minute;
    int sent = death == BEFORE_SENDING  ? 0
               : death == WHILE_SENDING ? (int)below(w, OCC_SHIP_TABLE_COUNT)
                                        : OCC_SHIP_TABLE_COUNT;
    for (int t = 0; t < sent; t++)
        insert(w, (enum occ_ship_table)t, &batch.rows[t], options.version);
    if (death == LIVES && batch.last_change > 0)
        w->position = batch.last_change;
    occ_batch_free(&batch);
    return more && death == LIVES;
}

static void ship(struct world *w, enum death death)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_outbox outbox;
    check(occ_outbox_open(w->path, &outbox, &err), &err);
    assert_true(w->position <= outbox.last_change); /* otherwise mistaken for an older copy */
    while (ship_batch(w, &outbox, death))
        ;
    occ_outbox_close(&outbox);
}

/* Restarts like a shipper that lost its state file: find_sent_minutes() of cluster/ship.c. */
static void lose_state(struct world *w)
{
    w->position = 0;
    w->newest_minute =
        number(w->warehouse, "SELECT count(*) FROM run") == 0
            ? 0
            : number(occ_store_sqlite(w->store), "SELECT coalesce(max(minute), 0) FROM stored_minute_change");
}

/* ---- the property ---- */

#define JOB  "coalesce('slurm:' || r.slurm_job, 'session:' || r.session_id)"
#define KEPT "(SELECT first_minute FROM h.stored_retention)"
#define UUID(blob)                                                                                           \
    "lower(substr(hex(" blob "), 1, 8) || '-' || substr(hex(" blob "), 9, 4) || '-' || substr(hex(" blob     \
    "), 13, 4) || '-' || substr(hex(" blob "), 17, 4) || '-' || substr(hex(" blob "), 21))"

/* Pairs of statements over the warehouse and the history (h) that give the same rows. */
static const struct same {
    const char *what, *found, *expected;
} same[] = {
    {"sums of a job's minute",
     "SELECT minute, job, user, sum(launches), sum(total) FROM final_minute WHERE launches > 0 AND "
     "minute >= " KEPT " GROUP BY 1, 2, 3",
     "SELECT m.minute, " JOB ", r.user, sum(m.launches), sum(m.total_duration_ns) FROM h.stored_minute m "
     "JOIN h.stored_run r USING(run_id) WHERE m.minute >= " KEPT " GROUP BY 1, 2, 3"},
    {"account, partition and namespace of a job's minute",
     "SELECT DISTINCT minute, job, account, partition, namespace FROM final_minute WHERE launches > 0 AND "
     "minute >= " KEPT,
     "SELECT DISTINCT m.minute, " JOB ", iif(r.slurm_job, 'phys\\\\', ''), iif(r.slurm_job, 'gpu', ''), "
     "iif(r.slurm_job, '', 'team') FROM h.stored_minute m JOIN h.stored_run r USING(run_id) WHERE "
     "m.minute >= " KEPT},
    {"account and array of a run",
     "SELECT run, account, partition, qos, array_job, task FROM final_run WHERE level <> 'removed'",
     "SELECT " UUID("uuid") ", iif(slurm_job, 'phys\\\\', ''), iif(slurm_job, 'gpu', ''), '', '', "
                            "iif(slurm_job, '3', '') FROM h.stored_run"},
    {"configurations that have rows of their own",
     "SELECT minute, job, user, launches, total, count(*) FROM final_minute WHERE launches > 0 AND minute "
     ">= " KEPT " AND (minute, job, user) IN (SELECT m.minute, " JOB
     ", r.user FROM h.stored_minute m JOIN h.stored_run "
     "r USING(run_id) GROUP BY 1, 2, 3 HAVING count(DISTINCT m.config_id) <= 16) GROUP BY 1, 2, 3, 4, 5",
     "SELECT minute, job, user, launches, total, count(*) FROM (SELECT m.minute, " JOB " AS job, r.user, "
     "sum(m.launches) AS launches, sum(m.total_duration_ns) AS total, count(*) OVER (PARTITION BY "
     "m.minute, " JOB
     ", r.user) AS n FROM h.stored_minute m JOIN h.stored_run r USING(run_id) WHERE m.minute >= " KEPT
     " GROUP BY m.minute, 2, 3, m.config_id) WHERE n <= 16 GROUP BY 1, 2, 3, 4, 5"},
    {"runs and GPUs",
     "SELECT minute, run, gpu, launches, busy FROM final_rank WHERE launches > 0 AND minute >= " KEPT,
     "SELECT m.minute, " UUID("r.uuid") ", " UUID(
         "d.uuid") ", sum(m.launches), sum(m.total_duration_ns) FROM "
                   "h.stored_minute m JOIN h.stored_run r USING(run_id) JOIN h.stored_launch_config c "
                   "USING(config_id) JOIN "
                   "h.stored_device d USING(device_id) WHERE m.minute >= " KEPT " GROUP BY 1, 2, 3"},
    {"runs", "SELECT run FROM final_run WHERE level <> 'removed'",
     "SELECT " UUID("uuid") " FROM h.stored_run"},
    {"nothing of removed runs but the user",
     "SELECT run FROM final_run WHERE level = 'removed' AND program <> ''", "SELECT 1 WHERE 0"},
};

static void compare(struct world *w, uint64_t seed, int step)
{
    char sql[4096];
    (void)snprintf(sql, sizeof sql, "ATTACH 'file:%s?mode=ro' AS h", w->path);
    execute(w->warehouse, sql);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        (void)snprintf(
            sql, sizeof sql,
            "SELECT (SELECT count(*) FROM (SELECT * FROM (%s) EXCEPT SELECT * FROM (%s))) + (SELECT "
            "count(*) FROM (SELECT * FROM (%s) EXCEPT SELECT * FROM (%s)))",
            same[i].found, same[i].expected, same[i].expected, same[i].found);
        int64_t n = number(w->warehouse, sql);
        if (n > 0)
            fail_msg("seed %d, step %d: %d rows differ: %s", (int)seed, step, (int)n, same[i].what);
    }
    execute(w->warehouse, "DETACH h");
}

static void set_up(struct world *w, uint64_t seed)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    *w = (struct world){.random = seed};
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/outbox.XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->path, sizeof w->path, "%s/h.db", w->directory);
    check(occ_store_open(w->path, &options, &w->store, &err), &err);
    put_names(w);
    execute(occ_store_sqlite(w->store),
            "UPDATE stored_launch_config SET model_version = model_version - 1, theoretical = 0.25");
    make_warehouse(w);
}

static void tear_down(struct world *w)
{
    char file[80];
    occ_store_close(w->store);
    (void)sqlite3_close(w->warehouse);
    occ_map_free(&w->sent.ids);
    occ_kept_free(&w->kept);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(file, sizeof file, "%s%s", w->path, (const char *[]){"", "-wal", "-shm"}[i]);
        (void)unlink(file);
    }
    (void)rmdir(w->directory);
}

/* A daemon of another version: the next one, or the one before. */
static void change_model(struct world *w)
{
    w->model = !w->model;
    if (w->model == 1)
        put_names(w);
}

static void step(struct world *w)
{
    switch (below(w, 12)) {
    case 0:
    case 1:
        end(w);
        break;
    case 2:
        remove_runs(w);
        break;
    case 3:
        ship(w, LIVES);
        break;
    case 4:
        ship(w, (enum death)below(w, 4));
        break;
    case 5:
        if (below(w, 4) == 0)
            lose_state(w);
        else if (below(w, 8) == 0)
            evict(w);
        else
            change_model(w);
        break;
    default:
        record(w);
    }
}

static void the_warehouse_has_what_the_history_has(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed += seed_step) {
        struct world w;
        set_up(&w, seed);
        for (int i = 1; i <= STEPS; i++) {
            step(&w);
            if (i % 20 == 0) {
                ship(&w, LIVES);
                compare(&w, seed, i);
            }
        }
        tear_down(&w);
    }
}

/* A run that was removed before it was sent is never sent. */
static void nothing_of_a_run_that_was_removed_unsent(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, 1);
    while (w.n_runs < 3)
        record(&w);
    while (!w.runs[0].has_ended || !w.runs[1].has_ended || !w.runs[2].has_ended)
        end(&w);
    while (number(occ_store_sqlite(w.store), "SELECT count(*) FROM run") > 0)
        remove_runs(&w);
    ship(&w, LIVES);
    assert_int_equal(number(w.warehouse, "SELECT count(*) FROM minute"), 0);
    assert_int_equal(number(w.warehouse, "SELECT count(*) FROM rank_minute"), 0);
    tear_down(&w);
}

/* The warehouse has already dropped the run's minutes, but still has its row: removal must clear the row. */
static void the_row_of_a_run_that_ended_long_ago(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, 1);
    while (w.n_runs < 3)
        record(&w);
    while (!w.runs[0].has_ended || !w.runs[1].has_ended || !w.runs[2].has_ended)
        end(&w);
    ship(&w, LIVES);
    assert_int_equal(number(w.warehouse, "SELECT count(*) FROM final_run WHERE level <> 'removed'"), 3);
    while (number(occ_store_sqlite(w.store), "SELECT count(*) FROM run") > 0)
        remove_runs_at(&w, BEGIN + 100 * 24 * HOUR);
    ship(&w, LIVES);
    assert_int_equal(number(w.warehouse, "SELECT count(*) FROM final_run WHERE level <> 'removed'"), 0);
    assert_int_equal(number(w.warehouse, "SELECT count(*) FROM final_run WHERE program <> ''"), 0);
    tear_down(&w);
}

static void the_number_of_a_container_is_no_user(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "WITH r(user, uid, container, k8s_pod_uid) AS (VALUES ('ada', 7, NULL, "
                           "NULL), (NULL, 7, NULL, NULL), ('ada', 7, 'c', NULL), (NULL, 7, 'c', "
                           "NULL), (NULL, 7, NULL, 'p'), (NULL, NULL, NULL, NULL)) SELECT "
                           "group_concat('<' || " OCC_SHIP_USER " || '>', '') FROM r",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "<ada><7><ada><><><>");
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}

int main(int argc, char **argv)
{
    seed_step = input_step(argc, argv, 4);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_warehouse_has_what_the_history_has),
        cmocka_unit_test(nothing_of_a_run_that_was_removed_unsent),
        cmocka_unit_test(the_row_of_a_run_that_ended_long_ago),
        cmocka_unit_test(the_number_of_a_container_is_no_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
