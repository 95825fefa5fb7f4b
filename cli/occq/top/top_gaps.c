/* occq top --gaps: shows if a run's GPUs wait for the CPU: busy time, gaps between kernels, and advice; see
 * store/gaps.h. One thread. */
#include "top_forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/screen.h"
#include "cli/table.h"
#include "cli/history/history.h"
#include "cli/history/node.h"
#include "cli/history/sql_table.h"
#include "store/gaps.h"
#include "support/text.h"

#define PDL_CC 90 /* programmatic dependent launch: compute capability 9.0 and later (CUDA C++ guide) */

struct gaps_args {
    struct history_args history;
    bool gaps;
};

struct line {
    struct occ_gpu_use use;
    int64_t span_ns;
    double busy, launch, small_alone, queued, longer; /* ratios */
    double p50_ns, p95_ns, max_ns;                    /* NaN: no gaps */
    bool launch_bound;
    char advice[512];
};

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct line, member, help)
#define OF_STRETCHES " / busy stretches (busy time + gaps of at most 100 us)"

static const struct cli_column columns[] = {
    FIELD("gpu", "device_id", CLI_PLAIN, CLI_DEFAULT, use.device, "the device's number in the history"),
    FIELD("device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE(4), use.device_name,
          "name of the GPU"),
    FIELD("launches", "launches", CLI_PLAIN, CLI_DEFAULT | CLI_ADDS | CLI_SPARE(6), use.launches,
          "number of launches that are kept one by one"),
    FIELD("span", "span_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(5), span_ns,
          "from the first start to the last end"),
    FIELD("busy_time", "busy_ns", CLI_DURATION, 0, use.busy_ns, "in which a kernel of the run ran"),
    FIELD("busy", "busy_ratio", CLI_RATIO, CLI_DEFAULT, busy, "busy_time / (span - unrecorded)"),
    FIELD("gaps", "gaps", CLI_PLAIN, CLI_DEFAULT | CLI_ADDS | CLI_SPARE(3), use.gaps,
          "number of times in which no kernel of the run ran; copies are not kernels"),
    FIELD("gap_p50", "gap_p50_ns", CLI_DURATION, CLI_DEFAULT, p50_ns,
          "half of the gaps are shorter; from a histogram, at most 12.5 % off"),
    FIELD("gap_p95", "gap_p95_ns", CLI_DURATION, CLI_DEFAULT, p95_ns, "95 % of the gaps are shorter"),
    FIELD("gap_max", "gap_max_ns", CLI_DURATION, CLI_DEFAULT | CLI_SPARE(2), max_ns, "the largest gap"),
    FIELD("launch_gaps", "launch_gap_ratio", CLI_RATIO, CLI_DEFAULT | CLI_HEAT, launch,
          "gaps above 5 us and up to 100 us before launches outside of CUDA graphs" OF_STRETCHES),
    FIELD("launch_gap_time", "launch_gap_ns", CLI_DURATION, 0, use.launch_ns,
          "total duration of the launch gaps"),
    FIELD("launch_bound", "launch_bound", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, launch_bound,
          "whether the GPU waits for the CPU: launch_gaps is 10 % or more"),
    FIELD("queued_gaps", "queued_gap_ratio", CLI_RATIO, 0, queued,
          "gaps of at most 5 us, which the hardware needs between two kernels" OF_STRETCHES),
    FIELD("long_gaps", "long_gap_ratio", CLI_RATIO, 0, longer,
          "gaps above 100 us, which count neither for launches nor for the hardware / (span - unrecorded)"),
    FIELD("small_alone", "small_alone_ratio", CLI_RATIO, 0, small_alone,
          "time in which one kernel of less than one wave ran and no other / busy time"),
    FIELD("unrecorded", "unrecorded_ns", CLI_DURATION, 0, use.unrecorded_ns,
          "part of the span between kernels in which nothing was recorded; it is no gap"),
    FIELD("advice", "advice", CLI_PLAIN, CLI_LEFT | CLI_CUTS, advice, "advice from the gaps"),
    CLI_COLUMN_END,
};

