/*
 * occq calc: the occupancy calculator. What is to be computed comes from options, from compiled code, from what ptxas
 * said, or (--batch) row by row from standard input; no history is needed. One thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc.h"
#include "calc_batch.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "cli/usage.h"

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

static const struct calc_words words = {.threads = "--threads",
                                        .registers = "--regs",
                                        .static_smem = "--smem",
                                        .dynamic_smem = "--dynamic-smem",
                                        .max_dynamic_smem = "--max-dynamic-smem",
                                        .smem_config = "--carveout",
                                        .grid = "--grid",
                                        .cluster = "--cluster",
                                        .barriers = "--barriers",
                                        .carveout = "--carveout"};

size_t calc_advise(const struct calc_case *c, struct occ_advice *advice, size_t max)
{
    size_t n = occ_advise(&c->target->device, &c->launch, &c->result, advice, max), kept = 0;
    for (size_t i = 0; i < n && i < max; i++) {
        enum occ_advice_kind kind = advice[i].kind;
        bool about_grid = kind == OCC_ADVICE_FILL_WAVE || kind == OCC_ADVICE_GRID_DOWN ||
                          kind == OCC_ADVICE_GRID_UP || kind == OCC_ADVICE_GRID_STRIDE;
        if (c->has_grid || !about_grid)
            advice[kept++] = advice[i];
    }
    return kept;
}

/* ---- what is asked ---- */

