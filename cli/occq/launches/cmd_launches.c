/* occq launches: single launches, newest first, from the table `launch`. One thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/marks.h"
#include "cli/history/history.h"
#include "cli/history/names.h"
#include "cli/history/node.h"
#include "cli/history/sql_table.h"
#include "support/cleanup.h"

#define COLUMN(name, key, flags, help)     SQL_COLUMN(name, key, CLI_PLAIN, flags, NULL, help)
#define UNIT(name, key, unit, flags, help) SQL_COLUMN(name, key, unit, flags, NULL, help)
/* "432x1x1"; NULL for 0, an unknown size */
#define SIZE(name, flags, help)                                                                              \
    SQL_COLUMN(name, name, CLI_PLAIN, CLI_LEFT | (flags),                                                    \
               "iif(" name "_x > 0, " name "_x || 'x' || " name "_y || 'x' || " name "_z, NULL)", help)
#define BY_DESIGN "(SELECT by_design FROM launch_config AS c WHERE c.config_id = launch.config_id)"
#define RANGE(column)                                                                                        \
    "(SELECT " column " FROM range AS g WHERE (g.run_id, g.range_id) = (launch.run_id, launch.range_id))"
#define EXPECTED     "occupancy of a balanced grid of that size (model, not measured), over "
#define HIGH_END     "the same if a block's time is proportional to the blocks that it shares its SM with"
#define PERCENT(end) "round(100 * expected_achieved_" end ", 1)"
#define HIGH_PART    ", '-' || " PERCENT("high") ", '')"
#define CI95         "half-width of the 95 % confidence interval of "

static const struct kernel_names *row_names; /* of the rows at hand; the command prints one table */

static struct cli_value get_words(const struct cli_column *column, const void *row)
{
    const struct cli_value name = sql_get_value(column, row);
    bool has_name = row_names && name.type == CLI_STRING;
    return cli_string(has_name ? kernel_names_words_of(row_names, name.string) : NULL);
}

