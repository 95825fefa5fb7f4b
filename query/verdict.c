/* See verdict.h. One thread. */
#include "verdict.h"

#include "answer/answer.h"
#include "cli/history/history.h"
#include "cli/history/sql_table.h"
#include "cli/json.h"
#include "cli/screen.h"
#include "support/cleanup.h"

static void print_text(const struct occ_overview *overview)
{
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES];
    size_t n = occ_overview_text(overview, lines);
    for (size_t i = 0; i < n; i++) {
        _cleanup_(occ_freep) char *text = cli_screen_text(lines[i]);
        if (text)
            cli_print("%s\n", text);
        else
            cli_screen_lose_text();
    }
}

static void print_json(const struct occ_overview *overview)
{
    enum { FINDINGS_MAX = 20 }; /* as "occq top" */
    struct occ_json json;
    cli_json_begin(&json, cli_out());
    occ_overview_json(&json, overview, FINDINGS_MAX);
    cli_json_end(&json);
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct history_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(occ_overview_free) struct occ_overview overview = {.launches = 0};
    if (cli_open_history(&args->list.common, OCC_STORE_READ, &store, &err) != 0 ||
        occ_overview_ask(store, &args->filter, &overview, &err) != 0)
        return cli_failure(command, &err);
    cli_note_filter(command, store, &args->filter);
    sql_note_partial(command, store, &args->filter);
    if (overview.launches == 0)
        return sql_no_launches(command, store, &args->filter, "no launches match these filters");
    if (overview.is_simulated)
        cli_note(command, "some results are from a simulated device");
    if (args->list.output.json)
        print_json(&overview);
    else
        print_text(&overview);
    return CLI_EXIT_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION_DB,   CLI_OPTIONS_PERIOD, CLI_OPTIONS_RUN, CLI_OPTION_DEVICE("gpu"),
    CLI_OPTION_JSON, CLI_OPTION_END,
};

const struct cli_command query_verdict = {
    .name = "verdict",
    .options = options,
    CLI_ARGS(struct history_args, ),
    .check = cli_check_history,
    .run = run,
};
