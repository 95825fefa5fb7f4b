/*
 * occq launches: single launches, from the virtual table `launch`. The question is put together from fixed pieces of
 * SQL, all values are bound. One thread.
 */
#include "commands.h"
#include "history.h"
#include "cli/usage.h"

#include <regex.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "occupancy/waterfall.h"
#include "support/cleanup.h"

struct launches_args {
    struct cli_args common;
    struct cli_filter filter;
    struct cli_output output;
    int64_t number;
};

/* ---- columns ---- */

/* X(name, key, unit, flags, get, sql, help); the statement has one result column for each, in this order, then
 * MARKS: whether it was simulated, and the by-design bits. */
#define LAUNCH_COLUMNS(X)                                                                                    \
    X("start", "start_ns", CLI_TIME, CLI_DEFAULT | CLI_LEFT, get_cell, "l.start_ns",                         \
      "when it began on the device")                                                                         \
    X("end", "end_ns", CLI_TIME, CLI_LEFT, get_cell, "l.end_ns", "when it ended")                            \
    X("duration", "duration_ns", CLI_DURATION, CLI_DEFAULT, get_cell, "l.duration_ns", "how long it took")   \
    X("run", "run_id", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE, get_cell, "l.run_id", "the run it belongs to")    \
    X("kernel", "kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, get_cell, "k.short", "short name")   \
    X("grid", "grid", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE | CLI_LEFT, get_cell,                               \
      "s.grid_x || 'x' || s.grid_y || 'x' || s.grid_z", "blocks")                                            \
    X("block", "block", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE | CLI_LEFT, get_cell,                             \
      "s.block_x || 'x' || s.block_y || 'x' || s.block_z", "threads of a block")                             \
    X("cluster", "cluster", CLI_PLAIN, CLI_LEFT, get_cell,                                                   \
      "s.cluster_x || 'x' || s.cluster_y || 'x' || s.cluster_z", "blocks of a cluster")                      \
    X("regs", "registers_per_thread", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE, get_cell,                          \
      "s.registers_per_thread", "registers per thread")                                                      \
    X("static_smem", "static_smem_bytes", CLI_PLAIN, 0, get_cell, "s.static_shared_bytes",                   \
      "static shared memory of a block, bytes")                                                              \
    X("dynamic_smem", "dynamic_smem_bytes", CLI_PLAIN, 0, get_cell, "s.dynamic_shared_bytes",                \
      "dynamic shared memory of a block, bytes")                                                             \
    X("theor", "theoretical", CLI_RATIO, CLI_DEFAULT, get_cell, "s.theoretical", "theoretical occupancy")    \
    X("expect", "expected_achieved", CLI_RATIO, CLI_DEFAULT, get_cell, "s.expected_achieved",                \
      "what a balanced grid of that size would reach, over SM-active cycles (model, not measured)")          \
    X("expect_elapsed", "expected_elapsed", CLI_RATIO, 0, get_cell, "s.expected_elapsed",                    \
      "what a balanced grid of that size would reach, over all SMs' cycles (model, not measured)")           \
    X("achieved", "achieved", CLI_RATIO, 0, get_cell, "l.achieved",                                          \
      "measured warp-cycles / (SM-active cycles x most warps), the launch's own where it was read "          \
      "directly, else its shape's of that run and minute; shown by default where there are any")             \
    X("error", "achieved_error_ratio", CLI_RATIO, 0, get_cell, "l.achieved_ci95",                            \
      "achieved is within +- this with 95 %")                                                                \
    X("elapsed", "elapsed", CLI_RATIO, 0, get_cell, "l.elapsed",                                             \
      "measured warp-cycles / (all SMs' cycles x most warps)")                                               \
    X("elapsed_error", "elapsed_error_ratio", CLI_RATIO, 0, get_cell, "l.elapsed_ci95",                      \
      "elapsed is within +- this with 95 %")                                                                 \
    X("source", "measured_source", CLI_PLAIN, CLI_LEFT, get_cell, "l.measured_source",                       \
      "where achieved and elapsed come from: direct (samples inside the launch), regression (many launches " \
      "of the shape), exact (occtrace --exact; the shape's mean), group (no value: cannot be told "          \
      "apart from others); shown by default as achieved is")                                                 \
    X("waves", "waves", CLI_FACTOR, CLI_DEFAULT | CLI_SPARE, get_cell, "s.waves", "waves")                   \
    X("full_waves", "full_waves", CLI_PLAIN, 0, get_cell, "s.full_waves", "full waves")                      \
    X("partial", "partial_blocks", CLI_PLAIN, 0, get_cell, "s.partial_blocks",                               \
      "blocks in the partial last wave")                                                                     \
    X("limiters", "limiters", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, get_cell, "s.limiters",          \
      "what limits the blocks per SM (all that tie)")                                                        \
    X("cause", "main_cause", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, get_cell, "nullif(s.main_cause, '')",        \
      "largest static cause of lost occupancy")                                                              \
    X("stream", "stream_id", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE, get_cell, "l.stream_id", "CUDA stream")     \
    X("context", "context_id", CLI_PLAIN, 0, get_cell, "l.context_id", "CUDA context")                       \
    X("correlation", "correlation_id", CLI_PLAIN, 0, get_cell, "l.correlation_id", "CUPTI's correlation id") \
    X("graph_node", "graph_node_id", CLI_PLAIN, 0, get_cell, "l.graph_node_id", "node of a CUDA graph")      \
    X("shape_id", "shape_id", CLI_PLAIN, 0, get_cell, "l.config_id", "number of its configuration")          \
    X("kernel_id", "kernel_id", CLI_PLAIN, 0, get_cell, "s.kernel_id", "the kernel's number in the history") \
    X("device_id", "device_id", CLI_PLAIN, 0, get_cell, "s.device_id", "the device's number in the history") \
    X("demangled", "demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, get_cell, "k.demangled", "full name")        \
    X("mangled", "mangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, get_cell, "k.mangled",                           \
      "name as the driver has it")                                                                           \
    X("device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE | CLI_LEFT | CLI_CUTS, get_cell, "d.name",      \
      "device")                                                                                              \
    X("simulated", "simulated", CLI_PLAIN, CLI_LEFT, get_simulated, "NULL",                                  \
      "whether the device was a simulated one")                                                              \
    X("notes", "notes", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, get_notes, "NULL",                \
      "simulated; low by design")

