/* Launches and samples of a history as a timeline; see timeline.h. */
#include "timeline.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "cli/history/sql_table.h"
#include "support/array.h"
#include "support/cleanup.h"

/* Columns of a launch. X(name, SQL) */
#define LAUNCH_COLUMNS(X)                                                                                    \
    X(start_ns, "start_ns")                                                                                  \
    X(duration_ns, "duration_ns")                                                                            \
    X(config_id, "config_id")                                                                                \
    X(run_id, "run_id")                                                                                      \
    X(context_id, "context_id")                                                                              \
    X(stream_id, "stream_id")                                                                                \
    X(correlation_id, "correlation_id")                                                                      \
    X(graph_node_id, "graph_node_id")                                                                        \
    X(achieved, "achieved")                                                                                  \
    X(achieved_ci95, "achieved_ci95")                                                                        \
    X(measured_ratio, "measured_ratio")
#define ENUMERATOR(name, sql) AT_##name,
enum { LAUNCH_COLUMNS(ENUMERATOR) };
#define COLUMN(name, sql) SQL_COLUMN(#name, sql, CLI_PLAIN, 0, NULL, ""),
const struct cli_column timeline_columns[] = {LAUNCH_COLUMNS(COLUMN) CLI_COLUMN_END};

enum { DEVICES_MAX = 4096, CONFIGS_KEPT = 1 << 14 };

#define SIZE(name)  name "_x || 'x' || " name "_y || 'x' || " name "_z"
#define RATIO(name) "round(" name ", 5)"
/* Arguments shared by all launches of a configuration. X(name, SQL) */
#define CONFIG_ARGUMENTS(X)                                                                                  \
    X(config_id, "config_id")                                                                                \
    X(grid, SIZE("grid"))                                                                                    \
    X(block, SIZE("block"))                                                                                  \
    X(cluster, "iif(cluster_x * cluster_y * cluster_z > 1, " SIZE("cluster") ", NULL)")                      \
    X(registers_per_thread, "registers_per_thread")                                                          \
    X(static_shared_bytes, "static_shared_bytes")                                                            \
    X(dynamic_shared_bytes, "dynamic_shared_bytes")                                                          \
    X(theoretical, RATIO("theoretical"))                                                                     \
    X(expected_achieved_low, RATIO("expected_achieved_low"))                                                 \
    X(expected_achieved_high, RATIO("expected_achieved_high"))                                               \
    X(expected_elapsed_low, RATIO("expected_elapsed_low"))                                                   \
    X(expected_elapsed_high, RATIO("expected_elapsed_high"))                                                 \
    X(waves, RATIO("waves"))                                                                                 \
    X(blocks_per_sm, "blocks_per_sm")                                                                        \
    X(limiters, "limiters")                                                                                  \
    X(main_cause, "nullif(main_cause, '')")
#define ARGUMENT(name, sql)     ", " sql " AS " #name
#define CAUSE(name, word, text) ", round(cause_" word ", 5) AS cause_" word
static const char config_sql[] = "SELECT kernel_name(kernel_id), device_id" CONFIG_ARGUMENTS(ARGUMENT)
    OCC_CAUSES(CAUSE) " FROM launch_config WHERE config_id = ?";
enum { CONFIG_KERNEL, CONFIG_DEVICE, CONFIG_FIRST_ARGUMENT = CONFIG_DEVICE };

struct device {
    int64_t id;
    uint32_t track;
};
struct config {
    struct export_config shared;
    int64_t device;
    uint32_t gpu; /* track */
};

struct timeline {
    const struct export_format *format;
    struct export_writer writer;
    sqlite3 *db;
    sqlite3_stmt *config_statement;
    struct export_lanes lanes;
    struct device *devices;
    size_t n_devices, devices_allocated;
    struct config *configs;
    size_t n_configs, configs_allocated;
    struct occ_map config_index;
    uint32_t tracks;
    int64_t end_ns; /* the last end */
    uint64_t launches, left_out;
};

static void drop_configs(struct timeline *t)
{
    while (t->n_configs)
        free(t->configs[--t->n_configs].shared.bytes);
    occ_map_clear(&t->config_index);
}