static int check_exclusive(const struct calc_args *args, struct occ_error *err)
{
    const char *source = args->batch ? "--batch" : args->cubin ? "--cubin" : args->ptxas ? "--ptxas" : NULL;
    const struct {
        const char *option;
        bool given, only_batch_refuses;
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
        if (options[i].given && (args->batch || !options[i].only_batch_refuses))
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
        return occ_fail(err, OCC_E_INVALID, "--sms is missing: --cc does not say how many SMs");
    int status = args->gpu ? calc_target_named(args->gpu, target, err)
                           : calc_target_capability(args->cc, (uint64_t)args->sms, target, err);
    if (status != 0)
        return occ_error_prefix(err, args->gpu ? "--gpu" : "--cc");
    if (args->gpu && args->sms != NOT_GIVEN)
        target->device.sm_count = (uint32_t)args->sms;
    return 0;
}

/* A number up to 100, or with "%": percent. Else bytes. */
static int read_carveout(const char *text, struct occ_launch *launch, struct occ_error *err)
{
    char number[32];
    uint64_t value = 0;
    size_t length = strlen(text);
    bool is_percent = text[length - 1] == '%';
    (void)snprintf(number, sizeof number, "%.*s", (int)(length < sizeof number ? length - is_percent : 31),
                   text);
    int status = is_percent ? occ_parse_u64(number, 0, 100, &value, err)
                            : occ_parse_bytes(text, UINT32_MAX, &value, err);
    if (status != 0)
        return occ_error_prefix(err, "--carveout");
    if (value <= 100)
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
        return occ_fail(err, OCC_E_INVALID, "the file does not say how many registers it needs");
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
        status = calc_check(&target->device, &c->launch, &words, err);
    if (status == 0) {
        enum occ_status model = analyse(c);
        status = model == OCC_OK ? 0 : calc_refuse(model, &target->device, &c->launch, &words, err);
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

static void say_compiled_for(const struct cli_command *command, const struct calc_kernels *kernels,
                             uint32_t cc)
{
    const struct calc_kernel *kernel = &kernels->list[0];
    const char suffix[] = {kernel->suffix, '\0'};
    if (kernel->runs)
        return;
    (void)fprintf(
        stderr,
        "%s %s: nothing in it was compiled for compute capability %u.%u; these are the values for sm_%u%s\n",
        command->program, command->name, cc / 10, cc % 10, kernel->sm, suffix);
}

/* A kernel that cannot be launched so is said, the others are shown. */
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
    say_compiled_for(command, &kernels, cc);
    size_t n = compute_all(command, args, target, &kernels, cases);
    if (n > 0 && print(args, cases, n, &err) != 0)
        return cli_failure(command, &err);
    return n == kernels.n ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

/* ---- batch ---- */

static ssize_t read_stdin(void *from, char *room, size_t size)
{
    (void)from;
    return read(STDIN_FILENO, room, size);
}

static int run_batch(const struct cli_command *command)
{
    struct calc_batch_totals totals = {0};
    struct occ_error err = OCC_ERROR_INIT;
    if (calc_batch(read_stdin, NULL, stdout, stderr, &totals, &err) != 0)
        return cli_failure(command, &err);
    if (totals.bad_rows == 0)
        return CLI_EXIT_OK;
    (void)occ_fail(&err, OCC_E_INVALID, "%" PRIu64 " of %" PRIu64 " rows could not be computed",
                   totals.bad_rows, totals.rows);
    return cli_failure(command, &err);
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

#define NUMBER(name, field, value, help, max)                                                                \
    {                                                                                                        \
        0, name, CLI_NUMBER, offsetof(struct calc_args, field), value, help, NULL, NULL, 0, max              \
    }
#define BYTES(name, field, help)                                                                             \
    {                                                                                                        \
        0, name, CLI_BYTES, offsetof(struct calc_args, field), "BYTES", help, NULL, NULL, 0, UINT32_MAX      \
    }
#define ANY(name, kind, field, value, help)                                                                  \
    {                                                                                                        \
        0, name, kind, offsetof(struct calc_args, field), value, help, NULL, NULL, 0, 0                      \
    }

static const struct cli_option options[] = {
    ANY("gpu", CLI_TEXT, gpu, "NAME", "the GPU or MIG slice ('occq gpus' lists them): t4, h200, a100-1g.5gb"),
    ANY("cc", CLI_TEXT, cc, "X.Y", "instead of --gpu: a compute capability, with --sms"),
    {0, "sms", CLI_NUMBER, offsetof(struct calc_args, sms), "N",
     "how many SMs there are (default: all of the GPU's; a green context or a MIG slice has fewer)", NULL,
     NULL, 1, 65536},
    ANY("threads", CLI_SIZE, threads, "N", "threads per block: 256, 16x16, 8x8x4"),
    NUMBER("regs", registers, "N", "registers per thread", UINT32_MAX),
    BYTES("smem", static_smem, "static shared memory per block (default 0); 48k is 48 KiB"),
    BYTES("dynamic-smem", dynamic_smem, "dynamic shared memory per block (default 0)"),
    BYTES("max-dynamic-smem", max_dynamic_smem,
          "what the kernel has opted in to (default: whatever the launch needs)"),
    ANY("grid", CLI_SIZE, grid, "N",
        "blocks in the grid: 250, 10x5x5 (default: nothing is said about waves)"),
    ANY("cluster", CLI_SIZE, cluster, "N", "blocks in a cluster: 2, 2x2"),
    NUMBER("active-clusters", active_clusters, "N", "most clusters at a time on the GPU, as the driver says",
           UINT32_MAX),
    ANY("carveout", CLI_TEXT, carveout, "PCT|BYTES",
        "shared memory per SM: the preference in percent (50, 50%), or what the driver configured (64k)"),
    NUMBER("barriers", barriers, "N", "barriers per block (default: not considered)", UINT32_MAX),
    ANY("cubin", CLI_TEXT, cubin, "FILE",
        "registers, shared memory and barriers of the kernels in a cubin, fat binary, program or library"),
    ANY("ptxas", CLI_TEXT, ptxas, "FILE",
        "the same from what 'nvcc -Xptxas -v' printed; - is standard input"),
    ANY("kernel", CLI_REGEX, kernel, "REGEX",
        "only kernels of the file whose name, mangled or not, matches this POSIX extended regular "
        "expression"),
    ANY("svg", CLI_TEXT, svg, "FILE", "write the curves to an SVG file too"),
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
        "Computes what a launch's configuration allows on a GPU: the blocks and warps that an SM holds, what "
        "limits "
        "them, waves, where the missing occupancy goes, which single changes gain something, and how "
        "occupancy runs "
        "over block size, registers, shared memory, barriers and cluster size. Nothing is measured and no "
        "history is "
        "needed.\n\n"
        "With --batch, standard input is CSV with a heading. Columns, in any order: gpu (or cc and sms), "
        "threads, "
        "regs, static_smem, dynamic_smem; and if wanted grid, carveout (percent), smem_config (bytes), "
        "max_dynamic_smem, barriers, cluster. A row is a line. The output has the same columns and then "
        "blocks_per_sm, warps_per_sm, theoretical, limit_warps, limit_blocks, limit_regs, limit_smem, "
        "limit_barriers, limiters, waves, full_waves, partial_blocks, expected_elapsed, expected_achieved, "
        "error. "
        "A row that cannot be computed has its reason in error, its line's number goes to standard error, "
        "and the "
        "exit status is 1; the other rows are computed.",
    .options = options,
    .examples = examples,
    .run = run,
};
