/* See windows.h. */
#include "windows.h"

struct append_context {
    struct occ_windows *windows;
    struct occ_producer *producer;
    const struct occ_producer_device *device;
};

static int append(void *context, const struct occ_store_launch *rows, size_t n, struct occ_error *err)
{
    const struct append_context *to = context;
    struct occ_windows *w = to->windows;
    int status = occ_store_append(w->store, to->producer->run.id, to->device->id, rows, n, err);
    if (status != 0)
        return status;
    w->held_rows -= n;
    w->launches += n;
    if (w->options->appended)
        w->options->appended(to->producer, to->device, rows, n, w->options->context);
    return 0;
}

int occ_windows_emit(struct occ_windows *w, struct occ_producer *p, const struct occ_reorder_limits *limits,
                     struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < p->tables.n_devices && status == 0; i++) {
        struct occ_producer_device *device = &p->tables.devices[i];
        struct append_context to = {.windows = w, .producer = p, .device = device};
        status = occ_reorder_emit(&device->window, limits, append, &to, err);
    }
    return status;
}

void occ_windows_release(struct occ_producer *p)
{
    for (size_t i = 0; i < p->tables.n_devices; i++)
        occ_reorder_release(&p->tables.devices[i].window);
}

/* Consecutive launches of one device. */
static bool place_on_device(struct occ_windows *w, struct occ_producer *p, uint32_t device,
                            const struct occ_ring_launch *launches, size_t n)
{
    struct occ_reorder *window = &p->tables.devices[device].window;
    struct occ_store_launch *rows = occ_reorder_reserve(window, n);
    if (!rows)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct occ_ring_launch *l = &launches[i];
        const struct occ_producer_config *config = &p->tables.configs[l->config];
        rows[i] = (struct occ_store_launch){.start_ns = (int64_t)l->start_ns,
                                            .duration_ns = l->duration_ns,
                                            .graph_node = l->graph_node,
                                            .config = config->id,
                                            .stream = l->stream,
                                            .correlation = l->correlation,
                                            .context = config->context};
    }
    occ_reorder_added(window, n);
    w->held_rows += n;
    return true;
}

bool occ_windows_place(struct occ_windows *w, struct occ_producer *p, const struct occ_ring_launch *launches,
                       size_t n)
{
    const struct occ_producer_config *configs = p->tables.configs;
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t device = configs[launches[i].config].device;
        for (end = i + 1; end < n && configs[launches[end].config].device == device; end++)
            ;
        if (!place_on_device(w, p, device, launches + i, end - i))
            return false;
    }
    return true;
}
