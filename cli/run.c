/* Runs a command: arguments, checks, the answer or the answers of all owners; see command.h. One thread. */
#include <stdlib.h>
#include <string.h>

#include "all_users.h"
#include "command.h"
#include "forms.h"
#include "json.h"
#include "screen.h"
#include "support/cleanup.h"
#include "usage.h"

int cli_run(const struct cli_command *command, char **argv)
{
    command = cli_form_of(command, argv);
    cli_json_set_last(NULL);
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(occ_freep) struct cli_args *args = malloc(command->args_bytes);
    if (!args) {
        (void)occ_no_memory(&err);
        return cli_failure(command, &err);
    }
    memcpy(args, command->defaults, command->args_bytes);
    int status = cli_parse(command, argv, args, &err);
    if (status == 0 && args->help) {
        cli_print_help(cli_out(), command, NULL);
        return CLI_EXIT_OK;
    }
    if (status == 0 && command->columns && !command->checks_columns) {
        struct cli_list_args *list = (struct cli_list_args *)args;
        status = cli_output_choose(&list->output, command->columns, &list->selection, &err);
    }
    if (status == 0 && command->check)
        status = command->check(args, &err);
    if (status == 0 && args->all_users)
        status = cli_check_all_users(command, args, &err);
    if (status == OCC_E_NO_MEMORY)
        return cli_failure(command, &err);
    if (status != 0)
        return cli_usage_error(command, &err);
    cli_screen_begin(args->colour ? args->colour : "auto", command->is_paged && !args->no_pager);
    status = args->all_users ? cli_run_for_all(command, args) : command->run(command, args);
    if (!cli_screen_lost_text())
        return status;
    (void)occ_no_memory(&err);
    return cli_failure(command, &err);
}
