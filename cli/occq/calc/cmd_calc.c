/*
 * occq calc: the occupancy calculator. Its input is options, compiled code, the output of ptxas, or (--batch) rows on
 * standard input; no history is needed. One thread.
 */
#include "cmd_calc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc.h"
#include "calc_batch.h"
#include "cli/command.h"
#include "cli/usage.h"
#include "support/cleanup.h"
#include "support/text.h"

#define NOT_GIVEN (-1)

struct calc_args {
    struct cli_args common;
    const char *gpu, *cc;
    int64_t sms;
    uint32_t threads[3], grid[3], cluster[3]; /* 0: not given */
    int64_t registers, static_smem, dynamic_smem, max_dynamic_smem, barriers, active_clusters;
    const char *carveout;
    const char *cubin, *ptxas, *kernel;
    const char *svg;
    bool json, batch;
};

static const struct calc_labels labels = {.threads = "--threads",
                                          .registers = "--regs",
                                          .static_smem = "--smem",
                                          .dynamic_smem = "--dynamic-smem",
                                          .max_dynamic_smem = "--max-dynamic-smem",
                                          .smem_config = "--carveout",
                                          .grid = "--grid",
                                          .cluster = "--cluster",
                                          .barriers = "--barriers",
                                          .carveout = "--carveout"};

/* ---- options ---- */

static int check_exclusive(const struct calc_args *args, struct occ_error *err)
{
    const char *source = args->batch ? "--batch" : args->cubin ? "--cubin" : args->ptxas ? "--ptxas" : NULL;
    const struct {
        const char *option;
        bool given, only_with_batch; /* excluded by --batch only */
    } options[] = {{"--cubin", args->cubin && args->batch, true},
                   {"--ptxas", args->ptxas && (args->batch || args->cubin), false},
                   {"--regs", args->registers != NOT_GIVEN, false},
                   {"--smem", args->static_smem != NOT_GIVEN, false},
                   {"--barriers", args->barriers != NOT_GIVEN, false},
                   {"--gpu", args->gpu != NULL, true},
                   {"--cc", args->cc != NULL, true},
                   {"--sms", args->sms != NOT_GIVEN, true},
                   {"--threads", args->threads[0] > 0, true},
                   {"--grid", args->grid[0] > 0, true},
                   {"--cluster", args->cluster[0] > 0, true},
                   {"--dynamic-smem", args->dynamic_smem != NOT_GIVEN, true},
                   {"--max-dynamic-smem", args->max_dynamic_smem != NOT_GIVEN, true},
                   {"--active-clusters", args->active_clusters != NOT_GIVEN, true},
                   {"--carveout", args->carveout != NULL, true},
                   {"--kernel", args->kernel != NULL, true},
                   {"--svg", args->svg != NULL, true},
                   {"--json", args->json, true}};
    for (size_t i = 0; source && i < sizeof options / sizeof *options; i++)
        if (options[i].given && (args->batch || !options[i].only_with_batch))
            return occ_fail(err, OCC_E_INVALID, "%s and %s exclude each other", source, options[i].option);
    if (args->kernel && !source)
        return occ_fail(err, OCC_E_INVALID, "--kernel needs --cubin or --ptxas");
    return 0;
}

static int find_target(const struct calc_args *args, struct calc_target *target, struct occ_error *err)
{
    if (!args->gpu && !args->cc)
        return occ_fail(err, OCC_E_INVALID, "--gpu is missing ('occq gpus' lists them; or --cc and --sms)");
    if (args->gpu && args->cc)
        return occ_fail(err, OCC_E_INVALID, "--gpu and --cc exclude each other");
    if (args->cc && args->sms == NOT_GIVEN)
        return occ_fail(err, OCC_E_INVALID,
                        "--sms is missing: --cc alone does not determine the number of SMs");
    int status = args->gpu ? calc_target_named(args->gpu, target, err)
                           : calc_target_capability(args->cc, (uint64_t)args->sms, target, err);
    if (status != 0)
        return occ_error_prefix(err, args->gpu ? "--gpu" : "--cc");
    if (args->gpu && args->sms != NOT_GIVEN)
        target->device.sm_count = (uint32_t)args->sms;
    return 0;
}

