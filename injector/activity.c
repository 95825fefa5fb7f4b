/* See activity.h. */
#include "activity.h"

/* CUPTI reports 0 for the dimensions of a launch without a cluster. */
static uint32_t at_least_one(uint32_t extent)
{
    return extent == 0 ? 1 : extent;
}

static int32_t carveout(const struct occ_cupti_kernel *k)
{
    return k->carveout_is_requested && k->carveout_percent <= 100 ? k->carveout_percent : -1;
}

static void parse_config(const struct occ_cupti_kernel *k, uint32_t version, struct occ_record_config *config)
{
    *config = (struct occ_record_config){
        .grid = {k->grid[0], k->grid[1], k->grid[2]},
        .block = {k->block[0], k->block[1], k->block[2]},
        .cluster = {at_least_one(k->cluster[0]), at_least_one(k->cluster[1]), at_least_one(k->cluster[2])},
        .registers_per_thread = k->registers_per_thread,
        .static_smem_bytes = k->static_smem_bytes,
        .dynamic_smem_bytes = k->dynamic_smem_bytes,
        .local_bytes_per_thread = k->local_bytes_per_thread,
        .smem_executed_bytes = k->smem_executed_bytes,
        .carveout_percent = carveout(k),
        .max_active_clusters = k->max_active_clusters,
        .max_cluster_size = k->max_cluster_size,
        /* other values are of a newer CUPTI: unknown */
        .launch_type = k->launch_type <= 2 ? k->launch_type : 0,
        .cache_config = k->cache_config >> 4,
        .smem_optin = k->smem_limit_config == 1,
        .device_launched = version >= OCC_CUPTI_VERSION_13_0 && k->device_launched,
        .context = k->context,
    };
}

void occ_activity_parse(const struct occ_cupti_kernel *record, uint32_t version,
                        struct occ_activity *ret_record)
{
    const struct occ_cupti_kernel *k = record;
    struct occ_activity *r = ret_record;
    r->name = k->name;
    r->ordinal = k->device;
    r->times_are_valid =
        k->end_ns >= k->start_ns && occ_ring_times_are_valid(k->start_ns, k->end_ns - k->start_ns);
    r->has_no_end = k->end_ns == 0;
    r->launch = (struct occ_ring_launch){
        .start_ns = r->times_are_valid ? k->start_ns : 0,
        .duration_ns = r->times_are_valid ? k->end_ns - k->start_ns : 0,
        .graph_node = k->graph_node,
        .stream = k->stream,
        .correlation = k->correlation,
    };
    parse_config(k, version, &r->config);
}
