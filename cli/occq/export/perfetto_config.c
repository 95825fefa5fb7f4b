/* Launch configurations in Perfetto's format: an interned kernel and the constant part of its launches; see
 * perfetto.h. */
#include <string.h>

#include "occupancy/occupancy.h"
#include "perfetto.h"

enum { KERNEL_NAME = 2, KERNEL_DEMANGLED = 3, KERNEL_ARCH = 4, KERNEL_ARG = 5 };
enum { DIMENSION_X = 1 };

#define RATIO(name)                                                                                          \
    {                                                                                                        \
#name, "round(" #name ", 5)", EXPORT_OF_KERNEL                                                       \
    }
#define SAME(name)                                                                                           \
    {                                                                                                        \
#name, #name, EXPORT_OF_KERNEL                                                                       \
    }
#define LAUNCH(key, sql)                                                                                     \
    {                                                                                                        \
        key, sql, EXPORT_OF_LAUNCH                                                                           \
    }
#define CAUSE(name, word, text) {"cause_" word, "round(nullif(cause_" word ", 0), 5)", EXPORT_OF_KERNEL},
#define BLOCK_THREADS           "block_x * block_y * block_z"

/* The names of launch arguments are those that Perfetto's GPU compute view and its skills query. */
const struct export_column perfetto_columns[] = {
    {"grid_x", "grid_x", PERFETTO_GRID},
    {"grid_y", "grid_y", PERFETTO_GRID},
    {"grid_z", "grid_z", PERFETTO_GRID},
    {"block_x", "block_x", PERFETTO_BLOCK},
    {"block_y", "block_y", PERFETTO_BLOCK},
    {"block_z", "block_z", PERFETTO_BLOCK},
    {"kernel_mangled", "kernel_mangled", PERFETTO_MANGLED},
    {"kernel_demangled", "kernel_demangled", PERFETTO_DEMANGLED},
    {"arch",
     "(SELECT 'sm_' || replace(compute_capability, '.', '') FROM device WHERE device.device_id = "
     "launch_config.device_id)",
     PERFETTO_ARCH},
    LAUNCH("grid_size", "grid_x * grid_y * grid_z"),
    LAUNCH("workgroup_size", BLOCK_THREADS),
    LAUNCH("thread_count", "grid_x * grid_y * grid_z * " BLOCK_THREADS),
    LAUNCH("registers_per_thread", "registers_per_thread"),
    LAUNCH("shared_mem_static", "static_shared_bytes"),
    LAUNCH("shared_mem_dynamic", "dynamic_shared_bytes"),
    LAUNCH("shared_mem_config_size", "shared_config_bytes"),
    LAUNCH("func_cache_config", "cache_config"),
    LAUNCH("waves_per_multiprocessor", "waves"),
    LAUNCH("occupancy_limit_blocks", "limit_blocks"),
    LAUNCH("occupancy_limit_registers", "limit_registers"),
    LAUNCH("occupancy_limit_shared_mem", "limit_shared_memory"),
    LAUNCH("occupancy_limit_warps", "limit_warps"),
    LAUNCH("occupancy_limit_barriers", "limit_barriers"),
    LAUNCH("sm__maximum_warps_per_active_cycle_pct", "100 * theoretical"),
    LAUNCH("sm__maximum_warps_avg_per_active_cycle", "warps_per_sm"),
    SAME(config_id),
    {"cluster",
     "iif(cluster_x * cluster_y * cluster_z > 1, cluster_x || 'x' || cluster_y || 'x' || cluster_z, NULL)",
     EXPORT_OF_KERNEL},
    SAME(limit_cluster),
    SAME(blocks_per_sm),
    RATIO(expected_achieved_low),
    RATIO(expected_achieved_high),
    RATIO(expected_elapsed_low),
    RATIO(expected_elapsed_high),
    SAME(limiters),
    {"main_cause", "nullif(main_cause, '')", EXPORT_OF_KERNEL},
    OCC_CAUSES(CAUSE){0}};

/* The messages of a configuration. */
struct parts {
    struct protobuf interned, kernel, launch, grid, block;
    unsigned n_grid, n_block;
};

static void put_arg(struct export_writer *w, struct parts *parts, const struct export_arg *from)
{
    struct protobuf arg = {0};
    bool is_of_launch = from->place == EXPORT_OF_LAUNCH;
    protobuf_number(&arg, ARG_NAME, perfetto_key(w, &parts->interned, from->key));
    switch (from->value.type) {
    case CLI_STRING:
        protobuf_number(&arg, ARG_TEXT,
                        perfetto_intern(w, &parts->interned, INTERNED_TEXTS, from->value.string));
        break;
    case CLI_REAL:
        protobuf_double(&arg, ARG_DOUBLE, from->value.real);
        break;
    default:
        protobuf_number(&arg, ARG_INT, (uint64_t)from->value.integer);
        break;
    }
    protobuf_message(is_of_launch ? &parts->launch : &parts->kernel, is_of_launch ? LAUNCH_ARG : KERNEL_ARG,
                     &arg);
}

static void put_value(struct export_writer *w, struct parts *parts, const struct export_arg *arg)
{
    switch (arg->place) {
    case PERFETTO_GRID:
        protobuf_number(&parts->grid, DIMENSION_X + parts->n_grid++, (uint64_t)arg->value.integer);
        break;
    case PERFETTO_BLOCK:
        protobuf_number(&parts->block, DIMENSION_X + parts->n_block++, (uint64_t)arg->value.integer);
        break;
    case PERFETTO_MANGLED:
        protobuf_text(&parts->kernel, KERNEL_NAME, arg->value.string);
        break;
    case PERFETTO_DEMANGLED:
        protobuf_text(&parts->kernel, KERNEL_DEMANGLED, arg->value.string);
        break;
    case PERFETTO_ARCH:
        protobuf_text(&parts->kernel, KERNEL_ARCH, arg->value.string);
        break;
    default:
        put_arg(w, parts, arg);
        break;
    }
}

bool perfetto_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args, size_t n,
                         struct export_config *config)
{
    struct perfetto *p = w->state;
    struct parts parts = {0};
    struct protobuf common = {0};
    if (w->failed)
        return false;
    uint64_t id = ++p->interned, name = perfetto_intern(w, &parts.interned, INTERNED_EVENT_NAMES, kernel);
    protobuf_number(&parts.kernel, INTERNED_ID, id);
    for (size_t i = 0; i < n; i++)
        if (args[i].value.type != CLI_NONE)
            put_value(w, &parts, &args[i]);
    protobuf_message(&parts.interned, INTERNED_KERNELS, &parts.kernel);
    perfetto_write_interned(w, &parts.interned);
    protobuf_number(&common, STAGE_NAME, name);
    protobuf_number(&common, STAGE_KERNEL, id);
    config->head = common.size;
    protobuf_message(&common, LAUNCH_GRID, &parts.grid);
    protobuf_message(&common, LAUNCH_BLOCK, &parts.block);
    protobuf_splice(&common, &parts.launch);
    config->bytes = common.bytes;
    config->size = common.size;
    return !common.failed;
}
