/* Launches in the order of their configurations or kernels. */
#include "launch_group.h"

#include <stdlib.h>

#include "support/array.h"

/* Maximum number of launches in a pass, with about 32 bytes each. A pass has a quarter of all launches, but
 * at least a quarter of this maximum: few launches need little memory, and many launches do not need many
 * passes. */
#ifndef PASS_ROWS /* a test uses a smaller number */
#define PASS_ROWS (UINT32_C(1) << 22)
#endif
#define PASSES     4
#define DIGIT_BITS 11u /* bits of a rank that one step of the radix sort uses */
#define DIGITS     (1u << DIGIT_BITS)

/* ---- ranks ---- */

/* A launch configuration; its rank is its index in the list. */
struct occ_launch_group_config {
    uint32_t config;
    bool known; /* false: its kernel is NULL, which comes first */
    int64_t kernel;
    uint64_t launches;
};

/* OCC_MAP_NONE: no memory. */
static uint32_t find_config(struct occ_launch_group *g, uint32_t config)
{
    if (!occ_grow((void **)&g->configs, &g->configs_allocated, g->n_configs, UINT32_MAX, sizeof *g->configs))
        return OCC_MAP_NONE;
    uint32_t at = occ_map_put(&g->ranks, config, g->n_configs);
    if (at == g->n_configs)
        g->configs[g->n_configs++] = (struct occ_launch_group_config){.config = config};
    return at;
}

/* Counts the launches of each configuration in the current chunk of the list. */
static int count_chunk(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    int rc = occ_launch_chunk_open(scan, &g->one, g->list);
    for (uint32_t i = 0; rc == SQLITE_OK && i < g->one.n; i++) {
        uint32_t row = occ_launch_chunk_row(&g->one, i);
        uint32_t at = find_config(g, (uint32_t)g->one.columns.config[row]);
        if (at == OCC_MAP_NONE)
            return SQLITE_NOMEM;
        g->configs[at].launches++;
    }
    return rc;
}

static int read_kernels(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < g->n_configs && rc == SQLITE_OK; i++) {
        const struct occ_launch_config_info *info = NULL;
        rc = occ_launch_scan_config(scan, g->configs[i].config, &info);
        if (rc == SQLITE_OK && info->known) {
            g->configs[i].known = true;
            g->configs[i].kernel = info->kernel;
        }
    }
    return rc;
}

/* Orders by kernel (equal if the order is by configuration), then by configuration. */
static int compare_configs(const void *a, const void *b)
{
    const struct occ_launch_group_config *x = a, *y = b;
    return x->known != y->known     ? x->known - y->known
           : x->kernel != y->kernel ? (x->kernel > y->kernel) - (x->kernel < y->kernel)
                                    : (x->config > y->config) - (x->config < y->config);
}

static int sort_configs(struct occ_launch_group *g)
{
    if (g->n_configs > 0)
        qsort(g->configs, g->n_configs, sizeof *g->configs, compare_configs);
    occ_map_clear(&g->ranks);
    for (uint32_t i = 0; i < g->n_configs; i++)
        if (occ_map_put(&g->ranks, g->configs[i].config, i) == OCC_MAP_NONE)
            return SQLITE_NOMEM;
    return SQLITE_OK;
}

/* ---- passes ---- */

/* Ends a pass before that rank, unless the pass is empty. */
static void end_pass(struct occ_launch_group *g, uint32_t rank, uint64_t launches)
{
    g->capacity = launches > g->capacity ? launches : g->capacity;
    if (rank > (g->n_ends ? g->ends[g->n_ends - 1] : 0))
        g->ends[g->n_ends++] = rank;
}

static uint64_t pass_rows(const struct occ_launch_group *g)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < g->n_configs; i++)
        rows += g->configs[i].launches;
    rows /= PASSES;
    return rows < PASS_ROWS / PASSES ? PASS_ROWS / PASSES : rows < PASS_ROWS ? rows : PASS_ROWS;
}

