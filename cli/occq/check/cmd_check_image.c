/* occq check --image: checks a build against its pins, without a GPU. One thread. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/file.h"
#include "cli/input.h"
#include "cli/usage.h"
#include "judge_pins.h"
#include "judge_print.h"
#include "outcome.h"
#include "support/clock.h"

struct image_args {
    struct history_args history;
    const char *image, *pin, *junit, *gitlab;
    bool update, github, strict;
};

/* The lock, the build and the history. */
struct check {
    struct pins lock;
    bool has_lock;
    struct gate_build build;
    struct gate_recorded recorded;
    struct pin_pairs pairs;
    struct occ_arena texts;
};

static void check_free(struct check *check)
{
    pins_free(&check->lock);
    gate_build_free(&check->build);
    gate_recorded_free(&check->recorded);
    free(check->pairs.list);
    occ_arena_free(check->texts.blocks);
}

/* A lock that does not exist is empty. */
static int read_lock(const char *path, struct check *check, struct occ_error *err)
{
    _cleanup_(occ_freep) void *text = NULL;
    size_t n = 0;
    int status = cli_read_input(path, &text, &n, err);
    if (status == OCC_E_NOT_FOUND)
        return 0;
    if (status == 0 && n > PINS_FILE_MAX)
        status = occ_fail(err, OCC_E_FULL, "%s: larger than 256 MiB", path);
    if (status == 0)
        status = pins_parse(path, text, n, &check->lock, err);
    check->has_lock = status == 0;
    return status == 0 ? gate_name_pins(&check->lock, err) : status;
}

/* ---- --update-pins ---- */

static void count_pairs(const struct pin_pairs *pairs, size_t *ret_changed, size_t *ret_new, size_t *ret_gone)
{
    *ret_changed = *ret_new = *ret_gone = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const struct pin_pair *pair = &pairs->list[i];
        *ret_new += !pair->before;
        *ret_gone += !pair->after;
        *ret_changed += pair->before && pair->after && !pin_is_same(pair->before, pair->after);
    }
}

static int write_lock(const char *path, const struct pins *pins, struct occ_error *err)
{
    struct cli_file output;
    if (cli_file_open(path, &output, err) != 0)
        return err->code;
    pins_write(output.out, pins);
    return cli_file_finish(&output, err);
}

/* Statements of the lock stay. Block sizes come from a history only if the user names one: a lock must not
 * depend on the machine that writes it. */
static int update(const struct image_args *args, struct check *check, struct occ_error *err)
{
    const struct pins *build = &check->build.pins;
    struct pins merged = check->lock;
    size_t changed, new, gone;
    int status = 0;
    if (args->history.list.common.db)
        status = gate_take_launches(&check->recorded, build, &merged, err);
    check->lock = merged; /* owns the added pins */
    if (status != 0)
        return status;
    merged.list = build->list;
    merged.n = build->n;
    if (write_lock(args->pin, &merged, err) != 0)
        return err->code;
    count_pairs(&check->pairs, &changed, &new, &gone);
    (void)printf("%s: %zu pins; %zu changed, %zu new, %zu gone\n", args->pin, build->n, changed, new, gone);
    return 0;
}

/* ---- the command ---- */

static void note_expired(const struct cli_command *command, const struct image_args *args,
                         const struct pins *lock, int64_t now_s)
{
    size_t n = 0;
    for (size_t i = 0; i < lock->n_allowances; i++)
        n += lock->allowances[i].until_s <= now_s;
    if (n > 0)
        cli_note(command, "%s: %zu allowance%s ended", args->pin, n, n == 1 ? " has" : "s have");
}

static int judge_build(const struct cli_command *command, const struct image_args *args, struct check *check)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(judgement_free) struct judgement judgement = {.file = args->pin};
    const struct check_reports reports = {args->junit, args->gitlab, args->github};
    const struct pin_terms terms = {&check->lock, &check->build, &check->pairs, &check->recorded,
                                    occ_now_ns() / 1000000000};
    size_t changed = 0;
    if (judge_pins(&terms, &check->texts, &judgement, &changed, &err) != 0)
        return cli_failure(command, &err);
    judgement_print(cli_out(), &judgement);
    if (check_write_reports(&reports, &judgement, &err) != 0)
        return cli_failure(command, &err);
    note_expired(command, args, &check->lock, terms.now_s);
    if (changed > 0 && judgement.count[RULE_FAILS] == 0)
        cli_note(command, "%zu kernel%s from the pins without breaking a rule; --update-pins pins them",
                 changed, changed == 1 ? " differs" : "s differ");
    return check_exit_status(&judgement, args->strict);
}

