/*
 * Fuzzes SQL over the virtual tables launch and device_sample: a generated statement must give the same
 * answer over a plain copy of the table. A plain scan makes the copy; plans of the virtual tables (skipped
 * chunks, merged starts, gathered configurations) must not change an answer.
 *
 * Input: choices of the statement's parts.
 */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fuzz_bytes.h"
#include "store/measured.h"
#include "test_store_world.h"

#define BEGIN         INT64_C(1700000000000000000)
#define SECOND        INT64_C(1000000000)
#define SAMPLES       900
#define ROWS_MAX      20000
#define CONDITION_MAX 3

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world world;
static sqlite3 *db;

static void must(bool good, const char *sql)
{
    if (good)
        return;
    (void)fprintf(stderr, "%s\n%s\n", sql, sqlite3_errmsg(db));
    abort();
}

/* ---- the tables ---- */

static void clean_up(void)
{
    occ_store_close(world.store);
    world_remove_directory(&world);
}

static void add_samples(void)
{
    static struct occ_device_sample samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        int64_t start_ns = BEGIN + i * SECOND / 4;
        samples[i] = (struct occ_device_sample){.start_ns = start_ns,
                                                .end_ns = start_ns + SECOND / 4,
                                                .elapsed = i % 5 ? i % 97 / 97.0 : 0,
                                                .sm_active = i % 89 / 89.0,
                                                .resident_blocks = i % 13};
    }
    for (int i = 0; i < WORLD_DEVICES; i++)
        must(occ_store_add_samples(world.store, world.device[i], samples + 200 * i, SAMPLES - 200, NULL) == 0,
             "samples");
}

static void add_values(void)
{
    for (size_t i = 0; i < world.n; i += 3) {
        const struct world_launch *l = &world.launches[i];
        const struct occ_launch_value value = {.start_ns = l->launch.start_ns,
                                               .correlation = l->launch.correlation,
                                               .config = l->launch.config,
                                               .achieved = i % 100 / 100.0,
                                               .achieved_error = 0.01,
                                               .elapsed = i % 50 / 100.0,
                                               .elapsed_error = 0.01};
        must(occ_store_add_launch_values(world.store, l->run, l->device, &value, 1, NULL) == 0, "values");
    }
}

static void fill(void)
{
    static const char copies[] = "CREATE TEMP TABLE plain_launch AS SELECT * FROM launch;"
                                 "CREATE TEMP TABLE plain_device_sample AS SELECT * FROM device_sample";
    world.options.chunk_rows = 50;
    world_make_directory(&world);
    world_open(&world);
    for (int i = 0; i < 6; i++) {
        world_append(&world, i % 2, BEGIN + i * 60 * SECOND, 180 * SECOND, 90);
        must(occ_store_commit(world.store, NULL) == 0, "commit");
    }
    add_values();
    add_samples();
    must(occ_store_commit(world.store, NULL) == 0, "commit");
    db = occ_store_sqlite(world.store);
    must(sqlite3_exec(db, copies, NULL, NULL, NULL) == SQLITE_OK, copies);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fill();
    must(atexit(clean_up) == 0, "atexit");
    return 0;
}

/* ---- statements ---- */

static const char *const launch_columns[] = {
    "run_id",         "config_id",       "kernel_id",   "device_id",     "start_ns",      "end_ns",
    "duration_ns",    "context_id",      "stream_id",   "kernel",        "range_id",      "achieved",
    "correlation_id", "graph_node_id",   "elapsed",     "achieved_ci95", "grid_x",        "device",
    "waves",          "measured_source", "theoretical", "grid_blocks",   "kernel_mangled"};
static const char *const sample_columns[] = {"device_id", "start_ns",  "end_ns",
                                             "elapsed",   "sm_active", "resident_blocks"};
static const char *const operators[] = {"=", ">", ">=", "<", "<=", "<>", "IS", "IS NOT"};

static const struct table {
    const char *name;
    const char *const *columns;
    size_t n;
} tables[] = {{"launch", launch_columns, sizeof launch_columns / sizeof *launch_columns},
              {"device_sample", sample_columns, sizeof sample_columns / sizeof *sample_columns}};