static const struct cli_column columns[] = {
    UNIT("start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT, "when it began on the device"),
    UNIT("end", "end_ns", CLI_TIME, CLI_LEFT, "when it ended"),
    UNIT("duration", "duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_ADDS, "its duration"),
    COLUMN("run", "run_id", CLI_DEFAULT | CLI_SPARE(3), "the run it belongs to"),
    {.name = "kernel",
     .key = "kernel",
     .flags = CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     .get = sql_get_value,
     .sql = "kernel_name(kernel_id)",
     .brief = get_words,
     .help = "its name, see --name"},
    SIZE("grid", CLI_DEFAULT | CLI_SPARE(4), "blocks"),
    SIZE("block", CLI_DEFAULT | CLI_SPARE(5), "threads per block"),
    SIZE("cluster", 0, "blocks per cluster"),
    COLUMN("regs", "registers_per_thread", CLI_DEFAULT | CLI_SPARE(9), "registers per thread"),
    COLUMN("static_shared", "static_shared_bytes", 0, "static shared memory per block, bytes"),
    COLUMN("dynamic_shared", "dynamic_shared_bytes", 0, "dynamic shared memory per block, bytes"),
    UNIT("theor", "theoretical", CLI_RATIO, CLI_DEFAULT | CLI_SPARE(3), "theoretical occupancy"),
    SQL_COLUMN("expected", "expected", CLI_PLAIN, CLI_DEFAULT | CLI_TEXT_ONLY | CLI_SPARE(2),
               PERCENT("low") " || iif(" PERCENT("high") " > " PERCENT("low") HIGH_PART " || '%'",
               "from expect_low to expect_high"),
    UNIT("expect_low", "expected_achieved_low", CLI_RATIO, 0,
         EXPECTED "SM-active cycles, if all waves take equally long"),
    UNIT("expect_high", "expected_achieved_high", CLI_RATIO, 0, HIGH_END),
    UNIT("expect_elapsed_low", "expected_elapsed_low", CLI_RATIO, 0,
         EXPECTED "the elapsed cycles of all SMs, if all waves take equally long; in an only wave, if a "
                  "block's time is proportional to the blocks on its SM"),
    UNIT("expect_elapsed_high", "expected_elapsed_high", CLI_RATIO, 0, "the other end of its range"),
    UNIT("achieved", "achieved", CLI_RATIO, 0,
         "measured: warp-cycles / (SM-active cycles x maximum warps per SM), the launch's own where it was "
         "measured directly, else the mean of its configuration, run and minute; shown by default where "
         "there are any"),
    UNIT("achieved_ci95", "achieved_ci95", CLI_RATIO, 0, CI95 "achieved"),
    UNIT("elapsed", "elapsed", CLI_RATIO, 0,
         "measured: warp-cycles / (elapsed cycles of all SMs x maximum warps per SM)"),
    UNIT("elapsed_ci95", "elapsed_ci95", CLI_RATIO, 0, CI95 "elapsed"),
    COLUMN("source", "measured_source", CLI_LEFT,
           "of achieved and elapsed: direct (samples inside the launch), regression (least squares over many "
           "launches of the configuration), exact (occtrace --exact, the configuration's mean), ncu (Nsight "
           "Compute: the kernel ran alone and was replayed), group (withheld: cannot be told apart from "
           "other kernels), withheld (the mean does not stand for all launches); shown by default where "
           "achieved is"),
    UNIT("measured", "measured_ratio", CLI_RATIO, 0,
         "part of the time of the launches that the values are means of: 1 for a launch's own; shown by "
         "default "
         "where achieved is"),
    UNIT("waste", "waste_warp_seconds", CLI_AMOUNT, CLI_ADDS,
         "wasted warp-seconds: duration x SMs x maximum warps per SM x (1 - elapsed), measured, else "
         "expected_elapsed_low"),
    UNIT("waves", "waves", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE(8), "waves"),
    COLUMN("full_waves", "full_waves", 0, "full waves"),
    COLUMN("partial", "partial_blocks", 0, "blocks in the partial last wave"),
    COLUMN("limiters", "limiters", CLI_DEFAULT | CLI_LEFT | CLI_SPARE(11),
           "occupancy limiters (all that tie)"),
    SQL_COLUMN("cause", "main_cause", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1),
               "nullif(main_cause, '')", "largest static cause of lost occupancy"),
    COLUMN("stream", "stream_id", CLI_DEFAULT | CLI_SPARE(10), "CUDA stream"),
    SQL_COLUMN("range", "range", CLI_PLAIN, CLI_LEFT | CLI_CUTS, RANGE("range"),
               "the ranges that it was launched in, outermost first; shown by default where there are any"),
    SQL_COLUMN("phase", "phase", CLI_PLAIN, CLI_LEFT, RANGE("phase"),
               "backward: launched by autograd, for the operator of that range"),
    COLUMN("context", "context_id", 0, "CUDA context"),
    COLUMN("correlation", "correlation_id", 0, "CUPTI's correlation id"),
    COLUMN("graph_node", "graph_node_id", 0, "node of a CUDA graph"),
    COLUMN("config_id", "config_id", 0, "number of its launch configuration"),
    COLUMN("kernel_id", "kernel_id", 0, "the kernel's number in the history"),
    COLUMN("device_id", "device_id", CLI_DEFAULT | CLI_VARIES,
           "the device's number in the history; shown by default where launches are of several devices"),
    COLUMN("demangled", "kernel_demangled", CLI_LEFT | CLI_CUTS, "full name"),
    COLUMN("mangled", "kernel_mangled", CLI_LEFT | CLI_CUTS, "name in the driver"),
    COLUMN("device", "device", CLI_DEFAULT | CLI_SPARE(12) | CLI_LEFT, "name of the GPU"),
    SQL_FLAG("simulated", "simulated", CLI_LEFT, "whether the device is a simulated one"),
    SQL_COLUMN("by_design", "by_design", CLI_PLAIN, CLI_LEFT, BY_DESIGN,
               "why the occupancy may be low by design: persistent, one_block_shared_memory, cluster"),
    SQL_COLUMN("marks", "marks", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY | CLI_MARKS | CLI_RARE,
               CLI_SQL_LETTERS(BY_DESIGN),
               "letters: s simulated; low by design: c communication; maybe: p persistent, o one block per "
               "SM, k clusters"),
    CLI_COLUMN_END,
};

/* Formats a number as "5 000 000". */
static const char *grouped(uint64_t number, char buffer[32])
{
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number), used = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            buffer[used++] = ' ';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

/* Prints the shown and the total number of launches. The rollups have the total, but not the number of
 * launches below an achieved occupancy. */
static void note_more(const struct cli_command *command, struct occ_store *store, const struct sql_list *list)
{
    char shown[32], all[32];
    _cleanup_(occ_top_free) struct occ_top top = {0};
    uint64_t launches = 0;
    (void)grouped((uint64_t)list->number, shown);
    if (list->filter->below_achieved > 0 ||
        occ_store_top(store, list->filter, OCC_TOP_BY_KERNEL, &top, NULL) != 0) {
        cli_footer(command, list->selection, "the newest %s; -n shows more", shown);
        return;
    }
    for (size_t i = 0; i < top.n; i++)
        launches += top.rows[i].launches;
    cli_footer(command, list->selection, "%s of %s launches, newest first; -n shows more", shown,
               grouped(launches, all));
}

/* True if the history has rows of the table, of the run that the filter names. */
static bool has_rows(struct occ_store *store, const char *table, int64_t run)
{
    char sql[256], of_run[sizeof OCC_FILTER_RUN_LAST + 16] = "1";
    if (run == OCC_RUN_LAST)
        (void)snprintf(of_run, sizeof of_run, "run_id = " OCC_FILTER_RUN_LAST);
    else if (run > 0)
        (void)snprintf(of_run, sizeof of_run, "run_id = %" PRId64, run);
    (void)snprintf(sql, sizeof sql, "SELECT EXISTS(SELECT 1 FROM %s WHERE %s)", table, of_run);
    return sql_number(occ_store_sqlite(store), sql) != 0;
}

/* Shows columns by default if the run, or the history, has measured values or ranges. A merge of all owners
 * needs the same columns for all owners, so its table drops empty columns itself. */
static void mark_known(struct occ_store *store, const struct history_args *args, struct cli_column *table)
{
    static const struct {
        const char *key, *table;
    } known[] = {{"achieved", "stored_measured_minute"},
                 {"measured_source", "stored_measured_minute"},
                 {"measured_ratio", "stored_measured_minute"},
                 {"range", "stored_range"}};
    bool is_merged = args->list.output.gather;
    for (struct cli_column *c = table; c->name; c++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcmp(c->key, known[i].key) == 0 &&
                (is_merged || has_rows(store, known[i].table, args->filter.run)))
                c->flags |= is_merged ? CLI_DEFAULT | CLI_RARE : CLI_DEFAULT;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct history_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(kernel_names_freep) struct kernel_names *names = NULL;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    struct cli_column table[sizeof columns / sizeof *columns];
    struct cli_selection selection;
    struct sql_list list = {.name = "launches",
                            .table = table,
                            .selection = &selection,
                            .from = "launch",
                            .order = "start_ns DESC",
                            .since = SQL_LAUNCH_SINCE,
                            .until = SQL_LAUNCH_UNTIL,
                            .has_launches = true,
                            .below = SQL_LAUNCH_BELOW,
                            .filter = &args->filter,
                            .number = args->number,
                            .nothing = "no launches match these filters",
                            .note_more = note_more};
    memcpy(table, columns, sizeof table);
    if (args->node)
        return node_run(command, args->node);
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0)
        return cli_failure(command, &err);
    mark_known(store, args, table);
    if (kernel_names_load(store, args->name, &names, &err) != 0 ||
        kernel_names_add_function(names, occ_store_sqlite(store), &err) != 0 ||
        kernel_owner_add_function(occ_store_sqlite(store), &err) != 0 ||
        cli_output_choose(&args->list.output, table, &selection, &err) != 0)
        return cli_failure(command, &err);
    row_names = names;
    int status = sql_list(command, store, &list);
    row_names = NULL;
    return status;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION_NODE,
    CLI_OPTION_ALL_USERS,
    CLI_OPTION_LOW_OCCUPANCY("launches"),
    CLI_OPTIONS_FILTER("gpu"),
    CLI_OPTION_NUMBER("at most N launches (default 50)"),
    CLI_OPTION_NAME,
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_launches = {
    .name = "launches",
    .group = "Ask",
    .merges_owners = true,
    .is_paged = true,
    .summary = "single launches, newest first",
    .description = "Lists single launches, newest first. 'occq sql' gives any other order. In a cluster, "
                   "--node asks one node. The warehouse has single launches of jobs in ship.raw_jobs only, "
                   "in its table launch ('occq sql --cluster URL').",
    .options = options,
    .columns = columns,
    .examples = {{"occq launches --since 5m --kernel softmax", "launches of a kernel in the last minutes"},
                 {"occq launches --run 3 -n 1000000 --csv", "the launches of a run, for another tool"}},
    CLI_ARGS(struct history_args, .list.output.merge.keys = {"start_ns"}, .number = 50),
    .check = node_check,
    .run = run,
};
