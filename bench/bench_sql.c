/*
 * Measures statements over the table `launch`: nanoseconds of CPU time per launch of the file, and the cost
 * of SQLite's own loop for comparison: the same aggregates over a virtual table that only counts, like
 * generate_series of the sqlite3 shell. Groups over that table are values modulo 1000, which SQLite has to
 * sort. Best of three.
 */
#include "bench_sql.h"

#include <malloc.h>
#include <math.h>
#include <sqlite3.h>

#include "bench_report.h"
#include "store/store.h"

/* ---- a counting table: series(value), 1 ... n ---- */

struct series {
    sqlite3_vtab base;
    int64_t n;
};

struct series_cursor {
    sqlite3_vtab_cursor base;
    int64_t at;
};

static int series_connect(sqlite3 *db, void *n, int argc, const char *const *argv, sqlite3_vtab **ret,
                          char **message)
{
    (void)argc;
    (void)argv;
    (void)message;
    struct series *series = calloc(1, sizeof *series);
    if (!series)
        return SQLITE_NOMEM;
    series->n = (int64_t) * (uint64_t *)n;
    *ret = &series->base;
    return sqlite3_declare_vtab(db, "CREATE TABLE series(value INTEGER)");
}

static int series_disconnect(sqlite3_vtab *vtab)
{
    free(vtab);
    return SQLITE_OK;
}

static int series_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    info->estimatedRows = ((struct series *)vtab)->n;
    return SQLITE_OK;
}

static int series_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    (void)vtab;
    struct series_cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *ret = &cursor->base;
    return SQLITE_OK;
}

static int series_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int series_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                         sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    ((struct series_cursor *)cursor)->at = 1;
    return SQLITE_OK;
}

static int series_next(sqlite3_vtab_cursor *cursor)
{
    ((struct series_cursor *)cursor)->at++;
    return SQLITE_OK;
}

static int series_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct series_cursor *)cursor)->at > ((struct series *)cursor->pVtab)->n;
}

static int series_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    (void)column;
    sqlite3_result_int64(context, ((struct series_cursor *)cursor)->at);
    return SQLITE_OK;
}

static int series_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    *ret = ((struct series_cursor *)cursor)->at;
    return SQLITE_OK;
}

static const sqlite3_module series_module = {
    .xConnect = series_connect,
    .xBestIndex = series_best_index,
    .xDisconnect = series_disconnect,
    .xOpen = series_open,
    .xClose = series_close,
    .xFilter = series_filter,
    .xNext = series_next,
    .xEof = series_eof,
    .xColumn = series_column,
    .xRowid = series_rowid,
};

/* ---- statements ---- */

#define LOOP "SELECT sum(value), avg(value), max(value) FROM series"
#define GROUP(by)                                                                                            \
    "SELECT " by "config_id, sum(duration_ns), avg(duration_ns), max(duration_ns) FROM launch GROUP BY 1"

/* target: maximum ratio to the time of the statement `over`. */
static const struct {
    const char *name, *sql, *over;
    double target;
} statements[] = {
    {"series_sum", "SELECT sum(value) FROM series", NULL, 0},
    {"series_sum_avg_max", LOOP, NULL, 0},
    {"series_grouped", "SELECT value % 1000, sum(value), avg(value), max(value) FROM series GROUP BY 1", NULL,
     0},
    {"sum_duration", "SELECT sum(duration_ns) FROM launch", "series_sum", 1.5},
    {"by_config", GROUP(""), "series_sum_avg_max", 3},
    {"by_config_sorted", GROUP("+"), NULL, 0},
    {"by_config_then_kernel",
     "SELECT kernel, sum(n) FROM (SELECT config_id, count(*) AS n, sum(duration_ns) FROM launch GROUP BY "
     "config_id) "
     "JOIN launch_config USING (config_id) GROUP BY kernel",
     NULL, 0},
    {"by_kernel", "SELECT kernel, count(*), sum(duration_ns) FROM launch GROUP BY kernel", NULL, 0},
    {"in_order", "SELECT count(start_ns) FROM (SELECT start_ns FROM launch ORDER BY start_ns LIMIT -1)", NULL,
     0},
    {"sum_duration_of_a_time", "SELECT sum(duration_ns) FROM launch WHERE start_ns >= 1700000100000000000",
     NULL, 0},
    {"sum_duration_of_a_kernel", "SELECT sum(duration_ns) FROM launch WHERE kernel_id = 3", NULL, 0},
    {"sum_duration_of_a_device", "SELECT sum(duration_ns) FROM launch WHERE device_id = 3", NULL, 0},
    {"count", "SELECT count(*) FROM launch", NULL, 0},
    {"point", "SELECT count(*) FROM launch WHERE run_id = 2 AND correlation_id = 12345", NULL, 0},
};

enum { STATEMENTS = sizeof statements / sizeof *statements };

static double cpu_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#define ROUNDS 3

/* Lowers *best to the statement's time. malloc_trim() first releases memory of the previous statement:
 * otherwise the next large allocation would do so within the measured time, and a sorter's millions of small
 * blocks cost 40 ns a launch. */
static void measure(sqlite3 *db, const char *sql, double (*now)(void), double *best)
{
    (void)malloc_trim(0);
    double begin = now();
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "bench_sql: %s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
    double took = now() - begin;
    *best = took < *best ? took : *best;
}

static double wall_ms(sqlite3 *db, const char *sql)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++)
        measure(db, sql, bench_now_ns, &best);
    return best / 1e6;
}

void bench_sql_print(const char *path, uint64_t n)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    double took[STATEMENTS];
    if (occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err) != 0) {
        (void)fprintf(stderr, "bench_sql: %s\n", err.message);
        exit(1);
    }
    sqlite3 *db = occ_store_sqlite(store);
    (void)sqlite3_create_module(db, "series", &series_module, &n);
    (void)printf("  \"scan_ns_per_launch\": {");
    for (int i = 0; i < STATEMENTS; i++)
        took[i] = INFINITY;
    for (int i = 0; i < ROUNDS * STATEMENTS; i++)
        measure(db, statements[i % STATEMENTS].sql, cpu_now_ns, &took[i % STATEMENTS]);
    for (int i = 0; i < STATEMENTS; i++)
        (void)printf("%s\n    \"%s\": %.2f", i ? "," : "", statements[i].name, took[i] / (double)n);
    (void)printf("\n  },\n  \"scan_over_series\": {");
    const char *comma = "";
    for (int i = 0; i < STATEMENTS; i++)
        for (int k = 0; k < STATEMENTS && statements[i].over; k++)
            if (strcmp(statements[k].name, statements[i].over) == 0) {
                (void)printf("%s\n    \"%s\": {\"ratio\": %.2f, \"target\": %.1f}", comma, statements[i].name,
                             took[i] / took[k], statements[i].target);
                comma = ",";
            }
    (void)printf("\n  },\n  \"newest_ms\": {\"last_ten\": %.2f, \"max_start\": %.2f, \"target\": 10},\n",
                 wall_ms(db, "SELECT * FROM launch ORDER BY start_ns DESC LIMIT 10"),
                 wall_ms(db, "SELECT max(start_ns) FROM launch"));
    occ_store_close(store);
}
