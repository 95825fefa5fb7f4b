/* The calculator's arguments; see calc.h. No state. */
#include "calc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/text.h"

#define NUMBER(name, field, help)                                                                            \
    CLI_OPTION(0, name, CLI_NUMBER, struct calc_args, field, "N", help, .max = UINT32_MAX)
#define BYTES(name, field, help)                                                                             \
    CLI_OPTION(0, name, CLI_BYTES, struct calc_args, field, "BYTES", help, .max = UINT32_MAX)
#define ANY(name, kind, field, value, help) CLI_OPTION(0, name, kind, struct calc_args, field, value, help)

const struct cli_option calc_options[] = {
    ANY("gpu", CLI_TEXT, gpu, "NAME",
        "the GPU or MIG slice ('occq calc --list' names them): t4, h200, a100-1g.5gb"),
    ANY("cc", CLI_TEXT, cc, "X.Y", "instead of --gpu: a compute capability, with --sms"),
    CLI_OPTION(0, "sms", CLI_NUMBER, struct calc_args, sms, "N",
               "number of SMs (default: all of the GPU's; a green context or a MIG slice has fewer)",
               .min = 1, .max = 65536),
    ANY("threads", CLI_SIZE, threads, "N", "threads per block: 256, 16x16, 8x8x4"),
    ANY("local-size", CLI_SIZE, local_size, "X[,Y,Z]",
        "the same in OpenCL's terms: work-items in a work-group: 256, 16,16"),
    NUMBER("regs", registers, "registers per thread"),
    BYTES("smem", static_smem,
          "static shared memory per block (OpenCL: local memory of a work-group; default 0); 48k is 48 KiB"),
    BYTES("dynamic-smem", dynamic_smem, "dynamic shared memory per block (default 0)"),
    BYTES("max-dynamic-smem", max_dynamic_smem,
          "the kernel's maximum dynamic shared memory, as opted in to (default: whatever the launch needs)"),
    ANY("grid", CLI_SIZE, grid, "N", "blocks in the grid: 250, 10x5x5 (default: waves are not computed)"),
    ANY("global-size", CLI_SIZE, global_size, "X[,Y,Z]",
        "the grid in OpenCL's terms: work-items in all work-groups, a multiple of the local size: 64000, "
        "800,80"),
    ANY("cluster", CLI_SIZE, cluster, "N", "blocks in a cluster: 2, 2x2"),
    NUMBER("active-clusters", active_clusters,
           "maximum active clusters on the GPU, as the driver reports them"),
    ANY("carveout", CLI_TEXT, carveout, "PCT|BYTES",
        "shared memory per SM: the preference in percent (50, 50%), or the driver's choice with a unit "
        "(64k)"),
    NUMBER("barriers", barriers, "barriers per block (default: not considered)"),
    CLI_OPTION(0, "ilp", CLI_NUMBER, struct calc_args, independent, "N",
               "independent instructions per warp, which hide latency as more warps do (default: unknown)",
               .min = 1, .max = 64),
    ANY("cubin", CLI_TEXT, cubin, "FILE",
        "registers, shared memory and barriers of the kernels in a cubin, fat binary, program or library"),
    ANY("ptxas", CLI_TEXT, ptxas, "FILE",
        "the same from the output of 'nvcc -Xptxas -v'; - is standard input"),
    ANY("kernel", CLI_TEXT, kernel, "NAME|REGEX",
        "only the kernels of the file with this name (full, mangled or without arguments); if there are "
        "none, all kernels with a name, mangled or not, that matches this POSIX extended regular expression"),
    ANY("svg", CLI_TEXT, svg, "FILE", "also write the curves to an SVG file"),
    ANY("json", CLI_FLAG, json, NULL,
        "print JSON, raw values; curves only of one kernel (--kernel chooses), else null"),
    ANY("batch", CLI_FLAG, batch, NULL,
        "read launches as CSV from standard input, write CSV with the results"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

bool calc_args_given(const struct calc_args *args, const char *option)
{
    return cli_is_given(calc_options, &args->common, option);
}

int calc_args_target(const struct calc_args *args, struct calc_target *ret_target, struct occ_error *err)
{
    if (!args->gpu && !args->cc)
        return occ_fail(err, OCC_E_INVALID,
                        "--gpu is missing ('occq calc --list' names them; or --cc and --sms)");
    if (args->gpu && args->cc)
        return occ_fail(err, OCC_E_INVALID, "--gpu and --cc exclude each other");
    if (args->cc && args->sms == 0)
        return occ_fail(err, OCC_E_INVALID,
                        "--sms is missing: --cc alone does not determine the number of SMs");
    int status = args->gpu ? calc_target_named(args->gpu, ret_target, err)
                           : calc_target_capability(args->cc, (uint64_t)args->sms, ret_target, err);
    if (status != 0)
        return occ_error_prefix(err, args->gpu ? "--gpu" : "--cc");
    if (args->sms > ret_target->device.sm_count)
        return occ_fail(err, OCC_E_INVALID, "--sms: %" PRId64 " is out of range (1 to %u of %s; or --cc)",
                        args->sms, ret_target->device.sm_count, ret_target->name);
    if (args->sms > 0)
        ret_target->device.sm_count = (uint32_t)args->sms;
    return 0;
}

int calc_args_kernel(const struct calc_args *args, struct calc_kernel *ret_kernel, struct occ_error *err)
{
    if (!calc_args_given(args, "regs"))
        return occ_fail(err, OCC_E_INVALID, "--regs is missing (or --cubin, --ptxas)");
    *ret_kernel = (struct calc_kernel){.registers = (uint32_t)args->registers,
                                       .static_smem_bytes = (uint32_t)args->static_smem,
                                       .barriers = (uint32_t)args->barriers};
    return 0;
}

/* Reads a carve-out. "50", "50%": percent. "64k", "65536B": bytes; a size needs a unit, since a number alone,
 * such as 150, is a percentage. */
static int read_carveout(const char *text, struct occ_launch *launch, struct occ_error *err)
{
    char number[32];
    uint64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    bool is_percent = text[digits] == '\0' || strcmp(text + digits, "%") == 0;
    bool is_number = is_percent || strcmp(text + digits, "B") == 0;
    (void)snprintf(number, sizeof number, "%.*s", is_number ? (int)digits : (int)sizeof number - 1, text);
    int status = is_percent ? occ_parse_u64(number, 0, 100, &value, err)
                            : occ_parse_bytes(number, UINT32_MAX, &value, err);
    if (status != 0)
        return occ_error_prefix(err,
                                is_percent ? "--carveout: percent (sizes have a unit: 64k)" : "--carveout");
    if (is_percent)
        launch->carveout_percent = (int32_t)value;
    else
        launch->smem_config_bytes = (uint32_t)value;
    return 0;
}

static void copy_size(uint32_t to[3], const uint32_t from[3])
{
    for (int axis = 0; axis < 3; axis++)
        to[axis] = from[axis];
}

static bool has_grid(const struct calc_args *args)
{
    return args->grid[0] > 0 || args->global_size[0] > 0;
}

/* Sets the number of work-groups. Refuses a remainder: a smaller last work-group would be another launch
 * configuration. */
static int read_global_size(const struct calc_args *args, struct occ_launch *launch, struct occ_error *err)
{
    for (int axis = 0; axis < 3; axis++) {
        uint32_t global = args->global_size[axis], local = launch->block[axis], rest = global % local;
        if (rest > 0)
            return occ_fail(err, OCC_E_INVALID,
                            "--global-size: %u work-items (%c) are no multiple of the %u in a work-group; "
                            "OpenCL 1.x refuses such a launch, OpenCL 2.x makes the last work-group smaller; "
                            "give %" PRIu64 ", and the kernel a bounds check",
                            global, "xyz"[axis], local, (uint64_t)global - rest + local);
        launch->grid[axis] = global / local;
    }
    return 0;
}

static int fill_launch(const struct calc_args *args, const struct calc_kernel *kernel,
                       struct occ_launch *launch, struct occ_error *err)
{
    *launch = (struct occ_launch){.block = {kernel->max_threads, 1, 1},
                                  .cluster = {1, 1, 1},
                                  .registers_per_thread = kernel->registers,
                                  .static_smem_bytes = kernel->static_smem_bytes,
                                  .dynamic_smem_bytes = (uint32_t)args->dynamic_smem,
                                  .carveout_percent = -1,
                                  .barriers = kernel->barriers,
                                  .max_active_clusters = (uint32_t)args->active_clusters,
                                  .max_dynamic_smem_known = calc_args_given(args, "max-dynamic-smem"),
                                  .max_dynamic_smem_bytes = (uint32_t)args->max_dynamic_smem};
    if (args->threads[0] > 0 || args->local_size[0] > 0)
        copy_size(launch->block, args->threads[0] > 0 ? args->threads : args->local_size);
    else if (kernel->max_threads == 0)
        return occ_fail(err, OCC_E_INVALID, "--threads is missing (OpenCL: --local-size)");
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (kernel->max_threads > 0 && threads > kernel->max_threads)
        return occ_fail(err, OCC_E_INVALID,
                        "--threads: %" PRIu64 " are more than the %u that the kernel was compiled for",
                        threads, kernel->max_threads);
    if (kernel->name && kernel->registers == 0)
        return occ_fail(err, OCC_E_INVALID, "the file does not contain its number of registers");
    if (args->cluster[0] > 0)
        copy_size(launch->cluster, args->cluster);
    else if (kernel->cluster[0] > 0)
        copy_size(launch->cluster, kernel->cluster);
    copy_size(launch->grid, args->grid[0] > 0 ? args->grid : launch->cluster);
    if (args->global_size[0] > 0 && read_global_size(args, launch, err) != 0)
        return OCC_E_INVALID;
    return args->carveout ? read_carveout(args->carveout, launch, err) : 0;
}

/* Analyses the case; without a grid for one full wave of whole clusters. */
static enum occ_status analyse(struct calc_case *c)
{
    const struct occ_device *device = &c->target->device;
    enum occ_status status = occ_analyse(device, &c->launch, &c->result);
    if (status != OCC_OK || c->has_grid)
        return status;
    struct occ_launch wave = c->launch;
    wave.grid[0] = (uint32_t)(c->result.wave_blocks / calc_cluster_blocks(&c->launch) * wave.grid[0]);
    if (occ_analyse(device, &wave, &c->result) == OCC_OK)
        c->launch = wave;
    return OCC_OK;
}

int calc_args_case(const struct calc_args *args, const struct calc_target *target,
                   const struct calc_kernel *kernel, struct calc_case *ret_case, struct occ_error *err)
{
    struct calc_case c = {.target = target,
                          .kernel = kernel,
                          .has_grid = has_grid(args),
                          .independent = (uint32_t)args->independent};
    enum occ_status model = OCC_OK;
    int status = fill_launch(args, kernel, &c.launch, err);
    if (status == 0 && c.launch.smem_config_bytes > target->device.smem_per_sm_bytes)
        status = occ_fail(err, OCC_E_INVALID, "--carveout: %u bytes are more than the %u that an SM has",
                          c.launch.smem_config_bytes, target->device.smem_per_sm_bytes);
    else if (status == 0 && target->device.max_cluster_size == 1 && calc_args_given(args, "active-clusters"))
        status = occ_fail(err, OCC_E_INVALID, "--active-clusters: compute capability %u.%u has no clusters",
                          target->device.cc / 10, target->device.cc % 10);
    else if (status == 0 && !kernel->name && kernel->static_smem_bytes > target->device.smem_per_block_bytes)
        status =
            occ_fail(err, OCC_E_INVALID,
                     "--smem: %u bytes are more than the %u that a kernel can declare statically; the rest "
                     "has to be --dynamic-smem",
                     kernel->static_smem_bytes, target->device.smem_per_block_bytes);
    else if (status == 0 && (model = analyse(&c)) != OCC_OK)
        status = calc_refuse(model, &target->device, &c.launch, err);
    if (status != 0)
        return kernel->name ? occ_error_prefix(err, "%.200s", kernel->name) : status;
    *ret_case = c;
    return 0;
}
