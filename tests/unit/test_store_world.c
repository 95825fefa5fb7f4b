/* The made-up world of the store's tests. Assertions are cmocka's; one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_store_world.h"

#define MINUTE INT64_C(60000000000)
#define HOUR   (60 * MINUTE)

static const char *const names[WORLD_KERNELS] = {"_Z6vecAddPKfS0_Pfi", "_ZN2ns7reduce1ILi4EEEvPf",
                                                 "vecAdd_tn", "_ZN12_GLOBAL__N_17softmaxEPf", "_Z5tailyv"};

uint64_t world_random(struct world *w)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return w->seed;
}

void world_make_directory(struct world *w)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(w->directory, sizeof w->directory, "%.40s/occ-store-XXXXXX",
                   base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->path, sizeof w->path, "%s/history.db", w->directory);
    w->seed = UINT64_C(0x2545f4914f6cdd1d);
}

void world_remove_directory(struct world *w)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char path[128];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(path, sizeof path, "%s%s", w->path, suffixes[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(w->directory), 0);
    free(w->launches);
    w->launches = NULL;
}

static void put_configs(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (int i = 0; i < WORLD_CONFIGS; i++) {
        w->config_kernel[i] = w->kernel[i % WORLD_KERNELS];
        w->config_device[i] = w->device[i % WORLD_DEVICES];
        struct occ_launch_config config = {.kernel = w->config_kernel[i],
                                           .device = w->config_device[i],
                                           .launch = {.grid = {(uint32_t)(17 + 31 * i), 1, 1},
                                                      .block = {(uint32_t)(32 * (1 + i % 8)), 1, 1},
                                                      .registers_per_thread = (uint32_t)(16 + 8 * (i % 20)),
                                                      .carveout_percent = -1}};
        if (i == WORLD_CONFIGS - 1)
            config.launch.block[0] = 5000; /* the model refuses it */
        assert_int_equal(occ_store_put_config(w->store, &config, &w->config[i], &err), 0);
    }
}

static const char *const ranges[WORLD_RANGES] = {"step #", "step #/encoder", "step #/decoder"};

void world_open(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    w->options.mode = OCC_STORE_WRITE;
    if (occ_store_open(w->path, &w->options, &w->store, &err) != 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < WORLD_RUNS; i++) {
        struct occ_run run = {.uuid = {(uint8_t)(i + 1)},
                              .pid = 100 + i,
                              .start_ns = 1000 + i,
                              .hostname = "here",
                              .exe = "/bin/app",
                              .session = i ? "b" : "a"};
        assert_int_equal(occ_store_put_run(w->store, &run, &w->run[i], &err), 0);
        for (uint32_t k = 0, range = 0; k < WORLD_RANGES; k++) {
            assert_int_equal(occ_store_put_range(w->store, w->run[i], ranges[k], NULL, &range, &err), 0);
            assert_int_equal(range, k + 1);
        }
    }
    for (int i = 0; i < WORLD_DEVICES; i++) {
        struct occ_store_device device = {.uuid = {(uint8_t)(i + 1)},
                                          .name = i ? "Device B" : "Device A",
                                          .limits = {.cc = i ? 90 : 80, .sm_count = i ? 132 : 108}};
        assert_int_equal(occ_store_put_device(w->store, &device, &w->device[i], &err), 0);
    }
    for (int i = 0; i < WORLD_KERNELS; i++)
        assert_int_equal(occ_store_put_kernel(w->store, names[i], (uint64_t)i * 77 + 1, &w->kernel[i], &err),
                         0);
    put_configs(w);
}

static void remember(struct world *w, int64_t run, int64_t device, const struct occ_store_launch *launch)
{
    if (w->n == w->capacity) {
        w->capacity = w->capacity * 2 + 1024;
        w->launches = realloc(w->launches, w->capacity * sizeof *w->launches);
        assert_non_null(w->launches);
    }
    w->launches[w->n++] = (struct world_launch){.run = run, .device = device, .launch = *launch};
}

/* Draws a start within the span: one in eight is exactly on a minute, one in eight exactly on an hour, if the
 * span has one before the drawn time. */
static int64_t draw_start(struct world *w, int64_t from_ns, int64_t span_ns)
{
    int64_t start_ns = from_ns + (int64_t)(world_random(w) % (uint64_t)span_ns), edge_ns = start_ns;
    uint64_t choice = world_random(w) % 8;
    if (choice == 0)
        edge_ns = start_ns / MINUTE * MINUTE;
    if (choice == 1)
        edge_ns = start_ns / HOUR * HOUR;
    return edge_ns >= from_ns ? edge_ns : start_ns;
}

