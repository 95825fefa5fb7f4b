/* Recorded launches of a build's kernels; see gate.h. One thread. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "cli/sides/report.h"
#include "gate.h"
#include "support/clock.h"

#define MONTH_NS (INT64_C(30) * 86400 * 1000000000)

void gate_recorded_free(struct gate_recorded *recorded)
{
    occ_config_rows_free(&recorded->rows);
    occ_map_free(&recorded->first);
    occ_store_close(recorded->store);
    *recorded = (struct gate_recorded){0};
}

static uint64_t hash_of(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

/* Recordings of other tools have demangled names only, so these are the key. Rows of a kernel follow each
 * other; the first kernel with a hash has it. */
static int index_rows(struct gate_recorded *recorded, struct occ_error *err)
{
    for (size_t i = 0; i < recorded->rows.n; i++) {
        recorded->all_ns += recorded->rows.rows[i].total_ns;
        if (occ_map_put(&recorded->first, hash_of(recorded->rows.rows[i].kernel.demangled), (uint32_t)i) ==
            OCC_MAP_NONE)
            return occ_no_memory(err);
    }
    return 0;
}

static int read_period(const struct history_args *args, struct gate_recorded *recorded, struct occ_error *err)
{
    struct occ_filter filter = args->filter;
    bool is_default = filter.since_ns == 0 && filter.until_ns == 0;
    if (is_default)
        filter.since_ns = occ_now_ns() - MONTH_NS;
    recorded->period = is_default ? "of the last 30 days" : "of the period";
    int status = occ_store_configs(recorded->store, &filter, &recorded->rows, err);
    if (status != 0 || recorded->rows.n > 0 || !is_default)
        return status;
    occ_config_rows_free(&recorded->rows);
    filter.since_ns = 0;
    recorded->period = "of the history";
    return occ_store_configs(recorded->store, &filter, &recorded->rows, err);
}

int gate_recorded_read(const struct history_args *args, struct gate_recorded *ret_recorded,
                       struct occ_error *err)
{
    struct gate_recorded recorded = {.period = ""};
    const struct cli_args *common = &args->list.common;
    int status = 0;
    if (common->db || cli_has_history(common))
        status = cli_open_history(common, OCC_STORE_READ, &recorded.store, err);
    if (status == 0 && recorded.store)
        status = read_period(args, &recorded, err);
    if (status == 0)
        status = index_rows(&recorded, err);
    if (status == 0)
        *ret_recorded = recorded;
    else
        gate_recorded_free(&recorded);
    return status;
}

/* Names with equal hashes are one kernel only if their texts are equal; a kernel whose hash belongs to
 * another kernel has no rows. */
const struct occ_config_row *gate_rows_of(const struct gate_recorded *recorded, const char *name,
                                          size_t *ret_n)
{
    uint32_t first = occ_map_get(&recorded->first, hash_of(name));
    size_t n = 0;
    *ret_n = 0;
    if (first == OCC_MAP_NONE)
        return NULL;
    const struct occ_config_row *rows = &recorded->rows.rows[first];
    while (first + n < recorded->rows.n && strcmp(rows[n].kernel.demangled, name) == 0)
        n++;
    *ret_n = n;
    return n ? rows : NULL;
}

uint32_t gate_dynamic_bytes(const struct occ_config_row *row, const struct pin *pin)
{
    uint32_t dynamic = row->launch.dynamic_smem_bytes, fixed = pin->value[PIN_SHARED];
    bool is_sum = row->source && row->launch.static_smem_bytes == 0 && fixed != PIN_UNKNOWN;
    return is_sum && dynamic >= fixed ? dynamic - fixed : dynamic;
}

int gate_take_launches(const struct gate_recorded *recorded, const struct pins *build, struct pins *pins,
                       struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < build->n; i++) {
        const struct pin *pin = &build->list[i];
        size_t n = 0;
        const struct occ_config_row *rows = NULL;
        if (i == 0 || strcmp(pin[-1].kernel, pin->kernel) != 0)
            rows = gate_rows_of(recorded, pin->name, &n);
        for (size_t k = 0; k < n && status == 0; k++) {
            const struct pin_launch launch = {(uint32_t)diff_product(rows[k].launch.block),
                                              gate_dynamic_bytes(&rows[k], pin)};
            if (launch.threads <= pin_resource_max(PIN_BOUNDS) &&
                launch.dynamic_bytes <= pin_resource_max(PIN_SHARED))
                status = pins_add_launch(pins, pin->kernel, launch, err);
        }
    }
    if (status == 0)
        pins_sort_statements(pins);
    return status;
}