/* Divides the ranks into passes. A configuration with more launches than a pass has a pass of its own. */
static bool divide_into_passes(struct occ_launch_group *g)
{
    uint64_t launches = 0, max = pass_rows(g);
    free(g->ends);
    g->ends = malloc((2 * (size_t)g->n_configs + 1) * sizeof *g->ends);
    if (!g->ends)
        return false;
    g->n_ends = 0;
    g->capacity = 0;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        uint64_t more = g->configs[i].launches;
        if (more > max - launches) {
            end_pass(g, i, launches);
            launches = 0;
        }
        if (more > max)
            end_pass(g, i + 1, 0); /* this pass is streamed */
        else
            launches += more;
    }
    end_pass(g, g->n_configs, launches);
    return true;
}

/* Reserves memory for the largest pass. */
static bool reserve(struct occ_launch_group *g, uint32_t columns)
{
    void *const last[] = {g->rowids, g->order, g->sort_buffer};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        free(last[i]);
    g->rowids = malloc((g->capacity + 1) * sizeof *g->rowids);
    g->order = malloc((g->capacity + 1) * sizeof *g->order);
    g->sort_buffer = malloc((g->capacity + 1) * sizeof *g->sort_buffer);
    bool enough = g->rowids && g->order && g->sort_buffer;
    for (unsigned k = 0; k < OCC_COLUMN_none; k++) {
        free(g->values[k]);
        g->values[k] = columns >> k & 1 ? malloc((g->capacity + 1) * sizeof *g->values[k]) : NULL;
        enough &= g->values[k] || !(columns >> k & 1);
    }
    return enough;
}

int occ_launch_group_start(struct occ_launch_group *g, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           bool by_kernel, uint32_t columns)
{
    int rc;
    g->list = list;
    g->wanted = scan->range[OCC_LAUNCH_KEY_CONFIG];
    g->was_narrowed = scan->narrowed[OCC_LAUNCH_KEY_CONFIG];
    g->at = g->n_configs = g->one.n = g->gathered.n = 0;
    g->streams = false;
    occ_map_clear(&g->ranks);
    scan->columns |= OCC_COLUMN_BIT(config);
    while ((rc = occ_vtab_step(scan->vtab, list)) == SQLITE_ROW && (rc = count_chunk(g, scan)) == SQLITE_OK)
        ;
    scan->columns |= columns;
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK && by_kernel)
        rc = read_kernels(g, scan);
    if (rc == SQLITE_OK)
        rc = sort_configs(g);
    if (rc == SQLITE_OK && !(divide_into_passes(g) && reserve(g, scan->columns)))
        rc = SQLITE_NOMEM;
    g->one.n = g->one.at = 0;
    return rc;
}

/* ---- gathering ---- */

/* Sorts n numbers of rows, in g->order, by the ranks of their configurations; the sort is stable. */
static void sort_rows(struct occ_launch_group *g, const uint64_t *config, uint32_t n)
{
    uint32_t max = g->n_configs > 0 ? g->n_configs - 1 : 0;
    for (unsigned shift = 0; shift < 32 && max >> shift != 0; shift += DIGIT_BITS) {
        uint32_t starts[DIGITS + 1] = {0};
        for (uint32_t i = 0; i < n; i++)
            starts[(occ_map_get(&g->ranks, config[g->order[i]]) >> shift) % DIGITS + 1]++;
        for (uint32_t i = 0; i < DIGITS; i++)
            starts[i + 1] += starts[i];
        for (uint32_t i = 0; i < n; i++)
            g->sort_buffer[starts[(occ_map_get(&g->ranks, config[g->order[i]]) >> shift) % DIGITS]++] =
                g->order[i];
        uint32_t *sorted = g->sort_buffer;
        g->sort_buffer = g->order;
        g->order = sorted;
    }
}

static int changed(struct occ_launch_scan *scan)
{
    /* impossible: launches were counted in the same transaction */
    return occ_vtab_fail(scan->vtab, SQLITE_CORRUPT, "launch: chunks changed while they were read");
}

/* Puts the open chunk's rows of the current pass into g->order. */
static int choose_rows(struct occ_launch_group *g, struct occ_launch_scan *scan, uint32_t *ret_n)
{
    const struct occ_launch_chunk *c = &g->one;
    uint32_t low = g->at > 1 ? g->ends[g->at - 2] : 0, high = g->ends[g->at - 1], n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t row = occ_launch_chunk_row(c, i), rank = occ_map_get(&g->ranks, c->columns.config[row]);
        if (rank < low || rank >= high)
            continue;
        if (n == g->capacity - g->gathered.n)
            return changed(scan);
        g->order[n++] = row;
    }
    *ret_n = n;
    return SQLITE_OK;
}