/* "50", "50%": percent. "64k": bytes; a size needs a unit, so that 150 is not taken for 150 bytes. */
static int read_carveout(const char *text, struct occ_launch *launch, struct occ_error *err)
{
    char number[32];
    uint64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    bool is_percent = text[digits] == '\0' || strcmp(text + digits, "%") == 0;
    (void)snprintf(number, sizeof number, "%.*s",
                   digits < sizeof number ? (int)digits : (int)sizeof number - 1, text);
    int status = is_percent ? occ_parse_u64(number, 0, 100, &value, err)
                            : occ_parse_bytes(text, UINT32_MAX, &value, err);
    if (status != 0)
        return occ_error_prefix(err,
                                is_percent ? "--carveout: percent (sizes have a unit: 64k)" : "--carveout");
    if (is_percent)
        launch->carveout_percent = (int32_t)value;
    else
        launch->smem_config_bytes = (uint32_t)value;
    return 0;
}

static uint32_t given_or(int64_t value, uint32_t otherwise)
{
    return value == NOT_GIVEN ? otherwise : (uint32_t)value;
}

static void copy_size(uint32_t to[3], const uint32_t from[3])
{
    for (int axis = 0; axis < 3; axis++)
        to[axis] = from[axis];
}

/* ---- one kernel ---- */

static int fill_launch(const struct calc_args *args, const struct calc_kernel *kernel,
                       struct occ_launch *launch, struct occ_error *err)
{
    *launch = (struct occ_launch){.block = {kernel->max_threads, 1, 1},
                                  .cluster = {1, 1, 1},
                                  .registers_per_thread = kernel->registers,
                                  .static_smem_bytes = kernel->static_smem_bytes,
                                  .dynamic_smem_bytes = given_or(args->dynamic_smem, 0),
                                  .carveout_percent = -1,
                                  .barriers = kernel->barriers,
                                  .max_active_clusters = given_or(args->active_clusters, 0),
                                  .max_dynamic_smem_known = args->max_dynamic_smem != NOT_GIVEN,
                                  .max_dynamic_smem_bytes = given_or(args->max_dynamic_smem, 0)};
    if (args->threads[0] > 0)
        copy_size(launch->block, args->threads);
    else if (kernel->max_threads == 0)
        return occ_fail(err, OCC_E_INVALID, "--threads is missing");
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
    return args->carveout ? read_carveout(args->carveout, launch, err) : 0;
}

/* Without a grid: one full wave of whole clusters. */
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

static int compute(const struct calc_args *args, const struct calc_target *target,
                   const struct calc_kernel *kernel, struct calc_case *c, struct occ_error *err)
{
    *c = (struct calc_case){.target = target, .kernel = kernel, .has_grid = args->grid[0] > 0};
    int status = fill_launch(args, kernel, &c->launch, err);
    if (status == 0)
        status = calc_check(&target->device, &c->launch, &labels, err);
    if (status == 0) {
        enum occ_status model = analyse(c);
        status = model == OCC_OK ? 0 : calc_refuse(model, &target->device, &c->launch, &labels, err);
    }
    return status != 0 && kernel->name ? occ_error_prefix(err, "%.200s", kernel->name) : status;
}

static int print(const struct calc_args *args, const struct calc_case *cases, size_t n, struct occ_error *err)
{
    int status = 0;
    if (args->svg && n > 1)
        return occ_fail(err, OCC_E_INVALID, "--svg draws one kernel, there are %zu; --kernel chooses one", n);
    if (args->svg)
        status = calc_svg(&cases[0], args->svg, err);
    if (status != 0)
        return status;
    if (args->json)
        return calc_json(cases, n, err);
    return n == 1 ? calc_text(&cases[0], err) : calc_text_list(cases, n, err);
}

