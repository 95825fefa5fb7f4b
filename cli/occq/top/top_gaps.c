/* occq top --gaps: shows if a run's GPUs wait for the CPU: busy time, gaps between kernels, and advice; see
 * store/gaps.h. One thread. */
#include "top_forms.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/table.h"
#include "cli/history/history.h"
#include "cli/history/node.h"
#include "cli/history/sql_table.h"
#include "store/gaps.h"
#include "support/array.h"
#include "support/text.h"

#define PDL_CC 90 /* programmatic dependent launch: compute capability 9.0 and later (CUDA C++ guide) */

struct gaps_args {
    struct history_args history;
    bool gaps;
    const char *by; /* one of by_words; NULL: not given */
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
    FIELD("run", "run_id", CLI_PLAIN, CLI_DEFAULT | CLI_VARIES, use.run,
          "the run's number; shown by default where rows differ in it"),
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

static bool is_replayed(struct occ_store *store, int64_t run)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT source = 'ncu' FROM run WHERE run_id = %" PRId64, run);
    return sql_number(occ_store_sqlite(store), sql) != 0;
}

/* Notes the reasons that make gaps of a run uncertain. */
static void note_run(const struct cli_command *command, struct occ_store *store,
                     const struct history_args *args, int64_t run)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT sum(launches) FROM stored_loss WHERE run_id = %" PRId64, run);
    int64_t lost = sql_number(occ_store_sqlite(store), sql);
    if (lost > 0)
        cli_note(command,
                 "run %" PRId64 ": %" PRId64 " launches were lost: gaps may be shorter than they seem", run,
                 lost);
    (void)snprintf(sql, sizeof sql, "SELECT lost_causes LIKE '%%unknown' FROM run WHERE run_id = %" PRId64,
                   run);
    if (sql_number(occ_store_sqlite(store), sql) > 0)
        cli_note(command, "the end of run %" PRId64 " is missing ('occq runs' tells why)", run);
    (void)snprintf(sql, sizeof sql, "SELECT evicted_ns FROM stored_run WHERE run_id = %" PRId64, run);
    if (args->filter.since_ns <= 0 && sql_number(occ_store_sqlite(store), sql) > 0)
        cli_note(command,
                 "older launches of run %" PRId64 " are not kept one by one any more; gaps are of the others",
                 run);
}

static void note_missing(const struct cli_command *command, struct occ_store *store,
                         const struct history_args *args, const struct occ_gpu_uses *uses)
{
    char time[32];
    for (size_t i = 0; i < uses->n_gpus; i++) {
        if (uses->gpus[i].unrecorded_ns > 0)
            cli_note(command,
                     "run %" PRId64 ", GPU %" PRId64
                     ": nothing was recorded in %s of the span; the rest counts",
                     uses->gpus[i].run, uses->gpus[i].device,
                     occ_format_duration((int64_t)uses->gpus[i].unrecorded_ns, time, sizeof time));
        if (i == 0 || uses->gpus[i - 1].run != uses->gpus[i].run)
            note_run(command, store, args, uses->gpus[i].run);
    }
}

/* ---- runs ---- */

/* True if the filter chooses runs by their texts. */
static bool has_texts(const struct occ_filter *filter)
{
#define IS_SET(member, before, after) || filter->member
    return false OCC_FILTER_RUN_TEXTS(IS_SET);
}

struct found {
    const struct occ_filter *filter;
    size_t max; /* rows */
    struct occ_gpu_uses uses;
    bool has_replays; /* runs of Nsight Compute, which replays kernels: their gaps are not the program's */
};

static void found_free(struct found *found)
{
    occ_gpu_uses_free(&found->uses);
}

/* Adds the GPUs of a run while there is room. */
static int add_run(struct occ_store *store, int64_t run, struct found *found, struct occ_error *err)
{
    _cleanup_(occ_gpu_uses_free) struct occ_gpu_uses own = {0};
    struct occ_filter filter = *found->filter;
    filter.run = run;
    int status = occ_store_gpu_uses(store, &filter, &own, err);
    bool is_replay = status == 0 && own.n_gpus > 0 && is_replayed(store, run);
    found->has_replays |= is_replay;
    for (size_t i = 0; i < own.n_gpus && found->uses.n_gpus < found->max && status == 0 && !is_replay; i++) {
        struct occ_gpu_uses *uses = &found->uses;
        if (occ_grow((void **)&uses->gpus, &uses->allocated_gpus, uses->n_gpus, UINT32_MAX,
                     sizeof *uses->gpus))
            uses->gpus[uses->n_gpus++] = own.gpus[i];
        else
            status = occ_no_memory(err);
    }
    return status;
}