/* Adds advice; saves_ns 0: unknown. */
static void add_advice(struct line *line, const char *what, double ratio, const char *of, uint64_t saves_ns)
{
    char percent[16], saves[32];
    occ_text_append(line->advice, sizeof line->advice, "; ", "%s %s of %s%s%s", what,
                    cli_percent_text(ratio, percent, sizeof percent), of, saves_ns ? ", saves 0 to " : "",
                    saves_ns ? occ_format_duration((int64_t)saves_ns, saves, sizeof saves) : "");
}

static void advise(struct line *line)
{
    const struct occ_gpu_use *use = &line->use;
    if (line->launch_bound)
        add_advice(line, "CUDA graphs: the GPU waits for launches in", line->launch, "its busy stretches",
                   use->launch_ns);
    if (line->queued >= OCC_GAP_ADVICE_RATIO)
        add_advice(line,
                   use->cc >= PDL_CC ? "programmatic dependent launch, or fewer and larger kernels: gaps of "
                                       "at most 5 us between kernels are"
                                     : "fewer and larger kernels: gaps of at most 5 us between kernels are",
                   line->queued, "the busy stretches", use->queued_ns);
    if (line->small_alone >= OCC_GAP_ADVICE_RATIO)
        add_advice(line, "streams: kernels of less than one wave leave room for others but run alone in",
                   line->small_alone, "the busy time", 0);
    if (line->longer >= OCC_GAP_ADVICE_RATIO)
        add_advice(line,
                   "look for synchronisation, copies and waits for data: gaps above 100 us, which are not "
                   "counted as waiting for launches, are",
                   line->longer, line->use.unrecorded_ns ? "the recorded time" : "the span", 0);
}

static struct line line_of(const struct occ_gpu_use *use)
{
    struct line line = {.use = *use, .span_ns = use->last_ns - use->first_ns};
    double busy = (double)use->busy_ns, stretches = busy + (double)use->short_ns;
    double recorded = (double)occ_gpu_recorded_ns(use);
    line.busy = busy / recorded;
    line.launch = occ_gpu_launch_ratio(use);
    line.launch_bound = occ_gpu_is_launch_bound(use);
    line.small_alone = (double)use->small_alone_ns / busy;
    line.queued = (double)use->queued_ns / stretches;
    line.longer = (double)use->long_ns / recorded;
    line.p50_ns = use->gaps ? (double)use->p50_ns : (double)NAN;
    line.p95_ns = use->gaps ? (double)use->p95_ns : (double)NAN;
    line.max_ns = use->gaps ? (double)use->max_ns : (double)NAN;
    advise(&line);
    return line;
}

/* Notes the reasons that make gaps uncertain. */
static void note_missing(const struct cli_command *command, struct occ_store *store,
                         const struct history_args *args, const struct occ_gpu_uses *uses)
{
    int64_t run = uses->gpus[0].run;
    char sql[96], time[32];
    (void)snprintf(sql, sizeof sql, "SELECT sum(launches) FROM stored_loss WHERE run_id = %" PRId64, run);
    int64_t lost = sql_number(occ_store_sqlite(store), sql);
    for (size_t i = 0; i < uses->n_gpus; i++)
        if (uses->gpus[i].unrecorded_ns > 0)
            cli_note(command, "GPU %" PRId64 ": nothing was recorded in %s of the span; the rest counts",
                     uses->gpus[i].device,
                     occ_format_duration((int64_t)uses->gpus[i].unrecorded_ns, time, sizeof time));
    if (lost > 0)
        cli_note(command, "%" PRId64 " launches were lost: gaps may be shorter than they seem", lost);
    (void)snprintf(sql, sizeof sql, "SELECT lost_causes LIKE '%%unknown' FROM run WHERE run_id = %" PRId64,
                   run);
    if (sql_number(occ_store_sqlite(store), sql) > 0)
        cli_note(command, "the end of the run is missing ('occq runs' tells why)");
    (void)snprintf(sql, sizeof sql, "SELECT evicted_ns FROM stored_run WHERE run_id = %" PRId64, run);
    if (args->filter.since_ns <= 0 && sql_number(occ_store_sqlite(store), sql) > 0)
        cli_note(command,
                 "the run's older launches are not kept one by one any more; gaps are of the others");
}

