/* occq gpus: the named GPUs and MIG slices, and what they hold. One thread. */
#include <string.h>

#include "cli/commands.h"
#include "occupancy/occupancy.h"
#include "cli/query.h"
#include "support/cleanup.h"
#include "cli/usage.h"

struct gpus_args {
    struct cli_args common;
    struct cli_output output;
};

struct gpu_row {
    const struct occ_gpu *gpu;
    struct occ_device device;
};

#define GETTER(name, set, expression)                                                                        \
    static void get_##name(const struct cli_column *column, const void *row_pointer,                         \
                           struct cli_value *value)                                                          \
    {                                                                                                        \
        (void)column;                                                                                        \
        const struct gpu_row *row = row_pointer;                                                             \
        set(value, expression);                                                                              \
    }

GETTER(gpu, cli_set_string, row->gpu->name)
GETTER(title, cli_set_string, row->gpu->title)
GETTER(slice_of, cli_set_string, row->gpu->slice_of)
GETTER(sms, cli_set_unsigned, row->device.sm_count)
GETTER(warps, cli_set_unsigned, row->device.max_threads_per_sm / row->device.warp_size)
GETTER(blocks, cli_set_unsigned, row->device.max_blocks_per_sm)
GETTER(registers, cli_set_unsigned, row->device.registers_per_sm)
GETTER(registers_per_block, cli_set_unsigned, row->device.registers_per_block)
GETTER(registers_per_thread, cli_set_unsigned, row->device.max_registers_per_thread)
GETTER(register_unit, cli_set_unsigned, row->device.register_unit)
GETTER(smem, cli_set_unsigned, row->device.smem_per_sm_bytes)
GETTER(optin, cli_set_unsigned, row->device.smem_per_block_optin_bytes)
GETTER(reserved, cli_set_unsigned, row->device.smem_reserved_per_block_bytes)
GETTER(smem_unit, cli_set_unsigned, row->device.smem_unit_bytes)
GETTER(cluster, cli_set_unsigned, row->device.max_cluster_size)

static void get_cc(const struct cli_column *column, const void *row, struct cli_value *value)
{
    uint32_t cc = ((const struct gpu_row *)row)->device.cc;
    (void)column;
    cli_set_format(value, "%u.%u", cc / 10, cc % 10);
}

static void get_barriers(const struct cli_column *column, const void *row, struct cli_value *value)
{
    uint32_t barriers = ((const struct gpu_row *)row)->device.max_barriers_per_sm;
    (void)column;
    if (barriers != OCC_NO_LIMIT)
        cli_set_unsigned(value, barriers);
}

static const struct cli_column columns[] = {
    {"gpu", "gpu", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "what --gpu takes", get_gpu, 0},
    {"name", "name", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, "the product's name", get_title, 0},
    {"cc", "cc", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, "compute capability", get_cc, 0},
    {"sms", "sm_count", CLI_PLAIN, CLI_DEFAULT, "SMs", get_sms, 0},
    {"warps", "warps_per_sm", CLI_PLAIN, CLI_DEFAULT, "most warps of an SM", get_warps, 0},
    {"blocks", "blocks_per_sm", CLI_PLAIN, CLI_DEFAULT, "most blocks of an SM", get_blocks, 0},
    {"regs", "registers_per_sm", CLI_PLAIN, CLI_DEFAULT, "registers of an SM", get_registers, 0},
    {"regs_block", "registers_per_block", CLI_PLAIN, 0, "most registers of a block", get_registers_per_block,
     0},
    {"regs_thread", "registers_per_thread", CLI_PLAIN, 0, "most registers of a thread",
     get_registers_per_thread, 0},
    {"regs_unit", "register_unit", CLI_PLAIN, 0, "registers are allocated to a warp in multiples of this",
     get_register_unit, 0},
    {"smem", "smem_per_sm_bytes", CLI_PLAIN, CLI_DEFAULT, "shared memory of an SM, bytes", get_smem, 0},
    {"optin", "smem_per_block_optin_bytes", CLI_PLAIN, CLI_DEFAULT,
     "most shared memory of a block that has opted in, bytes", get_optin, 0},
    {"reserved", "smem_reserved_per_block_bytes", CLI_PLAIN, 0,
     "shared memory kept back for each block, bytes", get_reserved, 0},
    {"smem_unit", "smem_unit_bytes", CLI_PLAIN, 0, "shared memory is allocated in multiples of this, bytes",
     get_smem_unit, 0},
    {"barriers", "barriers_per_sm", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE,
     "barriers of an SM, where the model considers them", get_barriers, 0},
    {"cluster", "blocks_per_cluster", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE,
     "most blocks of a cluster; 1: no clusters", get_cluster, 0},
    {"slice_of", "slice_of", CLI_PLAIN, CLI_LEFT, "of a MIG slice: the whole GPU", get_slice_of, 0},
    {NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0},
};

static int print(enum cli_format format, const struct cli_selection *selection, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    struct gpu_row row;
    int status = cli_table_new(format, stdout, "gpus", selection, &table, err);
    for (size_t i = 0; status == 0 && (row.gpu = occ_gpu_at(i)); i++) {
        if (occ_device_from_name(row.gpu->name, &row.device) != OCC_OK)
            return occ_fail(err, OCC_E_CORRUPT, "%s is on no compute capability that there is",
                            row.gpu->name);
        status = cli_table_add(table, &row, err);
    }
    return status == 0 ? cli_table_finish(table, err) : status;
}

static int run(const struct cli_command *command, char **argv)
{
    struct gpus_args args = {0};
    struct cli_selection selection;
    enum cli_format format;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_output_choose(&args.output, columns, &format, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return print(format, &selection, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
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
    {"occq gpus -o gpu,sms,slice_of", "how MIG slices are cut"},
    {NULL, NULL},
};

const struct cli_command cli_gpus = {
    .program = "occq",
    .name = "gpus",
    .operands = "",
    .summary = "the GPUs that calc and what-if know by name",
    .description =
        "Lists the GPUs and MIG slices that --gpu takes, with their SMs and what an SM holds. Other GPUs "
        "can be computed with --cc and --sms.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