void world_append(struct world *w, int run, int64_t from_ns, int64_t span_ns, size_t n)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        int config = (int)(world_random(w) % WORLD_CONFIGS);
        struct occ_store_launch launch = {.start_ns = draw_start(w, from_ns, span_ns),
                                          .duration_ns =
                                              1000 + world_random(w) % (UINT64_C(1) << (config % 30)),
                                          .graph_node = world_random(w) % 7 == 0 ? world_random(w) : 0,
                                          .config = (uint32_t)w->config[config],
                                          .stream = (uint32_t)(7 + world_random(w) % 3),
                                          .correlation = (uint32_t)(w->n + i),
                                          .context = 1,
                                          /* long stretches without a range, so that some chunks have none */
                                          .range = w->n / 256 % 2 ? 0 : w->n % (WORLD_RANGES + 1)};
        if (occ_store_append(w->store, w->run[run], w->config_device[config], &launch, 1, &err) != 0)
            fail_msg("%s", err.message);
        remember(w, w->run[run], w->config_device[config], &launch);
    }
}

/* ---- the slow way ---- */

struct sums {
    uint64_t launches, total_ns, min_ns, max_ns;
    int64_t first_ns, last_ns;
};

static void add_launch(struct sums *t, const struct occ_store_launch *launch)
{
    if (t->launches++ == 0)
        *t = (struct sums){.launches = 1, .min_ns = UINT64_MAX, .first_ns = INT64_MAX};
    t->total_ns += launch->duration_ns;
    t->min_ns = launch->duration_ns < t->min_ns ? launch->duration_ns : t->min_ns;
    t->max_ns = launch->duration_ns > t->max_ns ? launch->duration_ns : t->max_ns;
    t->first_ns = launch->start_ns < t->first_ns ? launch->start_ns : t->first_ns;
    t->last_ns = launch->start_ns > t->last_ns ? launch->start_ns : t->last_ns;
}

static bool fits(const struct world *w, const struct occ_filter *f, const struct world_launch *l, int config)
{
    if (f->since_ns && l->launch.start_ns < f->since_ns)
        return false;
    if (f->until_ns && l->launch.start_ns >= f->until_ns)
        return false;
    if (f->run && l->run != f->run)
        return false;
    if (f->session && l->run != w->run[strcmp(f->session, "b") == 0])
        return false;
    if (f->gpu && l->device != strtoll(f->gpu, NULL, 10))
        return false;
    if (f->exclude_regex && w->config_kernel[config] == w->kernel[0])
        return false;
    /* the tests ask for "vecAdd", in several ways */
    return (!f->kernel_regex && !f->kernel) || w->config_kernel[config] == w->kernel[0];
}

static int config_index(const struct world *w, uint32_t id)
{
    for (int i = 0; i < WORLD_CONFIGS; i++)
        if (w->config[i] == id)
            return i;
    fail_msg("unknown configuration %u", id);
    return 0;
}

static void add_all(const struct world *w, const struct occ_filter *f, struct sums sums[WORLD_CONFIGS])
{
    memset(sums, 0, WORLD_CONFIGS * sizeof *sums);
    for (size_t i = 0; i < w->n; i++) {
        int config = config_index(w, w->launches[i].launch.config);
        if (fits(w, f, &w->launches[i], config))
            add_launch(&sums[config], &w->launches[i].launch);
    }
}

static bool stands_before(const struct occ_config_row *a, const struct occ_config_row *b)
{
    return a->kernel.id != b->kernel.id           ? a->kernel.id < b->kernel.id
           : a->kernel.device != b->kernel.device ? a->kernel.device < b->kernel.device
                                                  : a->total_ns >= b->total_ns;
}

