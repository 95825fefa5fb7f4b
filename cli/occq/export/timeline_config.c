/* GPUs and launch configurations of a timeline; see timeline_parts.h. */
#include <stdlib.h>
#include <string.h>

#include "model_args.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "timeline_parts.h"

enum { DEVICES_MAX = 4096, CONFIGS_KEPT = 1 << 14 };

#define SIZE(name) name "_x || 'x' || " name "_y || 'x' || " name "_z"
#define PLAIN(name)                                                                                          \
    {                                                                                                        \
#name, #name, EXPORT_OF_KERNEL                                                                       \
    }
#define RATIO(name)                                                                                          \
    {                                                                                                        \
#name, "round(" #name ", 5)", EXPORT_OF_KERNEL                                                       \
    }
#define CAUSE(name, word, text) {"cause_" word, "round(cause_" word ", 5)", EXPORT_OF_KERNEL},
const struct export_column export_columns[] = {
    PLAIN(device_id),
    PLAIN(config_id),
    {"grid", SIZE("grid"), EXPORT_OF_KERNEL},
    {"block", SIZE("block"), EXPORT_OF_KERNEL},
    {"cluster", "iif(cluster_x * cluster_y * cluster_z > 1, " SIZE("cluster") ", NULL)", EXPORT_OF_KERNEL},
    PLAIN(registers_per_thread),
    PLAIN(static_shared_bytes),
    PLAIN(dynamic_shared_bytes),
    RATIO(theoretical),
    RATIO(expected_achieved_low),
    RATIO(expected_achieved_high),
    RATIO(expected_elapsed_low),
    RATIO(expected_elapsed_high),
    RATIO(waves),
    PLAIN(blocks_per_sm),
    PLAIN(limiters),
    {"main_cause", "nullif(main_cause, '')", EXPORT_OF_KERNEL},
    OCC_CAUSES(CAUSE){0}};
enum { CONFIG_KERNEL, CONFIG_DEVICE, CONFIG_FIRST_ARGUMENT };

static const struct export_column *columns_of(const struct timeline *t)
{
    return t->format->columns ? t->format->columns : export_columns;
}

int timeline_prepare_configs(struct timeline *t, struct occ_error *err)
{
    _cleanup_(occ_freep) char *sql = NULL;
    size_t size;
    FILE *memory = open_memstream(&sql, &size);
    if (!memory)
        return occ_no_memory(err);
    (void)fputs("SELECT kernel_name(kernel_id), device_id", memory);
    for (const struct export_column *c = columns_of(t); c->key; c++)
        (void)fprintf(memory, ", %s", c->sql);
    (void)fputs(" FROM launch_config WHERE config_id = ?", memory);
    bool failed = ferror(memory);
    return fclose(memory) != 0 || failed ? occ_no_memory(err)
                                         : timeline_prepare(t, sql, &t->config_statement, err);
}

void timeline_drop_configs(struct timeline *t)
{
    while (t->n_configs)
        free(t->configs[--t->n_configs].shared.bytes);
    occ_map_clear(&t->config_index);
}

/* ---- GPUs ---- */

/* Adds the track of a device; the statement is at its row, or has none. */
static uint32_t add_gpu(struct timeline *t, sqlite3_stmt *s, int64_t id)
{
    struct export_gpu gpu = {.id = id};
    struct export_track track = {.kind = EXPORT_GPU, .name = "GPU", .device = &gpu};
    if (sqlite3_step(s) == SQLITE_ROW) {
        track.name = (const char *)sqlite3_column_text(s, 0);
        gpu.model = (const char *)sqlite3_column_text(s, 1);
        gpu.uuid = (const char *)sqlite3_column_text(s, 2);
        gpu.compute_capability = (const char *)sqlite3_column_text(s, 3);
        gpu.sm_count = sqlite3_column_int64(s, 4);
        gpu.is_simulated = sqlite3_column_int(s, 5) != 0;
    }
    return timeline_add_track(t, track);
}