static void timeline_release(struct timeline *t)
{
    drop_configs(t);
    free(t->configs);
    free(t->devices);
    occ_map_free(&t->config_index);
    export_lanes_free(&t->lanes);
    (void)sqlite3_finalize(t->config_statement);
}

static uint32_t add_track(struct timeline *t, enum export_track_kind kind, uint32_t gpu, const char *name,
                          unsigned lane)
{
    struct export_track track = {.kind = kind, .id = ++t->tracks, .gpu = gpu, .name = name, .lane = lane};
    track.gpu = kind == EXPORT_GPU ? track.id : gpu;
    t->format->add_track(&t->writer, &track);
    return track.id;
}

static int sql_failed(struct timeline *t, struct occ_error *err)
{
    return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(t->db));
}

static int prepare(struct timeline *t, const char *sql, sqlite3_stmt **ret_statement, struct occ_error *err)
{
    return sqlite3_prepare_v2(t->db, sql, -1, ret_statement, NULL) == SQLITE_OK ? 0 : sql_failed(t, err);
}

/* ---- GPUs and launch configurations ---- */

static int find_gpu(struct timeline *t, int64_t device, uint32_t *ret_track, struct occ_error *err)
{
    sqlite3_stmt *s = NULL;
    for (size_t i = 0; i < t->n_devices; i++)
        if (t->devices[i].id == device) {
            *ret_track = t->devices[i].track;
            return 0;
        }
    if (!occ_grow((void **)&t->devices, &t->devices_allocated, t->n_devices, DEVICES_MAX, sizeof *t->devices))
        return occ_no_memory(err);
    int status =
        prepare(t, "SELECT 'GPU ' || device_id || ' ' || device FROM device WHERE device_id = ?", &s, err);
    if (status == 0) {
        (void)sqlite3_bind_int64(s, 1, device);
        const char *name = sqlite3_step(s) == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
        *ret_track = add_track(t, EXPORT_GPU, 0, name ? name : "GPU", 0);
        t->devices[t->n_devices++] = (struct device){device, *ret_track};
    }
    (void)sqlite3_finalize(s);
    return status;
}

static struct cli_value value_of(sqlite3_stmt *s, int column)
{
    switch (sqlite3_column_type(s, column)) {
    case SQLITE_INTEGER:
        return cli_integer(sqlite3_column_int64(s, column));
    case SQLITE_FLOAT:
        return cli_real(sqlite3_column_double(s, column));
    default:
        return cli_string((const char *)sqlite3_column_text(s, column));
    }
}

/* True for a cause without loss, which is no argument of a slice. */
static bool is_left_out(const struct timeline *t, const struct export_arg *arg)
{
    return !t->format->is_flat && strncmp(arg->key, "cause_", strlen("cause_")) == 0 &&
           arg->value.type == CLI_REAL && !(arg->value.real > 0);
}

static bool add_config(struct timeline *t, sqlite3_stmt *s, struct config *config)
{
    struct export_arg args[EXPORT_KEYS_MAX];
    const char *kernel = (const char *)sqlite3_column_text(s, CONFIG_KERNEL);
    size_t n = 0;
    for (int i = CONFIG_FIRST_ARGUMENT; i < sqlite3_column_count(s) && n < EXPORT_KEYS_MAX; i++) {
        args[n] = (struct export_arg){sqlite3_column_name(s, i), value_of(s, i)};
        n += !is_left_out(t, &args[n]);
    }
    return t->format->add_config(&t->writer, kernel ? kernel : "?", args, n, &config->shared);
}

static int load_config(struct timeline *t, int64_t id, struct config *config, struct occ_error *err)
{
    sqlite3_stmt *s = t->config_statement;
    (void)sqlite3_reset(s);
    (void)sqlite3_bind_int64(s, 1, id);
    *config = (struct config){.device = 0}; /* timeline_release() frees it, also after a failure */
    int step = sqlite3_step(s);
    if (step == SQLITE_DONE)
        return occ_fail(err, OCC_E_CORRUPT, "the history has no launch configuration %lld", (long long)id);
    if (step != SQLITE_ROW)
        return sql_failed(t, err);
    config->device = sqlite3_column_int64(s, CONFIG_DEVICE);
    int status = t->format->is_flat ? 0 : find_gpu(t, config->device, &config->gpu, err);
    if (status == 0 && !add_config(t, s, config))
        status = occ_no_memory(err);
    return status;
}

