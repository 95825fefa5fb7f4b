/* The file of sums, positions, and a pass's part: see sums.h. */
#include "sums.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "cluster/seen/state_file.h"
#include "stacks.h"

#define RUN_MINUTES (31 * 1440) /* runs are remembered for longer than histories keep minutes by default */

const struct occ_sums_bounds occ_sums_bounds[] = {
    [OCC_SUMS_GRID] = {sizeof((const double[])OCC_SUMS_GRID_BOUNDS) / sizeof(double), OCC_SUMS_GRID_BOUNDS},
    [OCC_SUMS_BLOCK] = {sizeof((const double[])OCC_SUMS_BLOCK_BOUNDS) / sizeof(double),
                        OCC_SUMS_BLOCK_BOUNDS}};

#define COLUMN(name) #name ","
static const char schema[] =
    "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
    "CREATE TABLE IF NOT EXISTS position (identity INTEGER PRIMARY KEY, done, newest_minute, stored "
    "TEXT);" OCC_STATE_FILE_COUNTERS
    "CREATE TABLE IF NOT EXISTS run (identity, run, newest_minute, next_minute, PRIMARY KEY (identity, run)) "
    "WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS counted (identity, minute, run, config, launches, ns, "
    "PRIMARY KEY (identity, minute, run, config)) WITHOUT ROWID;" OCC_STACKS_SCHEMA
    "CREATE TABLE IF NOT EXISTS job (job TEXT PRIMARY KEY, slurm_job, k8s_namespace, k8s_pod, k8s_pod_uid, "
    "container, trust) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS gpu (gpu TEXT PRIMARY KEY, model, memory_bytes) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS place (kind, name, ns, has_place, last_minute, PRIMARY KEY (kind, name)) "
    "WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS series (job, gpu, kernel, start_minute, " OCC_SUMS_TOTALS(COLUMN)
        OCC_SUMS_MEANS(
            COLUMN) "PRIMARY KEY (job, gpu, kernel)) WITHOUT ROWID;"
                    "CREATE TABLE IF NOT EXISTS size (job, gpu, kind, bucket, start_minute, launches, total, "
                    "PRIMARY KEY (job, gpu, kind, bucket)) WITHOUT ROWID;";
static const char pass_schema[] =
    "CREATE TEMP TABLE IF NOT EXISTS fresh (job, gpu, kernel, minute, " OCC_SUMS_TOTALS(COLUMN)
        OCC_SUMS_MEANS(COLUMN) "PRIMARY KEY (job, gpu, kernel)) WITHOUT ROWID;"
                               "CREATE TEMP TABLE IF NOT EXISTS fresh_size (job, gpu, kind, bucket, minute, "
                               "launches, total, "
                               "PRIMARY KEY (job, gpu, kind, bucket)) WITHOUT ROWID;";

/* Keeps the earlier minute of two rows that are added up. */
#define FIRST "minute = min(minute, excluded.minute)"
enum statement {
    GET_POSITION,
    PUT_POSITION,
    FORGET_COUNTED,
    GET_RUN,
    PUT_RUN,
    END_RUNS,
    FORGET_RUNS,
    GET_COUNTED,
    PUT_COUNTED,
    PUT_JOB,
    PUT_GPU,
    ADD_FRESH,
    ADD_SIZE,
    N_STATEMENTS
};
static const char *const statements[N_STATEMENTS] = {
    [GET_POSITION] = "SELECT done, newest_minute FROM position WHERE identity = ?",
    [PUT_POSITION] = "INSERT OR REPLACE INTO position VALUES(?, ?, ?, datetime())",
    [FORGET_COUNTED] = "DELETE FROM counted WHERE identity = ? AND minute < ?",
    [GET_RUN] = "SELECT newest_minute FROM run WHERE identity = ? AND run = ?",
    [PUT_RUN] =
        "INSERT INTO run VALUES(?, ?, -1, ?) ON CONFLICT DO UPDATE SET next_minute = max(next_minute, "
        "excluded.next_minute)",
    [END_RUNS] =
        "UPDATE run SET newest_minute = next_minute WHERE identity = ? AND newest_minute <> next_minute",
    [FORGET_RUNS] = "DELETE FROM run WHERE identity = ? AND next_minute < ?",
    [GET_COUNTED] =
        "SELECT launches, ns FROM counted WHERE identity = ? AND minute = ? AND run = ? AND config = ?",
    [PUT_COUNTED] = "INSERT OR REPLACE INTO counted VALUES(?, ?, ?, ?, ?, ?)",
    [PUT_JOB] = "INSERT OR REPLACE INTO job VALUES(?, ?, ?, ?, ?, ?, ?)",
    [PUT_GPU] = "INSERT OR REPLACE INTO gpu VALUES(?, ?, ?)",
    [ADD_FRESH] = "INSERT INTO fresh VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE "
                  "SET " OCC_SUMS_TOTALS(OCC_SUMS_ADD) OCC_SUMS_MEANS(OCC_SUMS_ADD) FIRST,
    [ADD_SIZE] =
        "INSERT INTO fresh_size VALUES(?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET launches = launches + "
        "excluded.launches, total = total + excluded.total, " FIRST,
};

