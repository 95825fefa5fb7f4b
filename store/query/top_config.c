/* See top_config.h. One thread. */
#include "top_config.h"

/* The column as a double; NULL becomes NaN. */
static double real_column(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, column);
}

static void read_dominant(sqlite3_stmt *stmt, struct occ_dominant_config *dominant)
{
    dominant->id = sqlite3_column_int64(stmt, OCC_TOP_CONFIG);
    dominant->kernel = sqlite3_column_int64(stmt, OCC_TOP_KERNEL);
    dominant->grid_blocks = (uint64_t)sqlite3_column_int64(stmt, OCC_TOP_GRID_BLOCKS);
    dominant->wave_blocks = (uint64_t)sqlite3_column_int64(stmt, OCC_TOP_WAVE_BLOCKS);
    dominant->blocks_per_sm = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_BLOCKS_PER_SM);
    dominant->sm_count = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_SMS);
    dominant->registers_per_thread = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_REGISTERS);
    dominant->block_threads = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_BLOCK_THREADS);
    dominant->waves = real_column(stmt, OCC_TOP_WAVES);
    dominant->full_waves = (uint64_t)sqlite3_column_int64(stmt, OCC_TOP_FULL_WAVES);
    dominant->partial_blocks = (uint64_t)sqlite3_column_int64(stmt, OCC_TOP_PARTIAL_BLOCKS);
    dominant->by_design = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_BY_DESIGN);
    dominant->limiters = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_LIMITERS);
}

/* Reads the members of the model's result that the waterfall needs. */
static void read_result(sqlite3_stmt *stmt, struct occ_result *result)
{
    *result = (struct occ_result){
        .warps_per_block = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_WARPS_PER_BLOCK),
        .max_warps_per_sm = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_MAX_WARPS),
        .theoretical = real_column(stmt, OCC_TOP_THEORETICAL),
        .full_waves = (uint64_t)sqlite3_column_int64(stmt, OCC_TOP_FULL_WAVES),
        .expected_achieved_low = real_column(stmt, OCC_TOP_ACHIEVED_LOW),
        .expected_achieved_high = real_column(stmt, OCC_TOP_ACHIEVED_HIGH),
        .expected_elapsed_low = real_column(stmt, OCC_TOP_ELAPSED_LOW),
        .expected_elapsed_high = real_column(stmt, OCC_TOP_ELAPSED_HIGH),
    };
    for (int i = 0; i < OCC_CAUSE_COUNT; i++)
        result->cause[i] = sqlite3_column_double(stmt, OCC_TOP_CAUSES + 1 + i);
}

int occ_top_config_read(struct occ_store *s, const struct occ_resolved_filter *f, sqlite3_stmt *stmt,
                        struct occ_top_config *ret_config, struct occ_error *err)
{
    uint32_t cc = (uint32_t)sqlite3_column_int64(stmt, OCC_TOP_CC), rules = occ_device_rules_of(cc);
    *ret_config =
        (struct occ_top_config){.stmt = stmt,
                                .id = sqlite3_column_int64(stmt, OCC_TOP_CONFIG),
                                .kernel = sqlite3_column_int64(stmt, OCC_TOP_KERNEL),
                                .is_analysed = sqlite3_column_type(stmt, OCC_TOP_ELAPSED_LOW) != SQLITE_NULL,
                                .is_simulated = sqlite3_column_int(stmt, OCC_TOP_SIMULATED) != 0,
                                .is_estimated = rules != cc && rules != 0};
    read_result(stmt, &ret_config->result);
    read_dominant(stmt, &ret_config->dominant);
    ret_config->warps = sqlite3_column_double(stmt, OCC_TOP_SMS) * ret_config->result.max_warps_per_sm;
    return f->unit_ns ? occ_measured_first(s, f, ret_config->id, &ret_config->measured, err) : 0;
}