static int find_config(struct timeline *t, int64_t id, const struct config **ret_config,
                       struct occ_error *err)
{
    uint32_t i = occ_map_get(&t->config_index, (uint64_t)id);
    int status = 0;
    if (i == OCC_MAP_NONE) {
        if (t->n_configs == CONFIGS_KEPT)
            drop_configs(t);
        i = (uint32_t)t->n_configs;
        if (!occ_grow((void **)&t->configs, &t->configs_allocated, i, CONFIGS_KEPT, sizeof *t->configs) ||
            occ_map_put(&t->config_index, (uint64_t)id, i) == OCC_MAP_NONE)
            return occ_no_memory(err);
        status = load_config(t, id, &t->configs[t->n_configs++], err);
    }
    *ret_config = &t->configs[i];
    return status;
}

/* ---- launches ---- */

static struct export_lane *take_lane(struct timeline *t, const struct config *config,
                                     const struct export_launch *launch)
{
    const struct export_stream_key key = {.device = config->device,
                                          .run = (int64_t)launch->run,
                                          .context = (int64_t)launch->context,
                                          .stream = (int64_t)launch->stream};
    char context[32] = "", name[96];
    unsigned number;
    struct export_lane *lane = export_lanes_take(&t->lanes, &key, launch->start_ns, launch->end_ns, &number);
    if (!lane || lane->track)
        return lane;
    if (key.context > 1)
        (void)snprintf(context, sizeof context, "context %lld ", (long long)key.context);
    (void)snprintf(name, sizeof name, "run %lld %sstream %lld", (long long)key.run, context,
                   (long long)key.stream);
    lane->track = add_track(t, EXPORT_LANE, config->gpu, name, number);
    return lane;
}

static double ratio_of(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

static int add_launch(struct timeline *t, sqlite3_stmt *s, struct occ_error *err)
{
    const struct config *config = NULL;
    struct export_launch launch = {.start_ns = sqlite3_column_int64(s, AT_start_ns),
                                   .run = (uint64_t)sqlite3_column_int64(s, AT_run_id),
                                   .context = (uint64_t)sqlite3_column_int64(s, AT_context_id),
                                   .stream = (uint64_t)sqlite3_column_int64(s, AT_stream_id),
                                   .correlation = (uint64_t)sqlite3_column_int64(s, AT_correlation_id),
                                   .graph_node = (uint64_t)sqlite3_column_int64(s, AT_graph_node_id),
                                   .achieved = ratio_of(s, AT_achieved),
                                   .achieved_ci95 = ratio_of(s, AT_achieved_ci95),
                                   .measured_ratio = ratio_of(s, AT_measured_ratio)};
    launch.end_ns = launch.start_ns + sqlite3_column_int64(s, AT_duration_ns);
    int status = find_config(t, sqlite3_column_int64(s, AT_config_id), &config, err);
    if (status != 0)
        return status;
    struct export_track track = {.kind = EXPORT_LANE, .gpu = config->gpu};
    if (!t->format->is_flat) {
        const struct export_lane *lane = take_lane(t, config, &launch);
        t->left_out += !lane;
        if (!lane)
            return 0;
        track.id = lane->track;
    }
    t->format->add_launch(&t->writer, &track, &config->shared, &launch);
    t->launches++;
    t->end_ns = launch.end_ns > t->end_ns ? launch.end_ns : t->end_ns;
    return 0;
}

/* ---- counters ---- */

/* X(title, column of device_sample) */
#define COUNTERS(X)                   X("occupancy (elapsed), %", "elapsed") X("SMs active, %", "sm_active")
#define COUNTER_SELECT(title, column) ", " column
#define COUNTER_INIT(title, column)   {{.name = title}, {.name = "no " title}, 0},

struct counter {
    struct export_track track, holes;
    int64_t end_ns; /* the value is known until then; 0: no value yet */
};

static void begin_counter(struct timeline *t, struct export_track *track, enum export_track_kind kind,
                          uint32_t gpu)
{
    if (track->id == 0)
        *track = (struct export_track){kind, add_track(t, kind, gpu, track->name, 0), gpu, track->name, 0};
}

/* Adds a sample. Viewers hold a value until the next one, so a 0 and a slice follow where the value is
 * unknown. */
static void add_sample(struct timeline *t, struct counter *c, uint32_t gpu, int64_t start_ns, int64_t end_ns,
                       double ratio)
{
    begin_counter(t, &c->track, EXPORT_COUNTER, gpu);
    if (c->end_ns && start_ns > c->end_ns) {
        begin_counter(t, &c->holes, EXPORT_LANE, gpu);
        t->format->add_value(&t->writer, &c->track, c->end_ns, 0);
        t->format->add_hole(&t->writer, &c->holes, c->end_ns, start_ns);
    }
    t->format->add_value(&t->writer, &c->track, start_ns, 100 * ratio);
    c->end_ns = end_ns;
}

static int add_samples(struct timeline *t, sqlite3_stmt *s, uint32_t gpu, struct occ_error *err)
{
    struct counter counters[] = {COUNTERS(COUNTER_INIT)};
    int step;
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t start = sqlite3_column_int64(s, 0), end = sqlite3_column_int64(s, 1);
        start = start > t->writer.base_ns ? start : t->writer.base_ns;
        for (int i = 0; i < (int)(sizeof counters / sizeof *counters); i++)
            if (sqlite3_column_type(s, 2 + i) != SQLITE_NULL)
                add_sample(t, &counters[i], gpu, start, end, sqlite3_column_double(s, 2 + i));
    }
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (counters[i].end_ns)
            t->format->add_value(&t->writer, &counters[i].track, counters[i].end_ns, 0);
    return step == SQLITE_DONE ? 0 : sql_failed(t, err);
}