static int run_options(const struct cli_command *command, const struct calc_args *args,
                       const struct calc_target *target)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct calc_kernel kernel = {.registers = given_or(args->registers, 0),
                                       .static_smem_bytes = given_or(args->static_smem, 0),
                                       .barriers = given_or(args->barriers, 0)};
    struct calc_case c;
    if (args->registers == NOT_GIVEN)
        (void)occ_fail(&err, OCC_E_INVALID, "--regs is missing (or --cubin, --ptxas)");
    if (args->registers == NOT_GIVEN || compute(args, target, &kernel, &c, &err) != 0)
        return cli_usage_error(command, &err);
    return print(args, &c, 1, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

/* ---- kernels of a file ---- */

static void note_compiled_for(const struct cli_command *command, const struct calc_kernel *kernel,
                              uint32_t cc)
{
    const char suffix[] = {kernel->suffix, '\0'};
    if (!kernel->runs)
        cli_note(command,
                 "nothing in it was compiled for compute capability %u.%u; these are the values for sm_%u%s",
                 cc / 10, cc % 10, kernel->sm, suffix);
}

/* Reports kernels that cannot be launched so; returns the number of the others. */
static size_t compute_all(const struct cli_command *command, const struct calc_args *args,
                          const struct calc_target *target, const struct calc_kernels *kernels,
                          struct calc_case *cases)
{
    size_t n = 0;
    for (size_t i = 0; i < kernels->n; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        if (compute(args, target, &kernels->list[i], &cases[n], &err) == 0)
            n++;
        else
            (void)cli_failure(command, &err);
    }
    return n;
}

static int run_file(const struct cli_command *command, const struct calc_args *args,
                    const struct calc_target *target)
{
    _cleanup_(calc_kernels_release) struct calc_kernels kernels = {0};
    struct occ_error err = OCC_ERROR_INIT;
    uint32_t cc = target->device.cc;
    int status = args->cubin ? calc_read_image(args->cubin, cc, args->kernel, &kernels, &err)
                             : calc_read_ptxas(args->ptxas, cc, args->kernel, &kernels, &err);
    if (status != 0) {
        (void)occ_error_prefix(&err, args->cubin ? "--cubin" : "--ptxas");
        (void)cli_failure(command, &err);
        return status == OCC_E_NOT_FOUND && args->kernel ? CLI_EXIT_NOTHING : CLI_EXIT_FAILURE;
    }
    _cleanup_(occ_freep) struct calc_case *cases = calloc(kernels.n, sizeof *cases);
    if (!cases) {
        (void)occ_fail(&err, OCC_E_NO_MEMORY, "out of memory");
        return cli_failure(command, &err);
    }
    note_compiled_for(command, &kernels.list[0], cc);
    size_t n = compute_all(command, args, target, &kernels, cases);
    if (n > 0 && print(args, cases, n, &err) != 0)
        return cli_failure(command, &err);
    return n == kernels.n ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

/* ---- batch ---- */

/* Output goes out before more input is waited for, so that a program can write a row and read its answer. */
static ssize_t read_stdin(void *unused, char *room, size_t size)
{
    (void)unused;
    cli_flush_stdout();
    return read(STDIN_FILENO, room, size);
}

static int run_batch(const struct cli_command *command)
{
    struct calc_batch_totals totals = {0};
    struct occ_error err = OCC_ERROR_INIT;
    FILE *in = fopencookie(NULL, "r", (cookie_io_functions_t){.read = read_stdin});
    int status =
        in ? calc_batch(in, stdout, stderr, &totals, &err) : occ_fail(&err, OCC_E_NO_MEMORY, "out of memory");
    if (in)
        (void)fclose(in);
    if (status == 0 && totals.bad_rows > 0)
        status = occ_fail(&err, OCC_E_INVALID, "%" PRIu64 " of %" PRIu64 " rows could not be computed",
                          totals.bad_rows, totals.rows);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

/* ---- the command ---- */

static int run(const struct cli_command *command, char **argv)
{
    struct calc_args args = {.sms = NOT_GIVEN,
                             .registers = NOT_GIVEN,
                             .static_smem = NOT_GIVEN,
                             .dynamic_smem = NOT_GIVEN,
                             .max_dynamic_smem = NOT_GIVEN,
                             .barriers = NOT_GIVEN,
                             .active_clusters = NOT_GIVEN};
    struct occ_error err = OCC_ERROR_INIT;
    struct calc_target target;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (check_exclusive(&args, &err) != 0)
        return cli_usage_error(command, &err);
    if (args.batch)
        return run_batch(command);
    if (find_target(&args, &target, &err) != 0)
        return cli_usage_error(command, &err);
    return args.cubin || args.ptxas ? run_file(command, &args, &target)
                                    : run_options(command, &args, &target);
}

#define NUMBER(name, field, help)                                                                            \
    CLI_OPTION(0, name, CLI_NUMBER, struct calc_args, field, "N", help, .max = UINT32_MAX)
#define BYTES(name, field, help)                                                                             \
    CLI_OPTION(0, name, CLI_BYTES, struct calc_args, field, "BYTES", help, .max = UINT32_MAX)
#define ANY(name, kind, field, value, help) CLI_OPTION(0, name, kind, struct calc_args, field, value, help)

static const struct cli_option options[] = {
    ANY("gpu", CLI_TEXT, gpu, "NAME", "the GPU or MIG slice ('occq gpus' lists them): t4, h200, a100-1g.5gb"),
    ANY("cc", CLI_TEXT, cc, "X.Y", "instead of --gpu: a compute capability, with --sms"),
    CLI_OPTION(0, "sms", CLI_NUMBER, struct calc_args, sms, "N",
               "number of SMs (default: all of the GPU's; a green context or a MIG slice has fewer)",
               .min = 1, .max = 65536),
    ANY("threads", CLI_SIZE, threads, "N", "threads per block: 256, 16x16, 8x8x4"),
    NUMBER("regs", registers, "registers per thread"),
    BYTES("smem", static_smem, "static shared memory per block (default 0); 48k is 48 KiB"),
    BYTES("dynamic-smem", dynamic_smem, "dynamic shared memory per block (default 0)"),
    BYTES("max-dynamic-smem", max_dynamic_smem,
          "the kernel's maximum dynamic shared memory, as opted in to (default: whatever the launch needs)"),
    ANY("grid", CLI_SIZE, grid, "N", "blocks in the grid: 250, 10x5x5 (default: waves are not computed)"),
    ANY("cluster", CLI_SIZE, cluster, "N", "blocks in a cluster: 2, 2x2"),
    NUMBER("active-clusters", active_clusters,
           "maximum active clusters on the GPU, as the driver reports them"),
    ANY("carveout", CLI_TEXT, carveout, "PCT|BYTES",
        "shared memory per SM: the preference in percent (50, 50%), or the driver's choice with a unit "
        "(64k)"),
    NUMBER("barriers", barriers, "barriers per block (default: not considered)"),
    ANY("cubin", CLI_TEXT, cubin, "FILE",
        "registers, shared memory and barriers of the kernels in a cubin, fat binary, program or library"),
    ANY("ptxas", CLI_TEXT, ptxas, "FILE",
        "the same from the output of 'nvcc -Xptxas -v'; - is standard input"),
    ANY("kernel", CLI_REGEX, kernel, "REGEX",
        "only kernels of the file whose name, mangled or not, matches this POSIX extended regular "
        "expression"),
    ANY("svg", CLI_TEXT, svg, "FILE", "also write the curves to an SVG file"),
    ANY("json", CLI_FLAG, json, NULL, "print JSON, raw values"),
    ANY("batch", CLI_FLAG, batch, NULL,
        "read launches as CSV from standard input, write CSV with the results"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq calc --gpu t4 --threads 128 --regs 71 --smem 512 --grid 250", "one launch"},
    {"occq calc --gpu h200 --threads 256 --cubin kernel.cubin --kernel gemm", "a kernel of a file"},
    {"nvcc -Xptxas -v k.cu 2>&1 | occq calc --gpu a100 --threads 256 --ptxas -", "while compiling"},
    {"occq calc --batch < configs.csv > results.csv", "many launches"},
    {NULL, NULL},
};

const struct cli_command cli_calc = {
    .program = "occq",
    .name = "calc",
    .operands = "",
    .summary = "the occupancy calculator",
    .description =
        "Computes what a launch configuration allows on a GPU: active blocks and warps per SM, occupancy "
        "limiters, waves, "
        "where the missing occupancy goes, which single changes gain occupancy, and curves over block size, "
        "registers, "
        "shared memory, barriers and cluster size. Nothing is measured and no history is needed.\n\n"
        "With --batch, standard input is CSV with a heading. Columns, in any order: gpu (or cc and sms), "
        "threads, regs, "
        "static_smem, dynamic_smem; optional: grid, carveout (percent), smem_config (bytes), "
        "max_dynamic_smem, barriers, "
        "cluster. A row is a line. The output has the same columns and then blocks_per_sm, warps_per_sm, "
        "theoretical, "
        "limit_warps, limit_blocks, limit_registers, limit_shared_memory, limit_barriers, limiters, waves, "
        "full_waves, "
        "partial_blocks, expected_elapsed, expected_achieved, error. A row that cannot be computed has the "
        "reason in "
        "error, standard error names its line, and the exit status is 1; the other rows are computed.",
    .options = options,
    .examples = examples,
    .run = run,
};
