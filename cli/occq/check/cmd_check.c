/* occq check: checks a run against rules, for CI. One thread. */
#include <math.h>

#include "check_verdict.h"
#include "cli/usage.h"
#include "judge_print.h"
#include "outcome.h"
#include "cli/sides/sides.h"
#include "support/clock.h"

struct check_args {
    struct cli_args common;
    const char *rules, *baseline, *junit, *gitlab;
    bool github, strict, force, json;
};

/* ---- output ---- */

/* Returns the floor of the first rule about the GPU time, else the default. */
static double floor_of(const struct rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        if (rules->all[i].metric == RULE_METRIC_GPU_TIME && !isnan(rules->all[i].floor))
            return rules->all[i].floor;
    return DIFF_FLOOR;
}

static int print_all(const struct check_args *args, const struct judge_terms *terms,
                     const struct judgement *judgement, const char *title, struct occ_error *err)
{
    double floor = floor_of(terms->rules);
    if (args->json)
        judgement_print_json(cli_out(), judgement, terms->gpu_time, floor);
    else
        judgement_print(cli_out(), judgement);
    if (!args->json)
        check_verdict_print(cli_out(), terms->gpu_time, floor, judgement, title);
    const struct check_reports reports = {args->junit, args->gitlab, args->github};
    return check_write_reports(&reports, judgement, err);
}

/* ---- the command ---- */

/* The rules of a check with --baseline alone. */
static const char built_in_rules[] = "measured:\n"
                                     "  - rule: no slower kernel\n"
                                     "    metric: time\n"
                                     "    floor: 5%\n"
                                     "    min_time: 1%\n"
                                     "  - rule: no more GPU time\n"
                                     "    metric: gpu_time\n"
                                     "    floor: 5%\n"
                                     "    optional: true\n";

static const char *rules_file(const struct check_args *args)
{
    return args->rules ? args->rules : JUDGE_BUILT_IN;
}

static int load_rules(const struct check_args *args, struct rules *ret_rules, struct occ_error *err)
{
    return args->rules
               ? rules_load(args->rules, ret_rules, err)
               : rules_parse(rules_file(args), built_in_rules, sizeof built_in_rules - 1, ret_rules, err);
}

static int judge_sides(const struct cli_command *command, const struct check_args *args,
                       const struct rules *rules, const struct sides *sides)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(judgement_free) struct judgement judgement = {.file = args->rules};
    _cleanup_(sides_gpu_time_free) struct sides_gpu_time gpu_time;
    char note[DIFF_NOTE_BYTES];
    struct judge_terms terms = {.diff = &sides->diff,
                                .rules = rules,
                                .gpu_time = &gpu_time,
                                .one_run = !sides->diff.by_runs,
                                .now_ns = occ_now_ns()};
    if (!args->baseline)
        terms.no_baseline = "there is no --baseline";
    else if (!args->force)
        terms.no_baseline = diff_incomparable(&sides->side[DIFF_A].facts, &sides->side[DIFF_B].facts);
    if (diff_devices_note(&sides->side[DIFF_A].facts, &sides->side[DIFF_B].facts, note)[0])
        cli_note(command, "%s", note);
    if (sides_gpu_time_ask(sides, &gpu_time, &err) != 0 || judge(&terms, &judgement, &err) != 0 ||
        print_all(args, &terms, &judgement, sides->side[DIFF_B].facts.title, &err) != 0)
        return cli_failure(command, &err);
    return check_exit_status(&judgement, args->strict);
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct check_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(sides_free) struct sides sides = {0};
    _cleanup_(rules_free) struct rules rules = {0};
    const char *checked = args->common.operand_count ? args->common.operands[0] : "run:last";
    if (load_rules(args, &rules, &err) != 0)
        return err.code == OCC_E_INVALID ? cli_usage_error(command, &err) : cli_failure(command, &err);
    if (side_parse(&sides.side[DIFF_A], args->baseline, &args->common, &err) != 0 ||
        side_parse(&sides.side[DIFF_B], checked, &args->common, &err) != 0)
        return cli_usage_error(command, &err);
    int status = sides_compare(&sides, &err);
    if (status == 0)
        status = rules_choose_kernels(&rules, rules_file(args), sides.side[DIFF_B].store, &err);
    if (status == OCC_E_NOT_FOUND && sides.side[DIFF_B].store)
        return cli_nothing(command, err.message);
    return status == 0 ? judge_sides(command, args, &rules, &sides) : cli_failure(command, &err);
}

