/* occq: finds the command, runs it, and checks that the output was written. One thread. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "cli/usage.h"
#include "commands.h"
#include "cli/history/node.h"
#include "support/log.h"

enum { MAX_COMMANDS = 32 };

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int fail_unknown(const char *name)
{
    const char *names[MAX_COMMANDS + 1] = {NULL};
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t n = 0; cli_commands[n] && n < MAX_COMMANDS; n++)
        names[n] = cli_commands[n]->name;
    (void)cli_fail_unknown("command", "", name, strlen(name), names, &err);
    return cli_usage_error(&cli_occq, &err);
}

static int print_help(void)
{
    cli_print_help(stdout, &cli_occq, cli_commands);
    return CLI_EXIT_OK;
}

/* Handles "occq help" and "occq help COMMAND", which are the same as --help. */
static int help(const char *name)
{
    char option[] = "--help";
    const struct cli_command *command = name ? find_command(name) : NULL;
    if (!name)
        return print_help();
    return command ? cli_run(command, (char *[]){option, NULL}) : fail_unknown(name);
}

/* Changes "--cluster URL top" to "top --cluster URL". */
static void put_command_first(char **argv)
{
    static const char *const options[] = {"--cluster", "--db"};
    for (size_t i = 0; i < sizeof options / sizeof *options && argv[0]; i++) {
        size_t n = strlen(options[i]);
        bool has_value = strncmp(argv[0], options[i], n) == 0 && argv[0][n] == '=';
        size_t at = has_value ? 1 : strcmp(argv[0], options[i]) == 0 && argv[1] ? 2 : 0;
        char *command = argv[at];
        if (at > 0 && command && find_command(command)) {
            memmove(&argv[1], &argv[0], at * sizeof *argv);
            argv[0] = command;
            return;
        }
    }
}

static int run(char **argv)
{
    put_command_first(argv);
    struct cli_args args = {0};
    struct occ_error err = OCC_ERROR_INIT;
    const struct cli_command *command = argv[0] ? find_command(argv[0]) : NULL;
    if (command) {
        node_keep_arguments(argv + 1);
        return cli_run(command, argv + 1);
    }
    if (argv[0] && strcmp(argv[0], "--complete") == 0) {
        cli_complete(stdout, &cli_occq, cli_commands, argv + 1);
        return CLI_EXIT_OK;
    }
    if (argv[0] && strcmp(argv[0], "help") == 0)
        return help(argv[1]);
    if (cli_parse(&cli_occq, argv, &args, &err) != 0)
        return cli_usage_error(&cli_occq, &err);
    if (args.help)
        return print_help();
    if (args.version) {
        (void)fputs("occq " OCC_VERSION "\n" OCC_VERSION_DETAILS, stdout);
        return CLI_EXIT_OK;
    }
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
