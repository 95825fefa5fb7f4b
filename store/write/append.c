/*
 * Launches on their way in: checked, counted, and kept until a commit or until a chunk is full. One thread a handle.
 */
#include <string.h>

#include "store/internal.h"

/* What may wait for a commit that does not succeed; the launches after that are refused. */
#define PENDING_MAX_BYTES (48u << 20)

uint64_t occ_store_memory_bytes(const struct occ_store *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct occ_run_state *r = &s->runs[i];
        for (uint32_t k = 0; k < r->n_lanes; k++)
            bytes += (uint64_t)r->lanes[k].capacity * sizeof(struct occ_store_launch);
        for (uint32_t k = 0; k < r->n_sealed; k++)
            bytes += r->sealed[k].data_bytes + r->sealed[k].totals_bytes;
    }
    return bytes;
}

static uint64_t pending_bytes(const struct occ_store *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct occ_run_state *r = &s->runs[i];
        for (uint32_t k = 0; k < r->n_lanes; k++)
            bytes += (uint64_t)(r->lanes[k].n - r->lanes[k].committed) * sizeof(struct occ_store_launch);
        for (uint32_t k = 0; k < r->n_sealed; k++)
            bytes += r->sealed[k].data_bytes + r->sealed[k].totals_bytes;
    }
    return bytes;
}

static int check(const struct occ_store *s, const struct occ_store_launch *launches, size_t n,
                 struct occ_error *err)
{
    if (s->options.mode != OCC_STORE_WRITE)
        return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    for (size_t i = 0; i < n; i++)
        if (!occ_store_times_are_valid(launches[i].start_ns, launches[i].duration_ns) ||
            launches[i].config == 0)
            return occ_fail(err, OCC_E_INVALID, "a launch has impossible times or no configuration");
    if (pending_bytes(s) > PENDING_MAX_BYTES)
        return occ_fail(err, OCC_E_FULL, "%s: too much is waiting for a commit", s->path);
    return 0;
}

static bool note_config(struct occ_run_state *r, uint32_t config)
{
    if (occ_map_get(&r->configs, config) != OCC_MAP_NONE)
        return true;
    if (r->n_new_configs == r->new_configs_capacity) {
        uint32_t capacity = r->new_configs_capacity * 2 + 64;
        uint32_t *configs = realloc(r->new_configs, capacity * sizeof *configs);
        if (!configs)
            return false;
        r->new_configs = configs;
        r->new_configs_capacity = capacity;
    }
    if (occ_map_put(&r->configs, config, 0) == OCC_MAP_NONE)
        return false;
    r->new_configs[r->n_new_configs++] = config;
    return true;
}

static bool note_configs(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!note_config(r, rows[i].config))
            return false;
    return true;
}

static void count(struct occ_run_state *r, const struct occ_store_launch *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        r->gpu_ns = occ_add_saturated(r->gpu_ns, rows[i].duration_ns);
        r->first_ns = rows[i].start_ns < r->first_ns ? rows[i].start_ns : r->first_ns;
        r->last_ns = rows[i].start_ns > r->last_ns ? rows[i].start_ns : r->last_ns;
    }
    r->launches += n;
    r->dirty = true;
    if (occ_rollup_add(r, rows, n) != 0)
        r->stale = true; /* added up again from chunks and rows when the commit begins */
}

/* Memory for all pieces of an append before the first one goes in: what fits the chunk under way, then full chunks. */
static bool reserve_all(struct occ_lane *lane, size_t n, uint32_t chunk_rows)
{
    uint32_t held = lane->dropped + lane->n;
    size_t first = held < chunk_rows && chunk_rows - held < n ? chunk_rows - held : n;
    size_t later = n - first < chunk_rows ? n - first : chunk_rows;
    if (later > lane->n + first)
        first = later - lane->n;
    return occ_lane_reserve(lane, (uint32_t)first, chunk_rows);
}

int occ_store_append(struct occ_store *s, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = check(s, launches, n, err);
    if (rc == 0 && n > 0)
        rc = occ_store_run_state(s, run, &r, err);
    if (rc != 0 || n == 0)
        return rc;
    struct occ_lane *lane = occ_run_lane(r, device);
    if (!lane || n > UINT32_MAX / 4 || !note_configs(r, launches, n))
        return occ_store_no_memory(err);
    if (!reserve_all(lane, n, s->options.chunk_rows))
        return occ_store_no_memory(err);
    while (n > 0) {
        uint32_t held = lane->dropped + lane->n;
        size_t room = held < s->options.chunk_rows ? s->options.chunk_rows - held : n;
        size_t piece = n < room ? n : room;
        if (!occ_lane_reserve(lane, (uint32_t)piece, s->options.chunk_rows))
            return occ_store_no_memory(err);
        memcpy(lane->rows + lane->n, launches, piece * sizeof *launches);
        lane->n += (uint32_t)piece;
        count(r, launches, piece);
        launches += piece;
        n -= piece;
        if (lane->dropped + lane->n >= s->options.chunk_rows)
            (void)occ_lane_seal(s, r, lane,
                                NULL); /* failing, the rows wait: the next append or commit tries again */
    }
    return 0;
}

int occ_store_end_run(struct occ_store *s, int64_t run, struct occ_error *err)
{
    struct occ_run_state *r = NULL;
    int rc = s->options.mode == OCC_STORE_WRITE
                 ? occ_store_run_state(s, run, &r, err)
                 : occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < r->n_lanes && rc == 0; i++)
        rc = occ_lane_seal(s, r, &r->lanes[i], err);
    if (rc == 0)
        r->ending = r->dirty = true;
    return rc;
}