/* Adds the rows of the open chunk, sorted, so that rows of a configuration are adjacent in memory. */
static int gather_chunk(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    const struct occ_launch_chunk *c = &g->one;
    uint32_t at = g->gathered.n, n = 0;
    int rc = choose_rows(g, scan, &n);
    if (rc != SQLITE_OK)
        return rc;
    sort_rows(g, c->columns.config, n);
    for (uint32_t i = 0; i < n; i++)
        g->rowids[at + i] = occ_launch_chunk_rowid(c, g->order[i]);
    for (unsigned k = 0; k < OCC_COLUMN_none; k++)
        for (uint32_t i = 0; scan->columns >> k & 1 && i < n; i++)
            g->values[k][at + i] = c->columns.column[k][g->order[i]];
    g->gathered.n += n;
    return SQLITE_OK;
}

/* Gathers all launches of the pass. */
static int gather(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    struct occ_launch_chunk *all = &g->gathered;
    int rc;
    all->n = all->at = 0;
    while ((rc = occ_vtab_step(scan->vtab, g->list)) == SQLITE_ROW) {
        rc = occ_launch_chunk_open(scan, &g->one, g->list);
        if (rc == SQLITE_OK && g->one.n > 0)
            rc = gather_chunk(g, scan);
        if (rc != SQLITE_OK)
            return rc;
    }
    for (uint32_t i = 0; i < all->n; i++)
        g->order[i] = i;
    sort_rows(g, g->values[OCC_COLUMN_config], all->n);
    for (unsigned k = 0; k < OCC_COLUMN_none; k++)
        all->columns.column[k] = g->values[k];
    all->decoded = scan->columns;
    all->selection = g->order;
    all->rowids = g->rowids;
    all->run = g->one.run;
    all->device = g->one.device;
    g->one.n = 0;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- output ---- */

/* Begins the next pass; a pass of a single configuration is streamed. */
static int next_pass(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    uint32_t low = g->at > 0 ? g->ends[g->at - 1] : 0, high = g->ends[g->at];
    struct occ_range *range = &scan->range[OCC_LAUNCH_KEY_CONFIG];
    g->at++;
    g->streams = high - low == 1;
    *range = g->streams ? (struct occ_range){g->configs[low].config, g->configs[low].config} : g->wanted;
    scan->narrowed[OCC_LAUNCH_KEY_CONFIG] = g->streams || g->was_narrowed;
    (void)sqlite3_reset(g->list);
    return g->streams ? SQLITE_OK : gather(g, scan);
}

static int stream(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    int rc = occ_vtab_step(scan->vtab, g->list);
    g->streams = rc == SQLITE_ROW;
    g->one.n = 0;
    return rc == SQLITE_ROW    ? occ_launch_chunk_open(scan, &g->one, g->list)
           : rc == SQLITE_DONE ? SQLITE_OK
                               : rc;
}

int occ_launch_group_next(struct occ_launch_group *g, struct occ_launch_scan *scan,
                          struct occ_launch_chunk **ret_chunk)
{
    struct occ_launch_chunk *c = NULL;
    int rc = SQLITE_OK;
    *ret_chunk = NULL;
    while (rc == SQLITE_OK && (!c || c->at >= c->n)) {
        if (!g->streams && g->at == g->n_ends)
            return SQLITE_OK;
        rc = g->streams ? stream(g, scan) : next_pass(g, scan);
        c = g->streams ? &g->one : &g->gathered;
    }
    *ret_chunk = c;
    return rc;
}

void occ_launch_group_close(struct occ_launch_group *g)
{
    occ_launch_chunk_close(&g->one);
    for (unsigned k = 0; k < OCC_COLUMN_none; k++)
        free(g->values[k]);
    free(g->rowids);
    free(g->order);
    free(g->sort_buffer);
    free(g->ends);
    free(g->configs);
    occ_map_free(&g->ranks);
}