#define COUNT(name, key, unit, flags, get, sql, help) +1
enum { COLUMNS = 0 LAUNCH_COLUMNS(COUNT), SIMULATED = COLUMNS, DESIGN };
#undef COUNT
#define MARKS ", d.simulated, coalesce(s.by_design_bits, 0)"

#define SQL(name, key, unit, flags, get, sql, help) sql,
static const char *const column_sql[] = {LAUNCH_COLUMNS(SQL)};
#undef SQL

static sqlite3_stmt *statement_of(const void *row)
{
    return *(sqlite3_stmt *const *)row;
}

static void get_cell(const struct cli_column *column, const void *row, struct cli_value *value)
{
    sqlite3_stmt *statement = statement_of(row);
    int index = (int)column->index;
    switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
        cli_set_integer(value, sqlite3_column_int64(statement, index));
        break;
    case SQLITE_FLOAT:
        cli_set_real(value, sqlite3_column_double(statement, index));
        break;
    case SQLITE_TEXT:
        cli_set_string(value, (const char *)sqlite3_column_text(statement, index));
        break;
    default:
        break;
    }
}

static void get_simulated(const struct cli_column *column, const void *row, struct cli_value *value)
{
    (void)column;
    cli_set_bool(value, sqlite3_column_int(statement_of(row), SIMULATED) != 0);
}

static void get_notes(const struct cli_column *column, const void *row, struct cli_value *value)
{
    (void)column;
    cli_set_string(value,
                   cli_notes_text(sqlite3_column_int(statement_of(row), SIMULATED) != 0,
                                  (uint32_t)sqlite3_column_int(statement_of(row), DESIGN), value->scratch));
}

#define ROW(name, key, unit, flags, get, sql, help) {name, key, unit, flags, help, get, 0},
static const struct cli_column columns[COLUMNS + 1] = {
    LAUNCH_COLUMNS(ROW){NULL, NULL, CLI_PLAIN, 0, NULL, NULL, 0}};