static int check(void *arguments, struct occ_error *err)
{
    const struct check_args *args = arguments;
    if (args->json && args->github)
        return occ_fail(err, OCC_E_INVALID, "--json and --github exclude each other");
    return args->rules || args->baseline
               ? 0
               : occ_fail(err, OCC_E_INVALID, "--rules is missing, or --baseline with the built-in rule");
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION(
        0, "rules", CLI_TEXT, struct check_args, rules, "FILE",
        "the rules (YAML); default with --baseline: no kernel with 1% of the time is slower by more than 5%, "
        "and the GPU time for the same work, idle time included, is not longer by more than 5%"),
    CLI_OPTION(0, "baseline", CLI_TEXT, struct check_args, baseline, "SIDE",
               "the side to compare with, as in occq diff; last:5 leaves out the runs of SIDE"),
    CLI_OPTION(
        0, "strict", CLI_FLAG, struct check_args, strict, NULL,
        "a rule that is undecided, or has kernels that the baseline lacks, is not judged: exit status 3"),
    CLI_OPTION(0, "force", CLI_FLAG, struct check_args, force, NULL,
               "also judge measured rules between sides that are not comparable"),
    CLI_OPTION(0, "github", CLI_FLAG, struct check_args, github, NULL,
               "also print workflow commands, which GitHub shows as annotations"),
    CLI_OPTION(0, "gitlab", CLI_TEXT, struct check_args, gitlab, "FILE",
               "also write GitLab's code quality report; the path of the built-in rule is '" JUDGE_BUILT_IN
               "'"),
    CLI_OPTION(0, "junit", CLI_TEXT, struct check_args, junit, "FILE", "also write JUnit XML"),
    CLI_OPTION(0, "json", CLI_FLAG, struct check_args, json, NULL,
               "print JSON: the rules, gpu_time and findings of the checked side, gpu_time_change"),
    CLI_OPTION_COLOUR,
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_form forms[] = {{"image", NULL, NULL, &cli_check_image}, {.option = NULL}};

const struct cli_command cli_check = {
    .name = "check",
    .forms = forms,
    .group = "Gate",
    .operands = "[SIDE]",
    .max_operands = 1,
    .summary = "check a run against rules (CI gate)",
    .description =
        "Checks SIDE (default run:last; written as A and B of occq diff) against a file of rules.\n\n"
        "config: rules are about values that are equal in every run: registers_per_thread, block_threads, "
        "grid_blocks, cluster_blocks, static_shared_bytes, dynamic_shared_bytes, shared_config_bytes, "
        "local_bytes_per_thread, theoretical, expected_elapsed_low, expected_elapsed_high, waves, "
        "limited_by_registers, limited_by_shared_memory, limited_by_blocks (1 or 0). One launch suffices. A "
        "value is a comparison: '>= 25%', '<= 64', '<= baseline'.\n\n"
        "measured: rules are about metric: time (default), waste, achieved or gpu_time, with the verdicts of "
        "occq diff. A rule about time takes the verdict on each kernel over its launch configurations; where "
        "that is undecided, the verdicts on launch configurations. If no kernel breaks a rule without "
        "kernel:, a family of kernels that is slower does, or all kernels together. gpu_time is the time of "
        "the GPUs for the same work, idle time included: a run whose kernels wait longer breaks the rule. It "
        "takes no kernel: and no min_time:, and is not judged where the GPU time is not known. "
        "Time and waste are per launch, or for the same work if launches do other work each in another "
        "number. The rules need "
        "--baseline, and with fewer than three runs on a side a floor: of their own. "
        "Worse fails; undecided does not, but for --strict.\n\n"
        "Kernels that the baseline lacks are not judged by measured rules and by '<= baseline'. The rule "
        "counts them as new, and with --strict the exit status is 3; a rule that has nothing else is not "
        "judged.\n\n"
        "Every rule has a name (rule:), and may have kernel: (a kernel's name as commands print it, short, "
        "full or mangled; if there is none, a POSIX extended regular expression on the demangled name; if "
        "none "
        "matches, words of a family such as GEMM 64x64), "
        "min_time: (only kernels with that share of the time; of measured rules 1%) and optional: true. A "
        "rule that matches no kernel fails, unless it is optional. allow: lists exceptions: rule:, kernel:, "
        "reason:, and until:, the day from which it counts again.\n\n"
        "An undecided rule lists the three undecided changes that move most time. The GPU time of both sides "
        "for the same work follows, with the part that changed most; if a rule fails, the largest losses of "
        "SIDE, too.\n\n"
        "Exit status 4: a rule fails; 3: nothing to judge.",
    .options = options,
    .examples = {{"occq check --baseline label:old label:new", "whether a kernel became slower"},
                 {"occq check --rules occq-rules.yaml", "the newest run, by values that every run has"},
                 {"occq check --rules r.yaml --baseline label:main,last:5 label:pr",
                  "three or more runs against the last five of main"},
                 {"occq check --rules r.yaml --json", "for a program"}},
    CLI_ARGS(struct check_args, ),
    .check = check,
    .run = run,
};