static void check_configs(struct world *w, struct occ_store *store, const struct occ_filter *f,
                          const struct sums *sums)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_config_rows configs;
    size_t expected = 0;
    if (occ_store_configs(store, f, &configs, &err) != 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < WORLD_CONFIGS; i++)
        expected += sums[i].launches > 0;
    assert_int_equal(configs.n, expected);
    for (size_t i = 0; i < configs.n; i++) {
        const struct occ_config_row *row = &configs.rows[i];
        int config = config_index(w, (uint32_t)row->id);
        assert_int_equal(row->launches, sums[config].launches);
        assert_int_equal(row->total_ns, sums[config].total_ns);
        assert_int_equal(row->min_ns, sums[config].min_ns);
        assert_int_equal(row->max_ns, sums[config].max_ns);
        assert_int_equal(row->first_ns, sums[config].first_ns);
        assert_int_equal(row->last_ns, sums[config].last_ns);
        assert_int_equal(row->kernel.id, w->config_kernel[config]);
        assert_true(row->p50_ns >= row->min_ns && row->p50_ns <= row->p99_ns && row->p99_ns <= row->max_ns);
        assert_int_equal(row->analysed, config != WORLD_CONFIGS - 1);
        assert_true(i == 0 || stands_before(row - 1, row));
    }
    occ_config_rows_free(&configs);
}

static void check_top(struct world *w, struct occ_store *store, const struct occ_filter *f,
                      const struct sums *sums)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_top top;
    if (occ_store_top(store, f, OCC_TOP_BY_KERNEL, &top, &err) != 0)
        fail_msg("%s", err.message);
    for (int k = 0; k < WORLD_KERNELS; k++)
        for (int d = 0; d < WORLD_DEVICES; d++) {
            struct sums all = {.min_ns = UINT64_MAX};
            uint32_t configs = 0;
            for (int i = 0; i < WORLD_CONFIGS; i++)
                if (sums[i].launches && w->config_kernel[i] == w->kernel[k] &&
                    w->config_device[i] == w->device[d]) {
                    configs++;
                    all.launches += sums[i].launches;
                    all.total_ns += sums[i].total_ns;
                    all.min_ns = sums[i].min_ns < all.min_ns ? sums[i].min_ns : all.min_ns;
                    all.max_ns = sums[i].max_ns > all.max_ns ? sums[i].max_ns : all.max_ns;
                }
            const struct occ_top_row *row = NULL;
            for (size_t i = 0; i < top.n; i++)
                if (top.rows[i].kernel.id == w->kernel[k] && top.rows[i].kernel.device == w->device[d])
                    row = &top.rows[i];
            assert_int_equal(row != NULL, all.launches > 0);
            if (!row)
                continue;
            assert_int_equal(row->configs, configs);
            assert_int_equal(row->launches, all.launches);
            assert_int_equal(row->total_ns, all.total_ns);
            assert_int_equal(row->min_ns, all.min_ns);
            assert_int_equal(row->max_ns, all.max_ns);
        }
    occ_top_free(&top);
}

int64_t world_number_in(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK || sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

int64_t world_number(struct occ_store *store, const char *sql)
{
    return world_number_in(occ_store_sqlite(store), sql);
}

void world_loosen(struct occ_store *store, const char *table)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "CREATE TEMP TABLE copy AS SELECT * FROM %s; DROP TABLE %s; "
                   "CREATE TABLE %s AS SELECT * FROM copy; DROP TABLE copy",
                   table, table, table);
    if (sqlite3_exec(occ_store_sqlite(store), sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", table, sqlite3_errmsg(occ_store_sqlite(store)));
}

static void check_launches(struct world *w, struct occ_store *store, const struct occ_filter *f,
                           const struct sums *sums)
{
    char where[512];
    uint64_t launches = 0, total = 0;
    for (int i = 0; i < WORLD_CONFIGS; i++) {
        launches += sums[i].launches;
        total += sums[i].total_ns;
    }
    (void)snprintf(where, sizeof where, "FROM launch WHERE start_ns >= %lld AND start_ns < %lld",
                   (long long)f->since_ns, (long long)(f->until_ns ? f->until_ns : INT64_MAX));
    size_t at = strlen(where);
    int64_t run = f->session ? w->run[strcmp(f->session, "b") == 0] : f->run;
    if (run)
        at += (size_t)snprintf(where + at, sizeof where - at, " AND run_id = %lld", (long long)run);
    if (f->gpu)
        at += (size_t)snprintf(where + at, sizeof where - at, " AND device_id = %s", f->gpu);
    if (f->exclude_regex)
        at += (size_t)snprintf(where + at, sizeof where - at, " AND kernel_id <> %lld",
                               (long long)w->kernel[0]);
    if (f->kernel_regex || f->kernel)
        (void)snprintf(where + at, sizeof where - at, " AND kernel_id = %lld", (long long)w->kernel[0]);
    if (f->run && f->session && f->run != run)
        return;
    char sql[600];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) %s", where);
    assert_int_equal(world_number(store, sql), launches);
    (void)snprintf(sql, sizeof sql, "SELECT coalesce(sum(end_ns - start_ns), 0) %s", where);
    assert_int_equal(world_number(store, sql), total);
}