static int find_gpu(struct timeline *t, int64_t device, uint32_t *ret_track, struct occ_error *err)
{
    static const char sql[] =
        "SELECT 'GPU ' || device_id || ' ' || device, device, uuid, compute_capability, "
        "sm_count, simulated FROM device WHERE device_id = ?";
    sqlite3_stmt *s = NULL;
    for (size_t i = 0; i < t->n_devices; i++)
        if (t->devices[i].id == device) {
            *ret_track = t->devices[i].track;
            return 0;
        }
    if (!occ_grow((void **)&t->devices, &t->devices_allocated, t->n_devices, DEVICES_MAX, sizeof *t->devices))
        return occ_no_memory(err);
    int status = timeline_prepare(t, sql, &s, err);
    if (status == 0) {
        (void)sqlite3_bind_int64(s, 1, device);
        *ret_track = add_gpu(t, s, device);
        t->devices[t->n_devices++] = (struct timeline_device){device, *ret_track};
    }
    (void)sqlite3_finalize(s);
    return status;
}

/* ---- launch configurations ---- */

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

/* A cause without loss is no argument of a slice. */
static bool is_without_loss(const struct timeline *t, const struct export_arg *arg)
{
    return !t->format->is_flat && strncmp(arg->key, "cause_", strlen("cause_")) == 0 &&
           arg->value.type == CLI_REAL && !(arg->value.real > 0);
}

static int add_config(struct timeline *t, sqlite3_stmt *s, int64_t id, struct timeline_config *config,
                      struct occ_error *err)
{
    struct export_arg args[EXPORT_ARGS_MAX];
    struct export_model model;
    const char *kernel = (const char *)sqlite3_column_text(s, CONFIG_KERNEL);
    const struct export_column *columns = columns_of(t);
    size_t n = 0;
    for (; columns[n].key && n < EXPORT_ARGS_MAX - EXPORT_MODEL_ARGS; n++) {
        args[n] = (struct export_arg){columns[n].key, value_of(s, CONFIG_FIRST_ARGUMENT + (int)n),
                                      columns[n].place};
        if (is_without_loss(t, &args[n]))
            args[n].value.type = CLI_NONE;
    }
    int status = t->format->has_model ? export_model_read(t->store, id, &model, err) : 0;
    if (status == 0 && t->format->has_model)
        n += export_model_args(&model, args + n);
    if (status != 0)
        return status;
    return t->format->add_config(&t->writer, kernel ? kernel : "?", args, n, &config->shared)
               ? 0
               : occ_no_memory(err);
}

static int load_config(struct timeline *t, int64_t id, struct timeline_config *config, struct occ_error *err)
{
    sqlite3_stmt *s = t->config_statement;
    (void)sqlite3_reset(s);
    (void)sqlite3_bind_int64(s, 1, id);
    *config =
        (struct timeline_config){.device = 0}; /* timeline_drop_configs() frees it, also after a failure */
    int step = sqlite3_step(s);
    if (step == SQLITE_DONE)
        return occ_fail(err, OCC_E_CORRUPT, "the history has no launch configuration %lld", (long long)id);
    if (step != SQLITE_ROW)
        return timeline_sql_failed(t, err);
    config->device = sqlite3_column_int64(s, CONFIG_DEVICE);
    int status = t->format->is_flat ? 0 : find_gpu(t, config->device, &config->gpu, err);
    return status == 0 ? add_config(t, s, id, config, err) : status;
}

int timeline_find_config(struct timeline *t, int64_t id, const struct timeline_config **ret_config,
                         struct occ_error *err)
{
    uint32_t i = occ_map_get(&t->config_index, (uint64_t)id);
    int status = 0;
    if (i == OCC_MAP_NONE) {
        if (t->n_configs == CONFIGS_KEPT)
            timeline_drop_configs(t);
        i = (uint32_t)t->n_configs;
        if (!occ_grow((void **)&t->configs, &t->configs_allocated, i, CONFIGS_KEPT, sizeof *t->configs) ||
            occ_map_put(&t->config_index, (uint64_t)id, i) == OCC_MAP_NONE)
            return occ_no_memory(err);
        status = load_config(t, id, &t->configs[t->n_configs++], err);
    }
    *ret_config = &t->configs[i];
    return status;
}