#undef ROW

/* ---- the question ---- */

/* SQL function occq_matches(text): the filter's expression. */
static void matches(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *text = argc == 1 ? (const char *)sqlite3_value_text(argv[0]) : NULL;
    sqlite3_result_int(context, text && regexec(sqlite3_user_data(context), text, 0, NULL, 0) == 0);
}

static bool is_selected(const struct cli_selection *selection, const struct cli_column *column)
{
    for (size_t i = 0; i < selection->n; i++)
        if (selection->columns[i] == column)
            return true;
    return false;
}

/* Columns nobody looks at are not computed. The caller frees it with sqlite3_free(). */
static char *question(const struct launches_args *args, const struct cli_column *table,
                      const struct cli_selection *selection)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (int i = 0; i < COLUMNS; i++)
        sqlite3_str_appendf(sql, "%s%s", i ? ", " : "SELECT ",
                            is_selected(selection, &table[i]) ? column_sql[i] : "NULL");
    sqlite3_str_appendall(sql, MARKS " FROM launch AS l CROSS JOIN stored_launch_config AS s USING(config_id)"
                                     " CROSS JOIN stored_kernel AS k ON k.kernel_id = s.kernel_id"
                                     " CROSS JOIN stored_device AS d ON d.device_id = s.device_id WHERE 1");
    if (args->filter.since_ns)
        sqlite3_str_appendall(sql, " AND l.start_ns >= :since");
    if (args->filter.since_ns || args->filter.until_ns)
        sqlite3_str_appendall(
            sql, " AND l.run_id NOT IN (SELECT run_id FROM stored_run WHERE time_base = 'unknown')");
    if (args->filter.until_ns)
        sqlite3_str_appendall(sql, " AND l.start_ns < :until");
    if (args->filter.run)
        sqlite3_str_appendall(sql, " AND l.run_id = :run");
    if (args->filter.device)
        sqlite3_str_appendall(sql, " AND l.device_id = :device");
    /* "+": tested row by row, else the table would be scanned once for every element */
    if (args->filter.below_ratio > 0)
        sqlite3_str_appendall(sql, " AND coalesce(l.achieved, l.expected_achieved) < :below");
    if (args->filter.kernel)
        sqlite3_str_appendall(
            sql, " AND +l.kernel_id IN (SELECT kernel_id FROM stored_kernel WHERE occq_matches(demangled))");
    sqlite3_str_appendall(sql, " LIMIT :number");
    return sqlite3_str_finish(sql);
}

static void bind(sqlite3_stmt *statement, const char *name, int64_t value)
{
    int index = sqlite3_bind_parameter_index(statement, name);
    if (index > 0)
        (void)sqlite3_bind_int64(statement, index, value);
}

static void bind_all(sqlite3_stmt *statement, const struct launches_args *args)
{
    int below = sqlite3_bind_parameter_index(statement, ":below");
    bind(statement, ":since", args->filter.since_ns);
    bind(statement, ":until", args->filter.until_ns);
    bind(statement, ":run", args->filter.run);
    bind(statement, ":device", args->filter.device);
    bind(statement, ":number", args->number);
    if (below > 0)
        (void)sqlite3_bind_double(statement, below, args->filter.below_ratio);
}

/* Shown by default where counters said something. */
static bool is_of_measured(const struct cli_column *column)
{
    return strcmp(column->key, "achieved") == 0 || strcmp(column->key, "measured_source") == 0;
}

static bool any_measured(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    bool any = sqlite3_prepare_v2(db, "SELECT EXISTS(SELECT 1 FROM stored_measured_minute)", -1, &statement,
                                  NULL) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) != 0;
    (void)sqlite3_finalize(statement);
    return any;
}

struct answer {
    size_t rows;
    bool simulated;
};