/* A statement, generated twice: for the virtual table and for its copy. */
struct statement {
    struct fuzz_bytes input;
    const struct table *table;
    const char *prefix; /* prefix of the table's name */
    sqlite3_str *sql;
};

static const char *column(struct statement *s)
{
    return s->table->columns[fuzz_choice(&s->input, s->table->n)];
}

static void put_table(struct statement *s)
{
    sqlite3_str_appendf(s->sql, "%s%s", s->prefix, s->table->name);
}

static void put_value(struct statement *s, const char *name)
{
    static const char *const others[] = {
        "NULL",  "0",        "-1", "9223372036854775807", "-9223372036854775808", "1.5", "'7'", "x'00'",
        "1e300", "'vecAdd'", "2"};
    uint8_t choice = fuzz_byte(&s->input);
    if (choice < 160)
        sqlite3_str_appendf(s->sql, "(SELECT %s FROM plain_%s LIMIT 1 OFFSET %d)", name, s->table->name,
                            choice + (fuzz_byte(&s->input) & 1) * 256);
    else
        sqlite3_str_appendall(s->sql, others[choice % (sizeof others / sizeof *others)]);
}

static void put_comparison(struct statement *s)
{
    const char *name = column(s);
    size_t form = fuzz_choice(&s->input, 12);
    sqlite3_str_appendf(s->sql, "%s%s ", form == 11 ? "NOT " : "", name);
    if (form < 8) {
        sqlite3_str_appendf(s->sql, "%s ", operators[form]);
        put_value(s, name);
    } else if (form == 8) {
        sqlite3_str_appendall(s->sql, "BETWEEN ");
        put_value(s, name);
        sqlite3_str_appendall(s->sql, " AND ");
        put_value(s, name);
    } else if (form == 9) {
        sqlite3_str_appendall(s->sql, "IN (");
        put_value(s, name);
        sqlite3_str_appendall(s->sql, ", ");
        put_value(s, name);
        sqlite3_str_appendall(s->sql, ")");
    } else {
        sqlite3_str_appendall(s->sql, "IS NULL");
    }
}

static void put_condition(struct statement *s)
{
    size_t n = fuzz_choice(&s->input, CONDITION_MAX + 1);
    sqlite3_str_appendall(s->sql, n > 0 ? " WHERE " : "");
    for (size_t i = 0; i < n; i++) {
        put_comparison(s);
        if (i + 1 < n)
            sqlite3_str_appendall(s->sql, fuzz_byte(&s->input) & 1 ? " OR " : " AND ");
    }
}

static void put_columns(struct statement *s)
{
    for (size_t n = 1 + fuzz_choice(&s->input, 4); n > 0; n--)
        sqlite3_str_appendf(s->sql, "%s%s", column(s), n > 1 ? ", " : "");
}

static void select_rows(struct statement *s)
{
    sqlite3_str_appendall(s->sql, "SELECT ");
    put_columns(s);
    sqlite3_str_appendall(s->sql, " FROM ");
    put_table(s);
    put_condition(s);
}

/* Selects the sort keys only, since rows with equal keys have no defined order. */
static void select_sorted(struct statement *s)
{
    const char *key = column(s);
    sqlite3_str_appendf(s->sql, "SELECT %s FROM ", key);
    put_table(s);
    put_condition(s);
    sqlite3_str_appendf(s->sql, " ORDER BY %s%s", key, fuzz_byte(&s->input) & 1 ? " DESC" : "");
    if (fuzz_byte(&s->input) & 1)
        sqlite3_str_appendf(s->sql, " LIMIT %d OFFSET %d", fuzz_byte(&s->input), fuzz_byte(&s->input));
}

static void select_groups(struct statement *s)
{
    const char *key = column(s), *counted = column(s), *low = column(s), *high = column(s);
    sqlite3_str_appendf(s->sql, "SELECT %s, count(*), count(%s), min(%s), max(%s), count(DISTINCT %s) FROM ",
                        key, counted, low, high, low);
    put_table(s);
    put_condition(s);
    sqlite3_str_appendf(s->sql, " GROUP BY %s ORDER BY %s", key, key);
}