struct occ_sums {
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
};

struct sqlite3 *occ_sums_sqlite(const struct occ_sums *sums)
{
    return sums->db;
}

int occ_sums_fail(struct occ_sums *s, struct occ_error *err)
{
    int code = sqlite3_errcode(s->db);
    return occ_fail(err, code == SQLITE_FULL ? OCC_E_FULL : OCC_E_IO, "%s: %s",
                    sqlite3_db_filename(s->db, "main"), sqlite3_errmsg(s->db));
}

int occ_sums_run(struct occ_sums *s, const char *sql, struct occ_error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : occ_sums_fail(s, err);
}

static int prepare(struct occ_sums *s, struct occ_error *err)
{
    int rc = occ_sums_run(s, schema, err);
    if (rc == 0)
        rc = occ_sums_run(s, pass_schema, err);
    for (int i = 0; i < N_STATEMENTS && rc == 0; i++)
        if (sqlite3_prepare_v2(s->db, statements[i], -1, &s->statements[i], NULL) != SQLITE_OK)
            rc = occ_sums_fail(s, err);
    return rc;
}

int occ_sums_open(const char *path, bool read_only, struct occ_sums **ret_sums, struct occ_error *err)
{
    struct occ_sums *s = calloc(1, sizeof *s);
    int rc = s ? 0 : occ_no_memory(err);
    if (rc == 0)
        rc = occ_state_file_open(path, read_only, &s->db, err);
    if (rc == 0 && !read_only)
        rc = prepare(s, err);
    if (rc == 0) {
        *ret_sums = s;
        return 0;
    }
    occ_sums_close(s);
    return rc;
}

void occ_sums_close(struct occ_sums *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(s->statements[i]);
    (void)sqlite3_close(s->db);
    free(s);
}

/* ---- statements ---- */

/* Runs a statement whose parameters are bound, to its only row (*ret_row) or its end, and unbinds nothing:
 * the next use binds all parameters again. */
static int step(struct occ_sums *s, sqlite3_stmt *stmt, bool *ret_row, struct occ_error *err)
{
    int code = sqlite3_step(stmt);
    *ret_row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : occ_sums_fail(s, err);
}

static int finish(struct occ_sums *s, sqlite3_stmt *stmt, struct occ_error *err)
{
    bool row = false;
    int rc = step(s, stmt, &row, err);
    (void)sqlite3_reset(stmt);
    return rc;
}

static void bind_integers(sqlite3_stmt *stmt, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        (void)sqlite3_bind_int64(stmt, i + 1, values[i]);
}

static void bind_texts(sqlite3_stmt *stmt, const char *const *texts, int n)
{
    for (int i = 0; i < n; i++)
        (void)sqlite3_bind_text(stmt, i + 1, texts[i], -1, SQLITE_STATIC);
}

