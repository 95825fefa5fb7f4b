/* Launches and samples of a history as a timeline; see timeline.h. */
#include "timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/history/sql_table.h"
#include "support/cleanup.h"
#include "timeline_parts.h"

/* Columns of a launch. X(name) */
#define LAUNCH_COLUMNS(X)                                                                                    \
    X(start_ns)                                                                                              \
    X(duration_ns)                                                                                           \
    X(config_id)                                                                                             \
    X(run_id)                                                                                                \
    X(context_id)                                                                                            \
    X(stream_id)                                                                                             \
    X(correlation_id)                                                                                        \
    X(graph_node_id)                                                                                         \
    X(range_id)                                                                                              \
    X(achieved)                                                                                              \
    X(achieved_ci95)                                                                                         \
    X(measured_ratio)
#define ENUMERATOR(name) AT_##name,
enum { LAUNCH_COLUMNS(ENUMERATOR) };
#define COLUMN(name) SQL_COLUMN(#name, #name, CLI_PLAIN, 0, NULL, ""),
const struct cli_column timeline_columns[] = {LAUNCH_COLUMNS(COLUMN) CLI_COLUMN_END};

static void timeline_release(struct timeline *t)
{
    timeline_drop_configs(t);
    free(t->configs);
    free(t->devices);
    occ_map_free(&t->config_index);
    export_lanes_free(&t->lanes);
    export_ranges_free(&t->ranges);
    (void)sqlite3_finalize(t->config_statement);
    if (t->format->release)
        t->format->release(&t->writer);
}

/* ---- streams ---- */

/* Adds the track of a new lane, and of the layers beside it. */
static void add_lane_tracks(struct timeline *t, uint32_t gpu, const struct export_source *source,
                            struct export_lane *lane, unsigned number)
{
    char context[32] = "", name[96], layers[112];
    if (source->context > 1)
        (void)snprintf(context, sizeof context, "context %lld ", (long long)source->context);
    (void)snprintf(name, sizeof name, "run %lld %sstream %lld", (long long)source->run, context,
                   (long long)source->stream);
    (void)snprintf(layers, sizeof layers, "layers of %s", name);
    lane->track = timeline_add_track(
        t, (struct export_track){
               .kind = EXPORT_LANE, .gpu = gpu, .name = name, .lane = number, .source = source});
    if (lane->layers)
        lane->layers->track = (struct export_track){
            .kind = EXPORT_LAYERS,
            .gpu = gpu,
            .id = timeline_add_track(
                t, (struct export_track){
                       .kind = EXPORT_LAYERS, .gpu = gpu, .name = layers, .lane = number, .source = source})};
}

/* Names a new lane by its run and stream. */
static int name_lane(struct timeline *t, uint32_t gpu, const struct export_stream_key *key,
                     struct export_lane *lane, unsigned number, struct occ_error *err)
{
    struct export_source source = {
        .device = key->device, .run = key->run, .context = key->context, .stream = key->stream};
    static const char sql[] = "SELECT pid, program, EXISTS (SELECT 1 FROM range WHERE range.run_id = "
                              "run.run_id) FROM run WHERE run_id = ?";
    sqlite3_stmt *s = NULL;
    int status = timeline_prepare(t, sql, &s, err);
    if (status != 0)
        return status;
    (void)sqlite3_bind_int64(s, 1, key->run);
    if (sqlite3_step(s) == SQLITE_ROW) {
        source.pid = sqlite3_column_int64(s, 0);
        source.program = (const char *)sqlite3_column_text(s, 1);
        if (t->format->begin_layer && sqlite3_column_int(s, 2)) {
            lane->layers = calloc(1, sizeof *lane->layers);
            status = lane->layers ? 0 : occ_no_memory(err);
        }
    }
    if (status == 0)
        add_lane_tracks(t, gpu, &source, lane, number);
    (void)sqlite3_finalize(s);
    return status;
}

