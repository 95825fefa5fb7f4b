/* occq calc: the occupancy calculator. Its input is options, compiled code, the output of ptxas, or (--batch)
 * rows on standard input; no history is needed. One thread. */
#include "calc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/usage.h"
#include "support/cleanup.h"

/* Checks options that exclude each other: --batch excludes all others; --cubin and --ptxas exclude each other
 * and the options that describe a kernel. */
static int check(void *arguments, struct occ_error *err)
{
    const struct calc_args *args = arguments;
    const char *source = args->batch ? "batch" : args->cubin ? "cubin" : args->ptxas ? "ptxas" : NULL;
    for (const struct cli_option *o = calc_options; source && o->name; o++) {
        bool is_described = strcmp(o->name, "regs") == 0 || strcmp(o->name, "smem") == 0 ||
                            strcmp(o->name, "barriers") == 0 || strcmp(o->name, "ptxas") == 0;
        if ((args->batch || is_described) && strcmp(o->name, source) != 0 && calc_args_given(args, o->name))
            return occ_fail(err, OCC_E_INVALID, "--%s and --%s exclude each other", source, o->name);
    }
    if (args->threads[0] > 0 && args->local_size[0] > 0)
        return occ_fail(err, OCC_E_INVALID,
                        "--threads and --local-size exclude each other: they are the same");
    if (args->grid[0] > 0 && args->global_size[0] > 0)
        return occ_fail(err, OCC_E_INVALID,
                        "--grid and --global-size exclude each other: blocks, and work-items in all blocks");
    if (args->kernel && !source)
        return occ_fail(err, OCC_E_INVALID, "--kernel needs --cubin or --ptxas");
    return 0;
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
    struct calc_kernel kernel;
    struct calc_case c;
    if (calc_args_kernel(args, &kernel, &err) != 0 || calc_args_case(args, target, &kernel, &c, &err) != 0)
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

/* Analyses all kernels and reports kernels that cannot be launched this way. Returns the number of the other
 * kernels. */
static size_t compute_all(const struct cli_command *command, const struct calc_args *args,
                          const struct calc_target *target, const struct calc_kernels *kernels,
                          struct calc_case *cases)
{
    size_t n = 0;
    for (size_t i = 0; i < kernels->n; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        if (calc_args_case(args, target, &kernels->list[i], &cases[n], &err) == 0)
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
    int status = calc_read_kernels(args->cubin ? args->cubin : args->ptxas, !args->cubin, cc, args->kernel,
                                   &kernels, &err);
    if (status != 0) {
        (void)occ_error_prefix(&err, args->cubin ? "--cubin" : "--ptxas");
        int failed = cli_failure(command, &err);
        return status == OCC_E_NOT_FOUND && args->kernel ? CLI_EXIT_NOTHING : failed;
    }
    _cleanup_(occ_freep) struct calc_case *cases = calloc(kernels.n, sizeof *cases);
    if (!cases) {
        (void)occ_no_memory(&err);
        return cli_failure(command, &err);
    }
    note_compiled_for(command, &kernels.list[0], cc);
    size_t n = compute_all(command, args, target, &kernels, cases);
    if (n > 0 && print(args, cases, n, &err) != 0)
        return cli_failure(command, &err);
    return n == kernels.n ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

/* ---- batch ---- */

/* Flushes the output before each read, so that a program can write a row and read its answer. */
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
    int status = in ? calc_batch(in, stdout, stderr, &totals, &err) : occ_no_memory(&err);
    if (in)
        (void)fclose(in);
    if (status == 0 && totals.bad_rows > 0)
        status = occ_fail(&err, OCC_E_INVALID, "%" PRIu64 " of %" PRIu64 " rows could not be computed",
                          totals.bad_rows, totals.rows);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

/* ---- the command ---- */

static int run(const struct cli_command *command, const void *arguments)
{
    const struct calc_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct calc_target target;
    if (args->batch)
        return run_batch(command);
    if (calc_args_target(args, &target, &err) != 0)
        return cli_usage_error(command, &err);
    return args->cubin || args->ptxas ? run_file(command, args, &target)
                                      : run_options(command, args, &target);
}

static const struct cli_form forms[] = {{"list", NULL, NULL, &cli_calc_list}, {.option = NULL}};

const struct cli_command cli_calc = {
    .name = "calc",
    .group = "Without a recording",
    .forms = forms,
    .summary = "the occupancy calculator",
    .description =
        "Computes the limits of a launch configuration on a GPU: active blocks and warps per SM, occupancy "
        "limiters, waves, where the missing occupancy goes, which single changes gain occupancy, and curves "
        "over block size, registers, shared memory, barriers and cluster size. Nothing is measured and no "
        "history is needed.\n\n"
        "OpenCL's terms are accepted: a work-group is a block, a work-item a thread, local memory is shared "
        "memory; --local-size is --threads, and --global-size counts work-items where --grid counts blocks. "
        "Messages and results have CUDA's terms.\n\n"
        "With --batch, standard input is CSV with a heading. Columns, in any order: gpu (or cc and sms), "
        "threads, regs, static_smem, dynamic_smem; optional: grid, carveout (percent), smem_config (bytes), "
        "max_dynamic_smem, barriers, cluster. A row is a line. The output has the same columns and then "
        "blocks_per_sm, warps_per_sm, theoretical, limit_warps, limit_blocks, limit_registers, "
        "limit_shared_memory, limit_barriers, limiters, waves, full_waves, partial_blocks, "
        "expected_elapsed_low, expected_elapsed_high, expected_achieved_low, expected_achieved_high, error. "
        "A row that cannot be computed has the reason in error, standard error names its line, and the exit "
        "status is 1; the other rows are computed.",
    .options = calc_options,
    .examples = {{"occq calc --gpu t4 --threads 128 --regs 71 --smem 512 --grid 250", "one launch"},
                 {"occq calc --gpu t4 --local-size 128 --regs 71 --smem 512 --global-size 32000",
                  "the same launch in OpenCL's terms"},
                 {"occq calc --gpu h200 --threads 256 --cubin kernel.cubin --kernel gemm",
                  "a kernel of a file"},
                 {"nvcc -Xptxas -v k.cu 2>&1 | occq calc --gpu a100 --threads 256 --ptxas -",
                  "while compiling"},
                 {"occq calc --batch < configs.csv > results.csv", "many launches"}},
    CLI_ARGS(struct calc_args, ),
    .check = check,
    .run = run,
};