static bool is_replayed(struct occ_store *store, int64_t run)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT source = 'ncu' FROM run WHERE run_id = %" PRId64, run);
    return sql_number(occ_store_sqlite(store), sql) != 0;
}

static void put_advice(const struct cli_selection *selection, const struct line *line)
{
    char text[sizeof line->advice + 32];
    (void)snprintf(text, sizeof text, "GPU %" PRId64 ": %s", line->use.device, line->advice);
    cli_put_below(selection, text);
}

static int print(const struct occ_gpu_uses *uses, const struct cli_selection *selection,
                 struct occ_error *err)
{
    _cleanup_(occ_freep) struct line *lines = calloc(uses->n_gpus + 1, sizeof *lines);
    if (!lines)
        return occ_no_memory(err);
    for (size_t i = 0; i < uses->n_gpus; i++)
        lines[i] = line_of(&uses->gpus[i]);
    int status = cli_table_print("gpus", selection, lines, uses->n_gpus, sizeof *lines, err);
    for (size_t i = 0; i < uses->n_gpus && status == 0 && selection->format == CLI_FORMAT_TEXT; i++)
        if (lines[i].advice[0])
            put_advice(selection, &lines[i]);
    return status;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct history_args *args = arguments;
    const struct cli_selection *selection = &args->list.selection;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(occ_gpu_uses_free) struct occ_gpu_uses uses = {0};
    if (args->node)
        return node_run(command, args->node);
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0 ||
        occ_store_gpu_uses(store, &args->filter, &uses, &err) != 0)
        return cli_failure(command, &err);
    if (uses.n_gpus == 0)
        return sql_no_launches(command, store, &args->filter,
                               "no launches of that run and time are kept one by one");
    if (is_replayed(store, uses.gpus[0].run))
        return cli_nothing(
            command, "Nsight Compute ran the kernels one by one, again and again: no gap is the program's");
    if (print(&uses, selection, &err) != 0)
        return cli_failure(command, &err);
    note_missing(command, store, args, &uses);
    cli_note_filter(command, store, &args->filter);
    if (uses.gpus[0].simulated)
        cli_note_simulated(command, selection);
    return CLI_EXIT_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "gaps", CLI_FLAG, struct gaps_args, gaps, NULL,
               "a row for each GPU, with the gaps between kernels"),
    CLI_OPTION_DB,
    CLI_OPTION_NODE,
    CLI_OPTION_ALL_USERS,
    CLI_OPTIONS_PERIOD,
    CLI_OPTION(0, "run", CLI_NUMBER, struct history_args, filter.run, "ID",
               "this run ('occq runs' lists them); last (default): the newest run with launches", .min = 1,
               .max = INT64_MAX, .words = cli_run_words),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_top_gaps = {
    .name = "top",
    .form = "--gaps",
    .merges_owners = true,
    .is_paged = true,
    .summary = "whether a run's GPUs wait for the CPU",
    .description =
        "Lists the GPUs of a run with the time in which its kernels ran, and the gaps between them: a row "
        "for each GPU. Kernels of all streams count together; copies and other processes do not, so a gap is "
        "time without a kernel of this run.\n\n"
        "Gaps of 5 to 100 us before a launch are attributed to the CPU: the launch came too late. Where such "
        "gaps are 10 % of the busy stretches or more, the run is launch-bound, and CUDA graphs, larger "
        "kernels or fewer kernels help. Gaps of up to 5 us come from the hardware. Longer gaps have other "
        "causes: synchronisation, copies, data that are not ready.\n\n"
        "The predicted saving is a range: from 0, since the kernels may wait for another reason, to the sum "
        "of the launch gaps. The command reads every launch that is still stored individually.",
    .options = options,
    .columns = columns,
    .examples = {{"occq top --gaps", "whether the GPUs of the newest run wait for the CPU"},
                 {"occq top --gaps --run 3 -o +small_alone,queued_gaps",
                  "another run, with the room for streams"},
                 {"occq top --gaps --json", "for a program"}},
    CLI_ARGS(struct gaps_args, .history = {.filter = {.run = OCC_RUN_LAST}}),
    .check = node_check,
    .run = run,
};