/* Finds the GPUs of the runs that the filter chooses, the newest run first. */
static int find(struct occ_store *store, struct found *found, struct occ_error *err)
{
    static const char statement[] =
        "SELECT run_id FROM stored_run WHERE " OCC_FILTER_RUNS_IN_TIME " ORDER BY run_id DESC";
    sqlite3 *db = occ_store_sqlite(store);
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_ROW, status = 0;
    if (sqlite3_prepare_v2(db, statement, -1, &stmt, NULL) != SQLITE_OK)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    occ_filter_bind_runs(stmt, found->filter);
    while (status == 0 && found->uses.n_gpus < found->max && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = add_run(store, sqlite3_column_int64(stmt, 0), found, err);
    if (status == 0 && rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    return status;
}

static void put_advice(const struct cli_selection *selection, const struct line *line, bool has_runs)
{
    char text[sizeof line->advice + 64], run[32] = "";
    if (has_runs)
        (void)snprintf(run, sizeof run, "run %" PRId64 ", ", line->use.run);
    (void)snprintf(text, sizeof text, "%sGPU %" PRId64 ": %s", run, line->use.device, line->advice);
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
            put_advice(selection, &lines[i], lines[0].use.run != lines[uses->n_gpus - 1].use.run);
    return status;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct gaps_args *gaps = arguments;
    const struct history_args *args = &gaps->history;
    const struct cli_selection *selection = &args->list.selection;
    bool asks_all = gaps->by && strcmp(gaps->by, "run") == 0;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_filter filter = args->filter;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    size_t shown = (size_t)args->number;
    _cleanup_(found_free) struct found found = {.filter = &filter, .max = shown + 1};
    if (args->node)
        return node_run(command, args->node);
    if (filter.run == 0 && !has_texts(&filter) && !asks_all)
        filter.run = OCC_RUN_LAST;
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0 ||
        find(store, &found, &err) != 0)
        return cli_failure(command, &err);
    if (found.uses.n_gpus == 0 && found.has_replays)
        return cli_nothing(
            command, "Nsight Compute ran the kernels one by one, again and again: no gap is the program's");
    if (found.uses.n_gpus == 0)
        return sql_no_launches(command, store, &filter,
                               "no launches of these runs and times are kept one by one");
    bool has_more = found.uses.n_gpus > shown;
    found.uses.n_gpus = has_more ? shown : found.uses.n_gpus;
    if (print(&found.uses, selection, &err) != 0)
        return cli_failure(command, &err);
    note_missing(command, store, args, &found.uses);
    if (has_more)
        cli_footer(command, selection, "the first %zu rows, newest runs first; -n shows more", shown);
    cli_note_filter(command, store, &filter);
    bool is_simulated = false;
    for (size_t i = 0; i < found.uses.n_gpus; i++)
        is_simulated = is_simulated || found.uses.gpus[i].simulated;
    if (is_simulated)
        cli_note_simulated(command, selection);
    return CLI_EXIT_OK;
}

static const char *const by_words[] = {"gpu", "run", NULL};

static const struct cli_option options[] = {
    CLI_OPTION(0, "gaps", CLI_FLAG, struct gaps_args, gaps, NULL,
               "a row for each run and GPU, with the gaps between kernels"),
    CLI_OPTION(0, "by", CLI_WORD, struct gaps_args, by, "WHAT",
               "gpu (default): the GPUs of the newest run, or of the chosen runs; run: of every run",
               .words = by_words),
    CLI_OPTION_DB,
    CLI_OPTION_NODE,
    CLI_OPTION_ALL_USERS,
    CLI_OPTIONS_PERIOD,
    CLI_OPTIONS_RUN,
    CLI_OPTION_DEVICE("gpu"),
    CLI_OPTION_NUMBER("at most N rows (default 20)"),
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
        "for each GPU. Without --run, --label and the other options that choose runs it is the newest run; "
        "with them, every run that they choose has its rows, the newest first. Kernels of all streams count "
        "together; copies and other processes do not, so a gap is "
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
                 {"occq top --gaps --label main", "every run of a label"},
                 {"occq top --gaps --json", "for a program"}},
    CLI_ARGS(struct gaps_args, .history = {.number = 20}),
    .check = node_check,
    .run = run,
};