/* Adds samples from the first start to the last end; clips a sample that is running at the first start. */
static int add_counters(struct timeline *t, struct occ_error *err)
{
    sqlite3_stmt *s = NULL;
    int status = prepare(t,
                         "SELECT start_ns, end_ns" COUNTERS(
                             COUNTER_SELECT) " FROM device_sample WHERE device_id = ?1 AND start_ns >= ?2 - "
                                             "1000000000 AND end_ns > ?2 AND start_ns < ?3 ORDER BY start_ns",
                         &s, err);
    for (size_t i = 0; i < t->n_devices && status == 0; i++) {
        (void)sqlite3_reset(s);
        (void)sqlite3_bind_int64(s, 1, t->devices[i].id);
        (void)sqlite3_bind_int64(s, 2, t->writer.base_ns);
        (void)sqlite3_bind_int64(s, 3, t->end_ns);
        status = add_samples(t, s, t->devices[i].track, err);
    }
    (void)sqlite3_finalize(s);
    return status;
}

static int write_all(struct timeline *t, sqlite3_stmt *s, int64_t number, bool *ret_more,
                     struct occ_error *err)
{
    int status = prepare(t, config_sql, &t->config_statement, err), step = SQLITE_ROW;
    t->writer.base_ns = t->end_ns = sqlite3_column_int64(s, AT_start_ns);
    if (status == 0 && t->format->begin)
        t->format->begin(&t->writer);
    while (status == 0 && step == SQLITE_ROW && !ferror(t->writer.out) && number-- > 0) {
        status = add_launch(t, s, err);
        step = sqlite3_step(s);
    }
    *ret_more = step == SQLITE_ROW && !ferror(t->writer.out);
    if (status == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
        status = sql_failed(t, err);
    if (status == 0 && !t->format->is_flat)
        status = add_counters(t, err);
    if (status == 0 && t->format->end)
        t->format->end(&t->writer);
    return status;
}

int timeline_write(sqlite3_stmt *statement, const struct export_format *format, FILE *out, int64_t number,
                   struct timeline_counts *ret_counts, struct occ_error *err)
{
    _cleanup_(timeline_release) struct timeline t = {
        .format = format, .writer = {.out = out}, .db = sqlite3_db_handle(statement)};
    int status = write_all(&t, statement, number, &ret_counts->more, err);
    ret_counts->launches = t.launches;
    ret_counts->left_out = t.left_out;
    return status;
}
