/* occq gpus: the named GPUs and MIG slices, and their limits. One thread. */
#include <math.h>
#include <stdio.h>

#include "cli/command.h"
#include "commands.h"
#include "cli/usage.h"
#include "occupancy/occupancy.h"
#include "support/cleanup.h"

struct gpus_args {
    struct cli_args common;
    struct cli_output output;
};

struct gpu_row {
    const char *gpu, *name, *slice_of;
    char cc[16];
    struct occ_device device;
    uint32_t max_warps_per_sm;
    double max_barriers_per_sm; /* NaN: the model does not consider barriers */
};

#define FIELD(name, key, flags, member, help)                                                                \
    CLI_FIELD(name, key, CLI_PLAIN, flags, struct gpu_row, member, help)

static const struct cli_column columns[] = {
    FIELD("gpu", "gpu", CLI_DEFAULT | CLI_LEFT, gpu, "argument of --gpu"),
    FIELD("name", "name", CLI_DEFAULT | CLI_LEFT | CLI_CUTS, name, "the product's name"),
    FIELD("cc", "cc", CLI_DEFAULT | CLI_LEFT, cc, "compute capability"),
    FIELD("sms", "sm_count", CLI_DEFAULT, device.sm_count, "number of SMs"),
    FIELD("warps", "max_warps_per_sm", CLI_DEFAULT, max_warps_per_sm, "maximum warps per SM"),
    FIELD("blocks", "max_blocks_per_sm", CLI_DEFAULT, device.max_blocks_per_sm, "maximum blocks per SM"),
    FIELD("regs", "registers_per_sm", CLI_DEFAULT, device.registers_per_sm, "registers per SM"),
    FIELD("regs_block", "registers_per_block", 0, device.registers_per_block, "maximum registers per block"),
    FIELD("regs_thread", "max_registers_per_thread", 0, device.max_registers_per_thread,
          "maximum registers per thread"),
    FIELD("regs_unit", "register_unit", 0, device.register_unit, "register allocation unit size (per warp)"),
    FIELD("shared", "shared_per_sm_bytes", CLI_DEFAULT, device.smem_per_sm_bytes,
          "shared memory per SM, bytes"),
    FIELD("optin", "shared_per_block_optin_bytes", CLI_DEFAULT, device.smem_per_block_optin_bytes,
          "maximum shared memory per block (opt-in), bytes"),
    FIELD("reserved", "shared_reserved_per_block_bytes", 0, device.smem_reserved_per_block_bytes,
          "reserved shared memory per block, bytes"),
    FIELD("shared_unit", "shared_unit_bytes", 0, device.smem_unit_bytes,
          "shared memory allocation unit size, bytes"),
    FIELD("barriers", "max_barriers_per_sm", CLI_DEFAULT | CLI_SPARE, max_barriers_per_sm,
          "barriers per SM, where the model considers them"),
    FIELD("cluster", "max_cluster_size", CLI_DEFAULT | CLI_SPARE, device.max_cluster_size,
          "maximum cluster size in blocks; 1: no clusters"),
    FIELD("slice_of", "slice_of", CLI_LEFT, slice_of, "of a MIG slice: the whole GPU"),
    CLI_COLUMN_END,
};

static int fill_row(const struct occ_gpu *gpu, struct gpu_row *row, struct occ_error *err)
{
    *row = (struct gpu_row){.gpu = gpu->name, .name = gpu->title, .slice_of = gpu->slice_of};
    if (occ_device_from_name(gpu->name, &row->device) != OCC_OK)
        return occ_fail(err, OCC_E_CORRUPT, "%s: unknown compute capability", gpu->name);
    const struct occ_device *device = &row->device;
    (void)snprintf(row->cc, sizeof row->cc, "%u.%u", device->cc / 10, device->cc % 10);
    row->max_warps_per_sm = device->max_threads_per_sm / device->warp_size;
    row->max_barriers_per_sm =
        device->max_barriers_per_sm == OCC_NO_LIMIT ? (double)NAN : device->max_barriers_per_sm;
    return 0;
}

static int print(const struct cli_selection *selection, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    struct gpu_row row;
    const struct occ_gpu *gpu;
    int status = cli_table_new(stdout, "gpus", selection, &table, err);
    for (size_t i = 0; status == 0 && (gpu = occ_gpu_at(i)); i++) {
        status = fill_row(gpu, &row, err);
        if (status == 0)
            status = cli_table_add(table, &row, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct gpus_args args = {0};
    struct cli_selection selection;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_output_choose(&args.output, columns, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return print(&selection, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION_COLUMNS(struct gpus_args),
    CLI_OPTION_JSON(struct gpus_args),
    CLI_OPTION_CSV(struct gpus_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq gpus", "all of them"},
    {"occq gpus -o gpu,sms,slice_of", "MIG slices and the GPUs they are part of"},
    {NULL, NULL},
};

const struct cli_command cli_gpus = {
    .program = "occq",
    .name = "gpus",
    .operands = "",
    .summary = "the GPUs that calc and what-if know by name",
    .description =
        "Lists the GPUs and MIG slices that --gpu takes, with their SMs and limits. For other GPUs, "
        "'occq calc' takes --cc and --sms.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
