/* occq mcp: questions of agents by the Model Context Protocol, on standard input and output. One thread. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "server.h"

struct mcp_args {
    struct cli_args common;
    const char *rules;
    int64_t time_limit_ns;
};

/* Takes standard output for messages: whatever else is printed goes to standard error. NULL: failed. */
static FILE *take_stdout(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    FILE *out = fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? fdopen(fd, "w") : NULL;
    if (!out && fd >= 0)
        (void)close(fd);
    return out;
}

static int run(const struct cli_command *command, const void *arguments)
{
    const struct mcp_args *args = arguments;
    struct occ_error err = OCC_ERROR_INIT;
    struct mcp_input input;
    if (mcp_input_open(&input, STDIN_FILENO, &err) != 0)
        return cli_failure(command, &err);
    struct mcp_server server = {.place = {.where = &args->common, .rules_file = args->rules},
                                .input = &input,
                                .time_limit_ns = args->time_limit_ns,
                                .out = take_stdout()};
    bool sent = server.out && mcp_serve(&server);
    mcp_input_free(&input);
    if (server.out)
        sent &= fclose(server.out) == 0;
    if (sent)
        return CLI_EXIT_OK;
    (void)occ_fail(&err, OCC_E_IO, "cannot write to standard output");
    return cli_failure(command, &err);
}

#define MS INT64_C(1000000)

static const struct cli_option options[] = {
    CLI_OPTION_DB,
    CLI_OPTION(0, "rules", CLI_TEXT, struct mcp_args, rules, "FILE",
               "rules (YAML, see occq check) for calls of the tool check without rules"),
    CLI_OPTION(0, "time-limit", CLI_SPAN, struct mcp_args, time_limit_ns, "SPAN",
               "stop a question after this time (default 10s)", .min = 100 * MS, .max = 600000 * MS),
    CLI_OPTION_HELP,
    CLI_OPTION_END,
};

const struct cli_command cli_mcp = {
    .name = "mcp",
    .group = "Agents",
    .summary = "answers for AI agents (Model Context Protocol)",
    .description =
        "Serves the Model Context Protocol on standard input and output, for a client that starts it; "
        "docs/agents/README.md shows how clients are told. The tools are overview, findings, kernel, layer, "
        "diff, what_if, check and sql. Nothing is written: the history is opened for reading, for each "
        "question anew.\n\n"
        "An answer is one JSON document of at most 1500 bytes, up to 32768 with max_bytes. Its members have "
        "the names and units of SQL; an unmeasured value is \"not measured\". Text from recorded programs "
        "stands only in members called quoted_..., without control characters, cut to 96 bytes.\n\n"
        "Revisions 2026-07-28, 2025-11-25 and 2025-06-18 of the protocol are spoken. A question ends when "
        "the client cancels it, or at the time limit.",
    .options = options,
    .examples = {{"occq mcp --db run.db", "the command that a client starts"}},
    CLI_ARGS(struct mcp_args, .time_limit_ns = 10000 * MS),
    .run = run,
};
