/* An open chunk of launches: the matching rows, and the columns, each decoded when first read. */
#include "launch_scan.h"
#include "launch_values.h"

#include <stdlib.h>

#include "support/error.h"

static int fail(struct occ_launch_scan *scan, const char *text)
{
    return occ_vtab_fail(scan->vtab, SQLITE_CORRUPT, text);
}

static int kernel_matches(struct occ_launch_scan *scan, uint32_t id, bool *ret)
{
    const struct occ_launch_config_info *config = NULL;
    int rc = occ_launch_scan_config(scan, id, &config);
    *ret =
        rc == SQLITE_OK && config->known && occ_in_range(&scan->range[OCC_LAUNCH_KEY_KERNEL], config->kernel);
    return rc;
}

static uint32_t keep(const uint64_t *values, const struct occ_range *r, uint32_t *rows, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += occ_in_range(r, (int64_t)values[row]);
    }
    return kept;
}

static int keep_kernels(struct occ_launch_scan *scan, struct occ_launch_chunk *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t row = c->selected[i];
        bool match = false;
        int rc = kernel_matches(scan, (uint32_t)c->columns.config[row], &match);
        if (rc != SQLITE_OK)
            return rc;
        c->selected[kept] = row;
        kept += match;
    }
    c->n = kept;
    return SQLITE_OK;
}

/* Decoding starts costs the most: a condition on starts needs them only if an edge is inside the chunk. */
static bool straddles(const struct occ_launch_scan *scan, const struct occ_launch_chunk *c)
{
    const struct occ_range *r = &scan->range[OCC_LAUNCH_KEY_START];
    return scan->narrowed[OCC_LAUNCH_KEY_START] &&
           !(occ_in_range(r, c->first_ns) && occ_in_range(r, c->last_ns));
}

static int select_rows(struct occ_launch_scan *scan, struct occ_launch_chunk *c)
{
    const struct {
        bool on;
        const uint64_t *values;
        enum occ_launch_key key;
    } conditions[] = {
        {straddles(scan, c), c->columns.start_ns, OCC_LAUNCH_KEY_START},
        {scan->narrowed[OCC_LAUNCH_KEY_CONFIG], c->columns.config, OCC_LAUNCH_KEY_CONFIG},
        {scan->narrowed[OCC_LAUNCH_KEY_CORRELATION], c->columns.correlation, OCC_LAUNCH_KEY_CORRELATION},
    };
    bool kernels = scan->narrowed[OCC_LAUNCH_KEY_KERNEL];
    c->selection = NULL;
    c->n = c->rows;
    if (!conditions[0].on && !conditions[1].on && !conditions[2].on && !kernels)
        return SQLITE_OK;
    if (c->selected_capacity < c->rows) {
        free(c->selected);
        c->selected = malloc(c->rows * sizeof *c->selected);
        c->selected_capacity = c->selected ? c->rows : 0;
        if (!c->selected)
            return SQLITE_NOMEM;
    }
    for (uint32_t i = 0; i < c->rows; i++)
        c->selected[i] = i;
    c->selection = c->selected;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (conditions[i].on)
            c->n = keep(conditions[i].values, &scan->range[conditions[i].key], c->selected, c->n);
    return kernels ? keep_kernels(scan, c) : SQLITE_OK;
}

int occ_launch_chunk_open(struct occ_launch_scan *scan, struct occ_launch_chunk *c, sqlite3_stmt *list)
{
    int64_t rows = sqlite3_column_int64(list, OCC_LAUNCH_LIST_ROWS);
    c->id = sqlite3_column_int64(list, OCC_LAUNCH_LIST_ID);
    c->run = sqlite3_column_int64(list, OCC_LAUNCH_LIST_RUN);
    c->device = sqlite3_column_int64(list, OCC_LAUNCH_LIST_DEVICE);
    c->first_ns = sqlite3_column_int64(list, OCC_LAUNCH_LIST_FIRST);
    c->last_ns = sqlite3_column_int64(list, OCC_LAUNCH_LIST_LAST);
    c->at = c->n = 0;
    c->decoded = 0;
    if (c->values)
        occ_launch_values_reset(c->values);
    if (rows < 1 || rows > OCC_COLUMNS_MAX_ROWS)
        return fail(scan, "launch: a chunk is damaged");
    c->rows = (uint32_t)rows;
    int rc =
        occ_launch_chunk_decode(scan, c, scan->columns | (straddles(scan, c) ? OCC_COLUMN_BIT(start_ns) : 0));
    return rc != SQLITE_OK ? rc : select_rows(scan, c);
}

static int read_data(struct occ_launch_scan *scan, int64_t id)
{
    int rc = occ_vtab_prepare(scan->vtab, &scan->data,
                              "SELECT data FROM \"%w\".stored_chunk_data WHERE chunk_id = ?");
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(scan->data, 1, id);
    int step = occ_vtab_step(scan->vtab, scan->data);
    return step == SQLITE_ROW    ? SQLITE_OK
           : step == SQLITE_DONE ? fail(scan, "launch: a chunk has no data")
                                 : step;
}

static int decode(struct occ_launch_scan *scan, struct occ_launch_chunk *c, uint32_t columns)
{
    struct occ_columns more;
    int rc = read_data(scan, c->id);
    if (rc != SQLITE_OK)
        return rc;
    rc = occ_columns_decode(c->decoder, sqlite3_column_blob(scan->data, 0),
                            (size_t)sqlite3_column_bytes(scan->data, 0), columns, &more);
    if (rc == OCC_E_NO_MEMORY)
        return SQLITE_NOMEM;
    if (rc != 0 || more.n != c->rows)
        return fail(scan, rc == OCC_E_VERSION ? "launch: a chunk is from a newer version"
                                              : "launch: a chunk is damaged");
    for (unsigned k = 0; k < OCC_COLUMN_none; k++)
        if (more.column[k]) {
            c->columns.column[k] = more.column[k];
            c->decoded |= UINT32_C(1) << k;
        }
    c->columns.n = more.n;
    return SQLITE_OK;
}

int occ_launch_chunk_decode(struct occ_launch_scan *scan, struct occ_launch_chunk *c, uint32_t columns)
{
    if ((columns & ~c->decoded) == 0)
        return SQLITE_OK;
    if (!c->decoder)
        c->decoder = occ_columns_decoder_new();
    if (!c->decoder)
        return SQLITE_NOMEM;
    int rc = decode(scan, c, columns & ~c->decoded);
    (void)sqlite3_reset(scan->data);
    return rc;
}

void occ_launch_chunk_close(struct occ_launch_chunk *c)
{
    occ_columns_decoder_free(c->decoder);
    occ_launch_values_free(c->values);
    free(c->selected);
}