static void select_within(struct statement *s)
{
    const char *outer = column(s), *inner = column(s);
    sqlite3_str_appendf(s->sql, "SELECT %s, start_ns FROM ", inner);
    put_table(s);
    sqlite3_str_appendf(s->sql, " WHERE %s IN (SELECT %s FROM ", outer, outer);
    put_table(s);
    put_condition(s);
    sqlite3_str_appendall(s->sql, ")");
}

static void select_joined(struct statement *s)
{
    const char *key = column(s);
    sqlite3_str_appendf(
        s->sql, "SELECT count(*), min(a.start_ns), max(b.end_ns), count(DISTINCT a.%s) FROM (SELECT * FROM ",
        key);
    put_table(s);
    put_condition(s);
    sqlite3_str_appendall(s->sql, " ORDER BY start_ns, end_ns, device_id LIMIT 10) AS a JOIN ");
    put_table(s);
    sqlite3_str_appendf(s->sql, " AS b ON a.%s %s b.%s", key, operators[fuzz_choice(&s->input, 5)], key);
}

static const struct {
    void (*make)(struct statement *s);
    bool is_sorted;
} forms[] = {{select_rows, false},
             {select_sorted, true},
             {select_groups, true},
             {select_within, false},
             {select_joined, true}};

/* ---- answers ---- */

static char *rows[2][ROWS_MAX];

static char *row_text(sqlite3_stmt *stmt)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        if (sqlite3_column_type(stmt, i) == SQLITE_FLOAT)
            sqlite3_str_appendf(text, "%!.17g|", sqlite3_column_double(stmt, i));
        else
            sqlite3_str_appendf(text, "%d:%s|", sqlite3_column_type(stmt, i), sqlite3_column_text(stmt, i));
    return sqlite3_str_finish(text);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t answer(const char *sql, bool is_sorted, char **texts)
{
    sqlite3_stmt *stmt = NULL;
    size_t n = 0;
    int step = SQLITE_DONE;
    must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, sql);
    while (n < ROWS_MAX && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        texts[n++] = row_text(stmt);
    must(step == SQLITE_DONE, sql);
    (void)sqlite3_finalize(stmt);
    if (!is_sorted)
        qsort(texts, n, sizeof *texts, compare_texts);
    return n;
}

static char *make_statement(const uint8_t *data, size_t size, const char *prefix, bool *ret_is_sorted)
{
    struct statement s = {.input = {data, size}, .prefix = prefix, .sql = sqlite3_str_new(NULL)};
    s.table = &tables[fuzz_choice(&s.input, 2)];
    size_t form = fuzz_choice(&s.input, sizeof forms / sizeof *forms);
    forms[form].make(&s);
    *ret_is_sorted = forms[form].is_sorted;
    return sqlite3_str_finish(s.sql);
}

static void compare(const char *sql, size_t n, const char *plain, size_t n_plain)
{
    bool is_same = n == n_plain;
    for (size_t i = 0; i < n && is_same; i++)
        is_same = strcmp(rows[0][i], rows[1][i]) == 0;
    if (is_same)
        return;
    (void)fprintf(stderr, "%s: %zu rows\n%s: %zu rows\n", sql, n, plain, n_plain);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_sorted = false;
    char *sql = make_statement(data, size, "", &is_sorted),
         *plain = make_statement(data, size, "plain_", &is_sorted);
    size_t n = answer(sql, is_sorted, rows[0]), n_plain = answer(plain, is_sorted, rows[1]);
    compare(sql, n, plain, n_plain);
    for (size_t i = 0; i < n; i++)
        sqlite3_free(rows[0][i]);
    for (size_t i = 0; i < n_plain; i++)
        sqlite3_free(rows[1][i]);
    sqlite3_free(sql);
    sqlite3_free(plain);
    return 0;
}