/* Takes a lane for a launch; *ret_lane is NULL if its stream has too many. */
static int take_lane(struct timeline *t, const struct timeline_config *config,
                     const struct export_launch *launch, struct export_lane **ret_lane, struct occ_error *err)
{
    const struct export_stream_key key = {.device = config->device,
                                          .run = (int64_t)launch->run,
                                          .context = (int64_t)launch->context,
                                          .stream = (int64_t)launch->stream};
    int64_t busy_until_ns = t->format->may_overlap ? launch->start_ns : launch->end_ns;
    unsigned number;
    *ret_lane = export_lanes_take(&t->lanes, &key, launch->start_ns, busy_until_ns, &number);
    return *ret_lane && !(*ret_lane)->track ? name_lane(t, config->gpu, &key, *ret_lane, number, err) : 0;
}

static void end_layers(struct timeline *t)
{
    for (size_t i = 0; i < t->lanes.n; i++)
        for (size_t j = 0; j < t->lanes.streams[i].n_lanes; j++)
            if (t->lanes.streams[i].lanes[j].layers)
                export_layers_end(t->lanes.streams[i].lanes[j].layers, &t->writer, t->format);
}

/* ---- launches ---- */

static double ratio_of(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

static struct export_launch read_launch(sqlite3_stmt *s)
{
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
    return launch;
}

static int add_launch(struct timeline *t, sqlite3_stmt *s, struct occ_error *err)
{
    const struct timeline_config *config = NULL;
    struct export_launch launch = read_launch(s);
    struct export_track track = {.kind = EXPORT_LANE};
    struct export_lane *lane = NULL;
    int status = timeline_find_config(t, sqlite3_column_int64(s, AT_config_id), &config, err);
    if (status == 0 && !t->format->is_flat)
        status = take_lane(t, config, &launch, &lane, err);
    int64_t range = lane && lane->layers ? sqlite3_column_int64(s, AT_range_id) : 0;
    if (status == 0 && range)
        status = export_ranges_find(&t->ranges, t->db, (int64_t)launch.run, range, &launch.range, err);
    if (status != 0)
        return status;
    t->left_out += !lane && !t->format->is_flat;
    if (!lane && !t->format->is_flat)
        return 0;
    track.gpu = config->gpu;
    track.id = lane ? lane->track : 0;
    t->format->add_launch(&t->writer, &track, &config->shared, &launch);
    if (lane && lane->layers)
        export_layers_add(lane->layers, &t->writer, t->format, range, &launch);
    t->launches++;
    t->end_ns = launch.end_ns > t->end_ns ? launch.end_ns : t->end_ns;
    return 0;
}

static int write_all(struct timeline *t, const struct timeline_request *request, bool *ret_more,
                     struct occ_error *err)
{
    sqlite3_stmt *s = request->statement;
    int64_t number = request->number;
    int status = timeline_prepare_configs(t, err), step = SQLITE_ROW;
    t->writer.base_ns = t->end_ns = sqlite3_column_int64(s, AT_start_ns);
    if (status == 0 && t->format->begin)
        t->format->begin(&t->writer);
    while (status == 0 && step == SQLITE_ROW && !ferror(t->writer.out) && !t->writer.failed && number-- > 0) {
        status = add_launch(t, s, err);
        step = sqlite3_step(s);
    }
    *ret_more = step == SQLITE_ROW && !ferror(t->writer.out);
    if (status == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
        status = timeline_sql_failed(t, err);
    end_layers(t);
    if (status == 0 && !t->format->is_flat)
        status = timeline_add_samples(t, err);
    if (status == 0 && t->format->end)
        t->format->end(&t->writer);
    return status == 0 && t->writer.failed ? occ_no_memory(err) : status;
}

int timeline_write(const struct timeline_request *request, struct timeline_counts *ret_counts,
                   struct occ_error *err)
{
    _cleanup_(timeline_release) struct timeline t = {.format = request->format,
                                                     .writer = {.out = request->out},
                                                     .store = request->store,
                                                     .db = sqlite3_db_handle(request->statement)};
    int status = write_all(&t, request, &ret_counts->more, err);
    ret_counts->launches = t.launches;
    ret_counts->left_out = t.left_out;
    return status;
}
