/* occq calc --list: lists the named GPUs and MIG slices with their limits. One thread. */
#include <stdio.h>

#include "calc.h"
#include "cli/analysis/calc_device.h"
#include "cli/command.h"
#include "occupancy/occupancy.h"
#include "support/cleanup.h"

struct list_args {
    struct cli_list_args list;
    bool list_gpus;
};

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

static const struct cli_option options[] = {
    CLI_OPTION(0, "list", CLI_FLAG, struct list_args, list_gpus, NULL, "list the GPUs"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_calc_list = {
    .name = "calc",
    .form = "--list",
    .is_paged = true,
    .summary = "the GPUs and MIG slices that have a name",
    .description = "Lists the GPUs and MIG slices that 'occq calc --gpu' and 'occq top --on' take, with "
                   "their SMs and limits. For other GPUs, 'occq calc' takes --cc and --sms.",
    .options = options,
    .columns = calc_device_columns,
    .examples = {{"occq calc --list", "all GPUs"},
                 {"occq calc --list -o gpu,sms,slice_of", "MIG slices with their GPUs"}},
    CLI_ARGS(struct list_args, ),
    .run = run,
};
