/* Launches in the order of their configurations. */
#include "launch_group.h"

#include <stdlib.h>

#include "support/array.h"

/* Launches of a pass, with some 32 bytes each. */
#ifndef PASS_ROWS /* a test has small ones */
#define PASS_ROWS (UINT32_C(1) << 22)
#endif
#define DIGIT_BITS 11u /* of a configuration, sorted by at a time */
#define DIGITS     (1u << DIGIT_BITS)

/* ---- passes ---- */

struct count {
    uint32_t config;
    uint64_t launches;
};

struct counts {
    struct occ_map index;
    struct count *list;
    size_t n, allocated;
};

/* The launches of each configuration in the chunk that the list is on. */
static int count_chunk(struct occ_launch_group *g, struct occ_launch_scan *scan, struct counts *counts)
{
    int rc = occ_launch_chunk_open(scan, &g->one, g->list);
    for (uint32_t i = 0; rc == SQLITE_OK && i < g->one.n; i++) {
        uint64_t config = g->one.columns.config[occ_launch_chunk_row(&g->one, i)];
        if (!occ_grow((void **)&counts->list, &counts->allocated, counts->n, UINT32_MAX,
                      sizeof *counts->list))
            return SQLITE_NOMEM;
        uint32_t at = occ_map_put(&counts->index, config, (uint32_t)counts->n);
        if (at == OCC_MAP_NONE)
            return SQLITE_NOMEM;
        if (at == counts->n)
            counts->list[counts->n++] = (struct count){.config = (uint32_t)config};
        counts->list[at].launches++;
    }
    return rc;
}

static int compare_counts(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    return (x->config > y->config) - (x->config < y->config);
}

/* A pass ends with that configuration, if it is not empty. */
static void end_pass(struct occ_launch_group *g, int64_t config, uint64_t launches)
{
    g->capacity = launches > g->capacity ? launches : g->capacity;
    if (g->n_ends == 0 || config > g->ends[g->n_ends - 1])
        g->ends[g->n_ends++] = config;
}

/* Cuts the configurations into passes. */
static bool cut(struct occ_launch_group *g, struct counts *counts)
{
    uint64_t launches = 0;
    free(g->ends);
    g->ends = malloc((2 * counts->n + 1) * sizeof *g->ends);
    if (!g->ends)
        return false;
    g->n_ends = 0;
    g->capacity = 0;
    if (counts->n > 0)
        qsort(counts->list, counts->n, sizeof *counts->list, compare_counts);
    for (size_t i = 0; i < counts->n; i++) {
        const struct count *c = &counts->list[i];
        if (c->launches > PASS_ROWS - launches) {
            end_pass(g, (int64_t)c->config - 1, launches);
            launches = 0;
        }
        if (c->launches > PASS_ROWS)
            end_pass(g, c->config, 0); /* is streamed */
        else
            launches += c->launches;
    }
    end_pass(g, INT64_MAX, launches);
    return true;
}

/* Memory for the largest pass. */
static bool reserve(struct occ_launch_group *g, uint32_t columns)
{
    void *const last[] = {g->rowids, g->order, g->spare};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        free(last[i]);
    g->rowids = malloc((g->capacity + 1) * sizeof *g->rowids);
    g->order = malloc((g->capacity + 1) * sizeof *g->order);
    g->spare = malloc((g->capacity + 1) * sizeof *g->spare);
    bool enough = g->rowids && g->order && g->spare;
    for (unsigned k = 0; k < OCC_COLUMN_none; k++) {
        free(g->values[k]);
        g->values[k] = columns >> k & 1 ? malloc((g->capacity + 1) * sizeof *g->values[k]) : NULL;
        enough &= g->values[k] || !(columns >> k & 1);
    }
    return enough;
}

int occ_launch_group_start(struct occ_launch_group *g, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           uint32_t columns)
{
    struct counts counts = {0};
    int rc;
    g->list = list;
    g->wanted = scan->range[OCC_LAUNCH_KEY_CONFIG];
    g->at = g->one.n = g->gathered.n = 0;
    g->streams = false;
    scan->columns |= OCC_COLUMN_BIT(config);
    while ((rc = occ_vtab_step(scan->vtab, list)) == SQLITE_ROW &&
           (rc = count_chunk(g, scan, &counts)) == SQLITE_OK)
        ;
    scan->columns |= columns;
    if (rc == SQLITE_DONE)
        rc = cut(g, &counts) && reserve(g, scan->columns) ? SQLITE_OK : SQLITE_NOMEM;
    occ_map_free(&counts.index);
    free(counts.list);
    g->one.n = g->one.at = 0;
    return rc;
}

/* ---- gathering ---- */

/* Sorts n numbers of rows, in g->order, by their configurations; equal ones keep their order. */
static void sort_rows(struct occ_launch_group *g, const uint64_t *config, uint32_t n)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < n; i++)
        max = config[g->order[i]] > max ? config[g->order[i]] : max;
    for (unsigned shift = 0; max >> shift != 0; shift += DIGIT_BITS) {
        uint32_t starts[DIGITS + 1] = {0};
        for (uint32_t i = 0; i < n; i++)
            starts[(config[g->order[i]] >> shift) % DIGITS + 1]++;
        for (uint32_t i = 0; i < DIGITS; i++)
            starts[i + 1] += starts[i];
        for (uint32_t i = 0; i < n; i++)
            g->spare[starts[(config[g->order[i]] >> shift) % DIGITS]++] = g->order[i];
        uint32_t *sorted = g->spare;
        g->spare = g->order;
        g->order = sorted;
    }
}

/* Adds the rows of the open chunk, sorted, so that those of a configuration stay together in memory. */
static int gather_chunk(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    const struct occ_launch_chunk *c = &g->one;
    uint32_t at = g->gathered.n;
    if (c->n > g->capacity - at) /* counted in the same transaction, so that this cannot be */
        return occ_vtab_fail(scan->vtab, SQLITE_CORRUPT, "launch: chunks changed while they were read");
    for (uint32_t i = 0; i < c->n; i++)
        g->order[i] = occ_launch_chunk_row(c, i);
    sort_rows(g, c->columns.config, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        g->rowids[at + i] = occ_launch_chunk_rowid(c, g->order[i]);
    for (unsigned k = 0; k < OCC_COLUMN_none; k++)
        for (uint32_t i = 0; scan->columns >> k & 1 && i < c->n; i++)
            g->values[k][at + i] = c->columns.column[k][g->order[i]];
    g->gathered.n += c->n;
    return SQLITE_OK;
}

/* All launches of the pass. */
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

/* ---- handing out ---- */

/* Begins the next pass; one of a single configuration is streamed. */
static int next_pass(struct occ_launch_group *g, struct occ_launch_scan *scan)
{
    struct occ_range pass = {g->at > 0 ? g->ends[g->at - 1] + 1 : INT64_MIN, g->ends[g->at]};
    g->at++;
    pass.low = pass.low > g->wanted.low ? pass.low : g->wanted.low;
    pass.high = pass.high < g->wanted.high ? pass.high : g->wanted.high;
    if (pass.low > pass.high)
        return SQLITE_OK;
    scan->range[OCC_LAUNCH_KEY_CONFIG] = pass;
    scan->narrowed[OCC_LAUNCH_KEY_CONFIG] = true;
    (void)sqlite3_reset(g->list);
    g->streams = pass.low == pass.high;
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
    free(g->spare);
    free(g->ends);
}