static void bind_real(sqlite3_stmt *stmt, int at, double value)
{
    if (isfinite(value))
        (void)sqlite3_bind_double(stmt, at, value);
    else
        (void)sqlite3_bind_null(stmt, at);
}

/* ---- a pass ---- */

int occ_sums_begin(struct occ_sums *s, struct occ_error *err)
{
    return occ_sums_run(s, "BEGIN IMMEDIATE; DELETE FROM fresh; DELETE FROM fresh_size", err);
}

int occ_sums_begin_history(struct occ_sums *s, struct occ_error *err)
{
    return occ_sums_run(s, "SAVEPOINT history", err);
}

int occ_sums_end_history(struct occ_sums *s, bool keep, struct occ_error *err)
{
    return occ_sums_run(s, keep ? "RELEASE history" : "ROLLBACK TO history; RELEASE history", err);
}

int occ_sums_load_position(struct occ_sums *s, int64_t identity, struct occ_sums_position *ret_position,
                           struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[GET_POSITION];
    bool row = false;
    *ret_position = (struct occ_sums_position){.identity = identity};
    bind_integers(stmt, &identity, 1);
    int rc = step(s, stmt, &row, err);
    if (row) {
        ret_position->done = sqlite3_column_int64(stmt, 0);
        ret_position->newest_minute = sqlite3_column_int64(stmt, 1);
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

static int run_integers(struct occ_sums *s, enum statement i, const int64_t *values, int n,
                        struct occ_error *err)
{
    bind_integers(s->statements[i], values, n);
    return finish(s, s->statements[i], err);
}

int occ_sums_store_position(struct occ_sums *s, const struct occ_sums_position *p, struct occ_error *err)
{
    const int64_t position[] = {p->identity, p->done, p->newest_minute};
    int rc = run_integers(s, PUT_POSITION, position, 3, err);
    if (rc == 0)
        rc = run_integers(s, END_RUNS, position, 1, err);
    if (rc == 0)
        rc = run_integers(s, FORGET_COUNTED,
                          (const int64_t[]){p->identity, p->newest_minute - OCC_SUMS_LATE_MINUTES}, 2, err);
    return rc == 0 ? run_integers(s, FORGET_RUNS,
                                  (const int64_t[]){p->identity, p->newest_minute - RUN_MINUTES}, 2, err)
                   : rc;
}

int occ_sums_load_run(struct occ_sums *s, int64_t identity, int64_t run, int64_t *ret_minute,
                      struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[GET_RUN];
    bool row = false;
    bind_integers(stmt, (const int64_t[]){identity, run}, 2);
    int rc = step(s, stmt, &row, err);
    *ret_minute = row ? sqlite3_column_int64(stmt, 0) : -1;
    (void)sqlite3_reset(stmt);
    return rc;
}

int occ_sums_store_run(struct occ_sums *s, int64_t identity, int64_t run, int64_t minute,
                       struct occ_error *err)
{
    return run_integers(s, PUT_RUN, (const int64_t[]){identity, run, minute}, 3, err);
}

int occ_sums_put_job(struct occ_sums *s, const struct occ_sums_job *job, struct occ_error *err)
{
    const char *const texts[] = {job->job,         job->slurm_job, job->k8s_namespace, job->k8s_pod,
                                 job->k8s_pod_uid, job->container, job->trust};
    bind_texts(s->statements[PUT_JOB], texts, sizeof texts / sizeof *texts);
    return finish(s, s->statements[PUT_JOB], err);
}

int occ_sums_put_gpu(struct occ_sums *s, const char *gpu, const char *model, int64_t memory_bytes,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[PUT_GPU];
    bind_texts(stmt, (const char *const[]){gpu, model}, 2);
    (void)(memory_bytes > 0 ? sqlite3_bind_int64(stmt, 3, memory_bytes) : sqlite3_bind_null(stmt, 3));
    return finish(s, stmt, err);
}

/* ---- a minute ---- */

/* Sets *ret_launches and *ret_ns to the part of the minute that is not in the sums, and notes the part as
 * counted. *ret_is_first: nothing of the minute was counted before. */
static int find_rest(struct occ_sums *s, const struct occ_sums_minute *m, int64_t *ret_launches,
                     int64_t *ret_ns, bool *ret_is_first, struct occ_error *err)
{
    const int64_t key[] = {m->identity, m->minute, m->run, m->config, m->launches, m->total_ns};
    sqlite3_stmt *get = s->statements[GET_COUNTED], *put = s->statements[PUT_COUNTED];
    bool row = false;
    bind_integers(get, key, 4);
    int rc = step(s, get, &row, err);
    *ret_launches = m->launches - (row ? sqlite3_column_int64(get, 0) : 0);
    *ret_ns = m->total_ns - (row ? sqlite3_column_int64(get, 1) : 0);
    *ret_is_first = !row;
    (void)sqlite3_reset(get);
    if (rc != 0 || *ret_launches <= 0 || *ret_ns < 0) {
        *ret_launches = 0;
        return rc;
    }
    bind_integers(put, key, 6);
    return finish(s, put, err);
}

static int add_size(struct occ_sums *s, const struct occ_sums_minute *m, int64_t launches,
                    enum occ_sums_size kind, struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[ADD_SIZE];
    const struct occ_sums_bounds *bounds = &occ_sums_bounds[kind];
    double size = kind == OCC_SUMS_GRID ? m->grid_blocks : m->block_threads;
    size_t bucket = 0;
    while (bucket < bounds->n && size > bounds->ends[bucket])
        bucket++;
    bind_texts(stmt, (const char *const[]){m->job, m->gpu}, 2);
    (void)sqlite3_bind_int64(stmt, 3, kind);
    (void)sqlite3_bind_int64(stmt, 4, (int64_t)bucket);
    (void)sqlite3_bind_int64(stmt, 5, m->minute);
    (void)sqlite3_bind_int64(stmt, 6, launches);
    bind_real(stmt, 7, size * (double)launches);
    return finish(s, stmt, err);
}

int occ_sums_add(struct occ_sums *s, const struct occ_sums_minute *m, int64_t *ret_ns, struct occ_error *err)
{
    int64_t launches = 0, ns = 0;
    bool is_first = false;
    int rc = find_rest(s, m, &launches, &ns, &is_first, err);
    *ret_ns = rc == 0 && launches > 0 ? ns : 0;
    if (rc != 0 || launches == 0)
        return rc;
    sqlite3_stmt *stmt = s->statements[ADD_FRESH];
    bool is_analysed = m->warps > 0 && isfinite(m->expected_elapsed_low);
    double capacity = is_analysed ? (double)ns / 1e9 * m->warps : NAN;
    double weight = is_first ? (double)ns : NAN; /* means cover the minutes that are counted first */
    bool is_measured = is_first && m->achieved_ns > 0, has_error = is_measured && m->error_ns > 0;
    const double reals[] = {capacity,
                            capacity * fmax(0, 1 - m->expected_elapsed_low),
                            m->theoretical * weight,
                            isfinite(m->theoretical) ? weight : NAN,
                            m->low * weight,
                            m->high * weight,
                            isfinite(m->low) && isfinite(m->high) ? weight : NAN,
                            is_measured ? m->achieved_sum : NAN,
                            is_measured ? m->achieved_ns : NAN,
                            has_error ? m->error_sum : NAN,
                            has_error ? m->error_ns : NAN};
    bind_texts(stmt, (const char *const[]){m->job, m->gpu, m->kernel}, 3);
    (void)sqlite3_bind_int64(stmt, 4, m->minute);
    (void)sqlite3_bind_int64(stmt, 5, launches);
    (void)sqlite3_bind_double(stmt, 6, (double)ns); /* a sum of integers fails where it overflows */
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        bind_real(stmt, 7 + (int)i, reals[i]);
    rc = finish(s, stmt, err);
    for (int kind = 0; kind < OCC_SUMS_SIZE_COUNT && rc == 0; kind++)
        rc = add_size(s, m, launches, (enum occ_sums_size)kind, err);
    return rc;
}
