/* A scan's conditions, and a cache of launch configurations. */
#include "launch_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"

#define EXPRESSION(column, type, expression, unit, help) ", " expression
#define LETTER(NAME, letter, of_rows)                    letter,

/* Kernel, maximum warps of the device, expected_elapsed_low, and the columns common to launches of a
 * configuration. */
static const char config_sql[] =
    "SELECT c.kernel_id, d.sm_count * c.max_warps_per_sm, c.expected_elapsed_low" OCC_SQL_CONFIG(
        EXPRESSION) " FROM \"%w\".stored_launch_config c JOIN \"%w\".stored_kernel k USING(kernel_id) "
                    "JOIN \"%w\".stored_device d USING(device_id) WHERE c.config_id = ?";

static const char key_letters[] = {OCC_LAUNCH_KEYS(LETTER)};

/* Columns of the chunk that a condition needs; START: only if the chunk straddles an edge. */
static const uint32_t key_columns[OCC_LAUNCH_KEY_COUNT] = {
    [OCC_LAUNCH_KEY_CONFIG] = OCC_COLUMN_BIT(config),
    [OCC_LAUNCH_KEY_KERNEL] = OCC_COLUMN_BIT(config),
    [OCC_LAUNCH_KEY_CORRELATION] = OCC_COLUMN_BIT(correlation),
};

static void forget_configs(struct occ_launch_scan *s)
{
    for (uint32_t i = 0; i < s->n_configs; i++)
        for (uint32_t k = 0; k < OCC_LAUNCH_CONFIG_COLUMNS; k++)
            sqlite3_value_free(s->configs[i].values[k]);
    s->n_configs = 0;
    s->last_config = 0;
    occ_map_clear(&s->config_index);
}

int occ_launch_scan_open(struct occ_launch_scan *s, sqlite3_vtab *vtab, const char *plan, int argc,
                         sqlite3_value **argv)
{
    s->vtab = vtab;
    s->columns = 0;
    forget_configs(s);
    for (int key = 0; key < OCC_LAUNCH_KEY_COUNT; key++) {
        s->range[key] = (struct occ_range){INT64_MIN, INT64_MAX};
        s->narrowed[key] = false;
    }
    for (int i = 0; i < argc; i++) {
        const char *letter = memchr(key_letters, plan[2 * i], sizeof key_letters);
        size_t key = letter ? (size_t)(letter - key_letters) : 0;
        occ_range_narrow(&s->range[key], plan[2 * i + 1], argv[i]);
        s->narrowed[key] = true;
        s->columns |= key_columns[key];
    }
    if (!s->decoder)
        s->decoder = occ_columns_decoder_new();
    return s->decoder ? SQLITE_OK : SQLITE_NOMEM;
}

void occ_launch_scan_close(struct occ_launch_scan *s)
{
    sqlite3_stmt *const statements[] = {s->data, s->configs_stmt, s->series, s->minute};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        (void)sqlite3_finalize(statements[i]);
    occ_columns_decoder_free(s->decoder);
    forget_configs(s);
    occ_map_free(&s->config_index);
    free(s->configs);
}

bool occ_launch_scan_is_empty(const struct occ_launch_scan *s)
{
    for (int key = 0; key < OCC_LAUNCH_KEY_COUNT; key++)
        if (s->range[key].low > s->range[key].high)
            return true;
    return false;
}

/* ---- launch configurations ---- */

static double known_double(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, column);
}

static int read_config(struct occ_launch_scan *s, uint32_t id, struct occ_launch_config_info *config)
{
    int rc = occ_vtab_prepare(s->vtab, &s->configs_stmt, config_sql);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(s->configs_stmt, 1, id);
    int step = occ_vtab_step(s->vtab, s->configs_stmt);
    if (step == SQLITE_ROW) {
        config->known = true;
        config->kernel = sqlite3_column_int64(s->configs_stmt, 0);
        config->device_warps = known_double(s->configs_stmt, 1);
        config->expected_elapsed_low = known_double(s->configs_stmt, 2);
        for (int k = 0; s->wants_configs && k < OCC_LAUNCH_CONFIG_COLUMNS && step == SQLITE_ROW; k++) {
            config->values[k] = sqlite3_value_dup(sqlite3_column_value(s->configs_stmt, 3 + k));
            step = config->values[k] ? SQLITE_ROW : SQLITE_NOMEM;
        }
    }
    (void)sqlite3_reset(s->configs_stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
}

static int add_config(struct occ_launch_scan *s, uint32_t id)
{
    if (!occ_grow((void **)&s->configs, &s->configs_allocated, s->n_configs, UINT32_MAX, sizeof *s->configs))
        return SQLITE_NOMEM;
    s->configs[s->n_configs] = (struct occ_launch_config_info){0};
    int rc = read_config(s, id, &s->configs[s->n_configs++]);
    if (rc == SQLITE_OK && occ_map_put(&s->config_index, id, s->n_configs - 1) == OCC_MAP_NONE)
        rc = SQLITE_NOMEM;
    return rc;
}

int occ_launch_scan_config(struct occ_launch_scan *s, uint32_t id, const struct occ_launch_config_info **ret)
{
    if (id != s->last_config || s->n_configs == 0) {
        uint32_t index = occ_map_get(&s->config_index, id);
        int rc = index == OCC_MAP_NONE ? add_config(s, id) : SQLITE_OK;
        if (rc != SQLITE_OK)
            return rc;
        s->last_config = id;
        s->last_index = index == OCC_MAP_NONE ? s->n_configs - 1 : index;
    }
    *ret = &s->configs[s->last_index];
    return SQLITE_OK;
}
