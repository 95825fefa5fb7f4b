/* See batch.h. */
#include "batch.h"

static bool is_within(const struct occ_ring_launch *l, uint64_t first_ns, uint64_t last_ns)
{
    return l->start_ns >= first_ns && l->start_ns <= last_ns && l->duration_ns <= last_ns - l->start_ns;
}

void occ_batch_drop_impossible(struct occ_batch *b, int64_t skew_ns, int64_t boot_ns)
{
    const struct occ_producer_clock *clock = &b->producer->clock;
    /* negative if the process started soon after boot */
    int64_t first_ns = clock->process_start_boot_ns + clock->min_offset_ns - skew_ns;
    uint64_t last_ns = (uint64_t)(boot_ns + clock->max_offset_ns + skew_ns);
    const struct occ_producer_config *configs = b->producer->tables.configs;
    size_t kept = 0;
    for (size_t i = 0; i < b->n; i++)
        if (is_within(&b->launches[i], first_ns > 0 ? (uint64_t)first_ns : 0, last_ns))
            b->launches[kept++] = b->launches[i];
        else /* a memory operation is no launch */
            b->producer->bad_times += configs[b->launches[i].config].memory == 0;
    b->n = kept;
}

/* Counts launches as lost (OCC_LOSS_LOG_FULL) if the history refused their kernel or configuration. */
static void drop_refused(struct occ_batch *b)
{
    const struct occ_producer_config *configs = b->producer->tables.configs;
    size_t kept = 0;
    for (size_t i = 0; i < b->n; i++)
        if (configs[b->launches[i].config].id != 0)
            b->launches[kept++] = b->launches[i];
    b->producer->refused_config += b->n - kept;
    b->n = kept;
}

static struct occ_store_launch row_of(const struct occ_ring_launch *l,
                                      const struct occ_producer_config *config)
{
    return (struct occ_store_launch){.start_ns = (int64_t)l->start_ns,
                                     .duration_ns = l->duration_ns,
                                     .graph_node = l->graph_node,
                                     .config = config->id,
                                     .stream = l->stream,
                                     .correlation = l->correlation,
                                     .context = config->context,
                                     .range = config->range};
}

/* Hands on the memory operations on the device of the first one, and removes them. false: there are none. */
static bool take_memory(struct occ_batch *b, const struct occ_collector_options *options)
{
    const struct occ_producer_config *configs = b->producer->tables.configs;
    uint32_t device = UINT32_MAX;
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct occ_producer_config *config = &configs[b->launches[i].config];
        if (device == UINT32_MAX && config->memory)
            device = config->device;
        if (config->memory && config->device == device) {
            b->rows[n] = row_of(&b->launches[i], config);
            b->rows[n++].config = config->memory;
        } else {
            b->launches[kept++] = b->launches[i];
        }
    }
    b->n = kept;
    if (n > 0 && options->memory)
        options->memory(b->producer, &b->producer->tables.devices[device], b->rows, n, options->context);
    return n > 0;
}

int occ_batch_append(struct occ_batch *b, struct occ_store *store,
                     const struct occ_collector_options *options, uint64_t *launches, struct occ_error *err)
{
    int status = 0;
    while (b->n > 0 && take_memory(b, options))
        ;
    if (b->n > 0)
        drop_refused(b);
    while (b->n > 0 && status == 0) {
        const struct occ_producer_config *configs = b->producer->tables.configs;
        uint32_t device = configs[b->launches[0].config].device;
        const struct occ_producer_device *d = &b->producer->tables.devices[device];
        size_t n = 0, left = 0;
        for (size_t i = 0; i < b->n; i++)
            if (configs[b->launches[i].config].device == device)
                b->rows[n++] = row_of(&b->launches[i], &configs[b->launches[i].config]);
        status = occ_store_append(store, b->producer->run.id, d->id, b->rows, n, err);
        if (status != 0)
            continue;
        *launches += n;
        if (options->appended)
            options->appended(b->producer, d, b->rows, n, options->context);
        for (size_t i = 0; i < b->n; i++)
            if (configs[b->launches[i].config].device != device)
                b->launches[left++] = b->launches[i];
        b->n = left;
    }
    return status;
}