void world_check_questions(struct world *w, struct occ_store *store, const struct occ_filter *filter)
{
    struct sums sums[WORLD_CONFIGS];
    add_all(w, filter, sums);
    check_configs(w, store, filter, sums);
    check_top(w, store, filter, sums);
}

void world_check(struct world *w, struct occ_store *store, const struct occ_filter *filter)
{
    struct sums sums[WORLD_CONFIGS];
    add_all(w, filter, sums);
    check_configs(w, store, filter, sums);
    check_top(w, store, filter, sums);
    check_launches(w, store, filter, sums);
}

void world_check_random(struct world *w, struct occ_store *store, int times)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < w->n; i++) {
        first = w->launches[i].launch.start_ns < first ? w->launches[i].launch.start_ns : first;
        last = w->launches[i].launch.start_ns > last ? w->launches[i].launch.start_ns : last;
    }
    uint64_t span = (uint64_t)(last - first) + 2;
    for (int i = 0; i < times; i++) {
        struct occ_filter f = {0};
        uint64_t choice = world_random(w);
        char id[24], gpu[24];
        const char *const kernels[] = {id, "vecAdd", "^vec[A-Z]dd\\(", "vecAdd\\("};
        (void)snprintf(id, sizeof id, "%lld", (long long)w->kernel[0]);
        (void)snprintf(gpu, sizeof gpu, "%lld", (long long)w->device[choice >> 21 & 1]);
        if (choice & 1)
            f.since_ns = first + (int64_t)(world_random(w) % span);
        if (choice & 2)
            f.until_ns = first + (int64_t)(world_random(w) % span);
        if ((choice & 12) == 4) /* on an edge of a bucket */
            f.since_ns = f.since_ns / MINUTE * MINUTE;
        if ((choice & 12) == 8)
            f.since_ns = f.since_ns / HOUR * HOUR;
        if ((choice & 12) == 12) { /* at a launch's own start */
            f.since_ns = f.since_ns ? w->launches[world_random(w) % w->n].launch.start_ns : 0;
            f.until_ns = f.until_ns ? w->launches[world_random(w) % w->n].launch.start_ns : 0;
        }
        if ((choice & 48) == 16)
            f.run = w->run[choice >> 20 & 1];
        if ((choice & 48) == 32)
            f.session = choice >> 20 & 1 ? "b" : "a";
        if ((choice & 3840) == 256)
            f.exclude_regex = "^vec[A-Z]dd\\(";
        if ((choice & 192) == 64)
            f.gpu = gpu;
        if ((choice & 192) == 128)
            f.kernel_regex = "^vec[A-Z]dd\\(";
        if ((choice & 192) == 192)
            f.kernel = kernels[choice >> 22 & 3];
        world_check(w, store, &f);
    }
}

void world_check_rollups(struct world *w, struct occ_store *store)
{
    static const char *const tables[] = {"minute", "hour"};
    for (int run = 0; run < WORLD_RUNS; run++)
        for (int i = 0; i < 2; i++) {
            char sql[200];
            (void)snprintf(sql, sizeof sql, "SELECT rolled_ns FROM stored_run WHERE run_id = %lld",
                           (long long)w->run[run]);
            int64_t until = world_number(store, sql);
            uint64_t launches = 0, total = 0;
            for (size_t k = 0; k < w->n; k++)
                if (w->launches[k].run == w->run[run] && w->launches[k].launch.start_ns < until) {
                    launches++;
                    total += w->launches[k].launch.duration_ns;
                }
            (void)snprintf(sql, sizeof sql,
                           "SELECT coalesce(sum(launches), 0) FROM stored_%s WHERE run_id = %lld", tables[i],
                           (long long)w->run[run]);
            assert_int_equal(world_number(store, sql), launches);
            (void)snprintf(sql, sizeof sql,
                           "SELECT coalesce(sum(total_duration_ns), 0) FROM stored_%s WHERE run_id = %lld",
                           tables[i], (long long)w->run[run]);
            assert_int_equal(world_number(store, sql), total);
        }
}
