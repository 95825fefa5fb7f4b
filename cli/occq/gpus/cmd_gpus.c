/* occq gpus: lists the named GPUs and MIG slices with their limits. One thread. */
#include <stdio.h>

#include "cli/analysis/calc_device.h"
#include "cli/command.h"
#include "occupancy/occupancy.h"
#include "support/cleanup.h"

static int run(const struct cli_command *command, const void *arguments)
{
    const struct cli_list_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    const struct occ_gpu *gpu;
    int status = cli_table_new(stdout, "gpus", &args->selection, &table, &err);
    for (size_t i = 0; status == 0 && (gpu = occ_gpu_at(i)); i++) {
        struct occ_device device;
        struct calc_device_row row = {.gpu = gpu->name, .name = gpu->title, .slice_of = gpu->slice_of};
        if (occ_device_from_name(gpu->name, &device) != OCC_OK)
            status = occ_fail(&err, OCC_E_CORRUPT, "%s: unknown compute capability", gpu->name);
        else
            calc_device_fill(&row, &device);
        if (status == 0)
            status = cli_table_add(table, &row, &err);
    }
    if (status == 0)
        status = cli_table_finish(table, &err);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

static const struct cli_option options[] = {CLI_OPTIONS_LIST};

const struct cli_command cli_gpus = {
    .name = "gpus",
    .is_paged = true,
    .summary = "the GPUs that calc and what-if know by name",
    .description = "Lists the GPUs and MIG slices that --gpu takes, with their SMs and limits. For other "
                   "GPUs, 'occq calc' takes --cc and --sms.",
    .options = options,
    .columns = calc_device_columns,
    .examples = {{"occq gpus", "all of them"},
                 {"occq gpus -o gpu,sms,slice_of", "MIG slices and the GPUs they are part of"}},
    CLI_ARGS(struct cli_list_args, ),
    .run = run,
};
