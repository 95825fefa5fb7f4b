/* See simulated_launches.h. */
#include "simulated_launches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, COLUMNS_MAX = 64, NAME = 32 };

struct table {
    char names[COLUMNS_MAX][NAME];
    size_t columns;
    char cells[COLUMNS_MAX][NAME];
};

static size_t split(char *line, char cells[COLUMNS_MAX][NAME])
{
    size_t n = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at && n < COLUMNS_MAX; n++) {
        char *cell = strsep(&at, ",");
        (void)snprintf(cells[n], NAME, "%s", cell);
    }
    return n;
}

static const char *cell(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(t->names[i], name) == 0)
            return t->cells[i];
    return "";
}

static double number(const struct table *t, const char *name)
{
    const char *text = cell(t, name);
    return text[0] ? strtod(text, NULL) : (double)NAN;
}

static uint32_t whole(const struct table *t, const char *name)
{
    return (uint32_t)strtoul(cell(t, name), NULL, 10);
}

static bool fill(const struct table *t, struct simulated_launch *l)
{
    double cycles = number(t, "cycles");
    *l = (struct simulated_launch){
        .injected_cycles = number(t, "injected_cycles"),
        .sm_active = number(t, "active_mean") / cycles,
        .sm_active_min_ratio = number(t, "active_min") / number(t, "active_max"),
        .achieved = number(t, "achieved"),
        .elapsed = number(t, "elapsed"),
        .resident = number(t, "resident"),
        .sim_blocks_per_sm = number(t, "sim_blocks_per_sm"),
        .device = {.cc = 70, .sm_count = whole(t, "sms")},
        .launch = {.grid = {whole(t, "grid"), 1, 1},
                   .block = {whole(t, "block"), 1, 1},
                   .registers_per_thread = whole(t, "regs"),
                   .static_smem_bytes = whole(t, "smem"),
                   .carveout_percent = -1},
    };
    l->ramp = number(t, "true_ramp") * l->sm_active;
    l->refill = number(t, "true_refill") * l->sm_active;
    l->within = number(t, "true_within") * l->sm_active;
    (void)snprintf(l->set, sizeof l->set, "%s", cell(t, "set"));
    (void)snprintf(l->kernel, sizeof l->kernel, "%.11s", cell(t, "kernel"));
    (void)snprintf(l->dist, sizeof l->dist, "%.11s", cell(t, "dist"));
    return occ_device_complete(&l->device) == OCC_OK &&
           occ_analyse(&l->device, &l->launch, &l->result) == OCC_OK;
}

size_t simulated_read(const char *path, struct simulated_launch **ret_list)
{
    struct table table = {.columns = 0};
    char line[LINE];
    size_t n = 0;
    FILE *file = fopen(path, "re");
    *ret_list = NULL;
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        if (table.columns == 0) {
            table.columns = split(line, table.names);
            continue;
        }
        struct simulated_launch *list = reallocarray(*ret_list, n + 1, sizeof *list);
        if (!list || split(line, table.cells) != table.columns || !fill(&table, &list[n])) {
            free(list ? list : *ret_list);
            *ret_list = NULL;
            n = 0;
            break;
        }
        *ret_list = list;
        n++;
    }
    if (file)
        (void)fclose(file);
    return n;
}

struct occ_measurement simulated_measurement(const struct simulated_launch *l,
                                             enum simulated_counters counters)
{
    bool has_blocks = counters == SIMULATED_ALL || counters == SIMULATED_NO_IMBALANCE;
    bool has_imbalance = counters == SIMULATED_ALL || counters == SIMULATED_NCU;
    return (struct occ_measurement){.source = OCC_FROM_NCU,
                                    .achieved = l->achieved,
                                    .achieved_error = NAN,
                                    .elapsed = l->elapsed,
                                    .elapsed_error = NAN,
                                    .sm_active = l->sm_active,
                                    .resident_blocks = has_blocks ? l->resident : (double)NAN,
                                    .imbalance = has_imbalance ? 1 - l->sm_active_min_ratio : (double)NAN};
}

double simulated_tail(const struct simulated_launch *l)
{
    return l->result.theoretical - l->elapsed - l->ramp - l->refill - l->within;
}

bool simulated_has_opposite_parts(const struct occ_waterfall *w, double min)
{
    bool above = false, below = false;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        above |= w->part[i] > min;
        below |= w->part[i] < -min;
    }
    return above && below;
}
