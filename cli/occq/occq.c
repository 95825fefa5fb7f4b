/* occq: finds the command, runs it, and checks that the output was written. One thread. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "cli/forms.h"
#include "cli/usage.h"
#include "commands.h"
#include "cli/history/cluster.h"
#include "cli/history/node.h"
#include "cli/history/recorded_names.h"
#include "cli/history/settings.h"
#include "support/cleanup.h"
#include "support/log.h"

enum { MAX_COMMANDS = 32 };

/* Finds the command. On a terminal, prints the replacement of an older name. */
static const struct cli_command *find_command(const char *name)
{
    const char *instead = NULL;
    const struct cli_command *command = occq_find_command(name, &instead);
    if (command && instead && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "occq: '%s' is now 'occq %s'\n", name, instead);
    return command;
}

/* Words for questions that commands of other names answer. */
static const struct {
    const char *word, *command;
} habits[] = {{"stats", "top"},     {"summary", "top"},  {"list", "runs"}, {"ls", "runs"},
              {"status", "doctor"}, {"compare", "diff"}, {"query", "sql"}, {"ps", "runs"},
              {"delete", "prune"},  {"log", "history"}};

static int fail_unknown(const char *name)
{
    const char *names[MAX_COMMANDS + 1] = {NULL};
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t n = 0; cli_commands[n] && n < MAX_COMMANDS; n++)
        names[n] = cli_commands[n]->name;
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(name, habits[i].word) == 0) {
            (void)occ_fail(&err, OCC_E_INVALID, "unknown command '%s'; did you mean '%s'?", name,
                           habits[i].command);
            return cli_usage_error(&cli_occq, &err);
        }
    (void)cli_fail_unknown("command", "", name, strlen(name), names, &err);
    return cli_usage_error(&cli_occq, &err);
}

static int print_help(void)
{
    cli_print_help(stdout, &cli_occq, cli_commands);
    return CLI_EXIT_OK;
}

/* Handles "occq help" and "occq help COMMAND [OPTION...]", which are the same as --help. */
static int help(char **argv)
{
    char option[] = "--help";
    const struct cli_command *command = argv[0] ? find_command(argv[0]) : NULL;
    if (!argv[0])
        return print_help();
    if (!command)
        return fail_unknown(argv[0]);
    return cli_run(cli_form_of(command, argv + 1), (char *[]){option, NULL});
}

/* Options that may stand before the command. */
static const struct cli_option early_options[] = {CLI_OPTION_DB, CLI_OPTIONS_CLUSTER, CLI_OPTIONS_SCREEN,
                                                  CLI_OPTION_END};

/* Returns the number of arguments that an option at argv[0] and its value take; 0: not an early option. */
static size_t count_early(char *const *argv)
{
    size_t length = strncmp(argv[0], "--", 2) == 0 ? strcspn(argv[0], "=") : 2;
    if (argv[0][0] != '-' || strlen(argv[0]) < 2)
        return 0;
    const struct cli_option *option = cli_option_of(early_options, argv[0], length);
    bool has_value = argv[0][length] != '\0';
    return !option ? 0 : has_value || !cli_takes_value(option) ? 1 : argv[1] ? 2 : 0;
}

/* Changes "--cluster URL top" to "top --cluster URL". */
static void put_command_first(char **argv)
{
    size_t at = 0;
    for (size_t n = 1; n > 0 && argv[at]; at += n)
        n = count_early(argv + at);
    char *command = argv[at];
    if (at == 0 || !command || command[0] == '-')
        return;
    memmove(&argv[1], &argv[0], at * sizeof *argv);
    argv[0] = command;
}

static int print_version(void)
{
    (void)fputs("occq " OCC_VERSION "\n" OCC_VERSION_DETAILS, stdout);
    return CLI_EXIT_OK;
}

/* Runs the command argv[0] with the user's settings. */
static int run_command(const struct cli_command *command, char **argv)
{
    static struct occq_settings settings;
    struct occ_error err = OCC_ERROR_INIT;
    const struct cli_command *form = cli_form_of(command, argv + 1);
    node_keep_arguments(argv);
    if (settings_load(&settings, &err) != 0)
        return cli_usage_error(&cli_occq, &err);
    _cleanup_(occ_freep) char **all = settings_apply(&settings, form, argv + 1);
    if (!all) {
        (void)occ_no_memory(&err);
        return cli_failure(form, &err);
    }
    return cli_run(form, all);
}

static int run(char **argv)
{
    put_command_first(argv);
    struct cli_args args = {0};
    struct occ_error err = OCC_ERROR_INIT;
    const struct cli_command *command = argv[0] ? find_command(argv[0]) : NULL;
    if (command)
        return run_command(command, argv);
    if (argv[0] && strcmp(argv[0], "--complete") == 0) {
        cli_complete(stdout, &cli_occq, cli_commands, argv + 1, recorded_list);
        return CLI_EXIT_OK;
    }
    if (argv[0] && strcmp(argv[0], "help") == 0)
        return help(argv + 1);
    if (argv[0] && strcmp(argv[0], "version") == 0)
        return print_version();
    if (cli_parse(&cli_occq, argv, &args, &err) != 0)
        return cli_usage_error(&cli_occq, &err);
    if (args.help)
        return print_help();
    if (args.version)
        return print_version();
    if (args.operand_count > 0)
        return fail_unknown(args.operands[0]);
    (void)occ_fail(&err, OCC_E_INVALID, "a command is missing");
    return cli_usage_error(&cli_occq, &err);
}

int main(int argc, char **argv)
{
    occ_log_init("occq");
    (void)setlocale(LC_CTYPE, "");  /* for printable characters only; numbers keep the C format */
    (void)signal(SIGPIPE, SIG_IGN); /* a closed reader becomes a write error */
    return cli_close_stdout("occq", run(argc > 0 ? argv + 1 : argv));
}