static int print_rows(sqlite3 *db, sqlite3_stmt *statement, const struct cli_selection *selection,
                      struct answer *answer, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(stdout, "launches", selection, &table, err);
    int step = SQLITE_DONE;
    while (status == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW && !ferror(stdout)) {
        status = cli_table_add(table, &statement, err);
        answer->simulated = answer->simulated || sqlite3_column_int(statement, SIMULATED) != 0;
        answer->rows++;
    }
    if (status == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    return status == 0 ? cli_table_finish(table, err) : status;
}

/* The columns as they are numbered in the question. What are the default ones depends on what is known. */
static void make_table(sqlite3 *db, struct cli_column table[COLUMNS + 1])
{
    bool measured = any_measured(db);
    memcpy(table, columns, sizeof columns);
    for (int i = 0; i < COLUMNS; i++) {
        table[i].index = (size_t)i;
        if (measured && is_of_measured(&columns[i]))
            table[i].flags |= CLI_DEFAULT;
    }
}

static int ask_store(struct occ_store *store, const struct launches_args *args, regex_t *regex,
                     struct answer *answer, struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(store);
    sqlite3_stmt *statement = NULL;
    struct cli_column table[COLUMNS + 1];
    struct cli_selection selection;
    make_table(db, table);
    int status = cli_output_choose(&args->output, table, &selection, err);
    if (status != 0)
        return status;
    if (regex)
        (void)sqlite3_create_function(db, "occq_matches", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, regex,
                                      matches, NULL, NULL);
    char *sql = question(args, table, &selection);
    status = sql ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (status == 0 && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        status = occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    sqlite3_free(sql);
    if (status == 0) {
        bind_all(statement, args);
        status = print_rows(db, statement, &selection, answer, err);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

/* ---- the command ---- */

static int ask(const struct cli_command *command, const struct launches_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct answer answer = {0};
    _cleanup_(cli_store_closep) struct occ_store *store = NULL;
    regex_t regex;
    int status = cli_open_history(&args->common, &store, &err);
    if (status == 0 && args->filter.kernel &&
        regcomp(&regex, args->filter.kernel, REG_EXTENDED | REG_NOSUB) != 0)
        status = occ_fail(&err, OCC_E_NO_MEMORY, "the regular expression is too large");
    if (status != 0)
        return cli_failure(command, &err);
    status = ask_store(store, args, args->filter.kernel ? &regex : NULL, &answer, &err);
    if (args->filter.kernel)
        regfree(&regex);
    if (status != 0)
        return cli_failure(command, &err);
    cli_note_unknown_times(command, store, &args->filter);
    if (answer.simulated)
        cli_note_simulated(command);
    return answer.rows ? CLI_EXIT_OK : cli_nothing(command, "no launches fit");
}

static int run(const struct cli_command *command, char **argv)
{
    struct launches_args args = {.number = 50};
    struct cli_selection selection;
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    if (!cli_start(command, argv, &args.common, &status))
        return status;
    if (cli_filter_check(&args.filter, &err) != 0 ||
        cli_output_choose(&args.output, columns, &selection, &err) != 0)
        return cli_usage_error(command, &err);
    return ask(command, &args);
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    {0, "low-occupancy", CLI_PERCENT, offsetof(struct launches_args, filter.below_ratio), "PCT",
     "only launches whose achieved occupancy (measured, else expected) is below PCT percent (default 50)",
     "50", NULL, 0, 0},
    CLI_OPTIONS_PERIOD(struct launches_args),
    CLI_OPTION_RUN(struct launches_args),
    CLI_OPTION_KERNEL(struct launches_args),
    CLI_OPTION_DEVICE(struct launches_args),
    CLI_OPTION('n', "number", CLI_NUMBER, struct launches_args, number, "N",
               "at most N launches (default 50)", .min = 1, .max = INT64_MAX),
    CLI_OPTION_COLUMNS(struct launches_args),
    CLI_OPTION_JSON(struct launches_args),
    CLI_OPTION_CSV(struct launches_args),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

static const struct cli_example examples[] = {
    {"occq launches --since 5m --kernel softmax", "the last minutes' launches of a kernel"},
    {"occq launches --run 3 -n 1000000 --csv", "a run's launches, for another tool"},
    {NULL, NULL},
};

const struct cli_command cli_launches = {
    .program = "occq",
    .name = "launches",
    .operands = "",
    .summary = "single launches",
    .description = "Lists launches one by one, in the order in which they are stored: by run, within a run "
                   "about by time. "
                   "\"occq sql\" gives any other order.",
    .options = options,
    .columns = columns,
    .examples = examples,
    .run = run,
};