static int check_build(const struct cli_command *command, const struct image_args *args, struct check *check)
{
    struct occ_error err = OCC_ERROR_INIT;
    int status = gate_read(args->image, &check->build, &err);
    if (status == OCC_E_NOT_FOUND && access(args->image, F_OK) == 0)
        return cli_nothing(command, err.message);
    if (status == 0)
        status = read_lock(args->pin, check, &err);
    if (status == 0)
        status = gate_recorded_read(&args->history, &check->recorded, &err);
    if (status == 0)
        status = pins_match(&check->lock, &check->build.pins, &check->pairs, &err);
    if (status != 0)
        return cli_failure(command, &err);
    gate_note_build(command, args->image, &check->build);
    if (args->update)
        return update(args, check, &err) == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
    if (check->has_lock)
        return judge_build(command, args, check);
    (void)occ_fail(&err, OCC_E_NOT_FOUND, "%s does not exist; --update-pins writes it", args->pin);
    return cli_nothing(command, err.message);
}

static int run(const struct cli_command *command, const void *arguments)
{
    _cleanup_(check_free) struct check check = {.has_lock = false};
    return check_build(command, arguments, &check);
}

static int check(void *arguments, struct occ_error *err)
{
    const struct image_args *args = arguments;
    if (!args->pin)
        return occ_fail(err, OCC_E_INVALID, "--pin is missing");
    return cli_check_history(arguments, err);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "image", CLI_TEXT, struct image_args, image, "FILE",
               "the build: a cubin, fat binary, object, static library, shared library, program, or the "
               "output of ptxas -v; -: standard input"),
    CLI_OPTION(0, "pin", CLI_TEXT, struct image_args, pin, "LOCK", "the file with the pins"),
    CLI_OPTION(0, "update-pins", CLI_FLAG, struct image_args, update, NULL,
               "write the build's resources to LOCK instead of checking them"),
    CLI_OPTION(0, "strict", CLI_FLAG, struct image_args, strict, NULL,
               "a build with new kernels, or without a pinned architecture, is not judged: exit status 3"),
    CLI_OPTION_DB,
    CLI_OPTIONS_PERIOD,
    CLI_OPTION(0, "github", CLI_FLAG, struct image_args, github, NULL,
               "also print workflow commands, which GitHub shows as annotations"),
    CLI_OPTION(0, "gitlab", CLI_TEXT, struct image_args, gitlab, "FILE",
               "also write GitLab's code quality report"),
    CLI_OPTION(0, "junit", CLI_TEXT, struct image_args, junit, "FILE", "also write JUnit XML"),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

const struct cli_command cli_check_image = {
    .name = "check",
    .form = "--image FILE",
    .summary = "check a build against pinned resources of its kernels, without a GPU",
    .description =
        "Compares the resources of each kernel and architecture in a build with the pins in LOCK, a text "
        "file for review. --update-pins writes it.\n\n"
        "Rules: blocks (fewer blocks per SM in a launch), stack (a larger stack frame), spills (more spilled "
        "bytes; only ptxas -v knows them), bounds (launch bounds below a known block size), gone (a pinned "
        "kernel is not in the build). More registers fail only if they cost a block. New kernels have no pin "
        "and are not judged.\n\n"
        "Blocks per SM are compared for the launches of the kernel in the history; without any, for the "
        "launches in LOCK; else for the launch bounds; else for 128, 256, 512 and 1024 threads. With a "
        "history, a finding has the share of the GPU time (of the last 30 days, unless --since or --until "
        "are given), and the predicted time of the kernel with its 80 % interval.\n\n"
        "LOCK has a statement a line, and comments after '#'. 'pin' has a kernel's resources. 'launch KERNEL "
        "256 512+4096' has up to 8 block sizes of a kernel, with dynamic shared memory; --update-pins with "
        "--db writes the recorded ones. 'allow RULE KERNEL until 2027-01-31 REASON' lets a kernel break a "
        "rule before that day (UTC).\n\n"
        "Exit status 4: a rule fails; 3: nothing to judge, such as a missing LOCK or a LOCK for other "
        "architectures.",
    .options = options,
    .examples = {{"occq check --image libfoo.so --pin kernels.lock --update-pins", "pins the present build"},
                 {"occq check --image libfoo.so --pin kernels.lock --github", "checks a build in CI"}},
    CLI_ARGS(struct image_args, .history = {.number = 1}),
    .check = check,
    .run = run,
};
