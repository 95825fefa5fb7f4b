/* A command for all owners' histories; see all_users.h. One thread. */
#include "all_users.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "gather.h"
#include "notes.h"
#include "screen.h"
#include "support/cleanup.h"
#include "support/text.h"

static void release(struct cli_owners *found)
{
    for (size_t i = 0; i < found->n; i++) {
        free(found->list[i].path);
        free(found->list[i].name);
    }
    free(found->list);
}

static int add(struct cli_owners *found, const char *directory, const char *owner, struct occ_error *err)
{
    struct cli_owner *item = &found->list[found->n];
    _cleanup_(occ_freep) char *path = NULL;
    if (occ_format_text(&path, err, "%s/%s/history.db", directory, owner) != 0)
        return err->code;
    if (access(path, F_OK) != 0) {
        found->closed += errno == EACCES;
        return 0;
    }
    item->name = strdup(owner);
    if (!item->name)
        return occ_no_memory(err);
    item->path = occ_take(path);
    found->n++;
    return 0;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Finds the histories, sorted by owner. */
static int find(const char *directory, struct cli_owners *found, struct occ_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(directory, &names, is_shown, alphasort);
    if (n < 0 && errno == ENOMEM)
        return occ_no_memory(err);
    n = n < 0 ? 0 : n;
    found->list = calloc((size_t)n + 1, sizeof *found->list);
    int status = found->list ? 0 : occ_no_memory(err);
    for (int i = 0; i < n; i++) {
        if (status == 0)
            status = add(found, directory, names[i]->d_name, err);
        free(names[i]);
    }
    free((void *)names);
    return status != 0 || found->n > 0
               ? status
               : occ_fail(err, OCC_E_NOT_FOUND, "there is no history that you may read below %s", directory);
}

int cli_join_owners(int result, int status)
{
    bool is_settled = result == CLI_EXIT_FAILURE || result == CLI_EXIT_USAGE;
    return is_settled || status == CLI_EXIT_NOTHING ? result : status;
}

static void print_heading(const char *owner, bool is_first)
{
    _cleanup_(occ_freep) char *text = cli_screen_text(owner);
    if (text)
        (void)printf("%s%s\n", is_first ? "" : "\n", text);
    else
        cli_screen_lose_text();
}

void cli_note_closed(const struct cli_command *command, const struct cli_args *args,
                     const struct cli_owners *owners)
{
    if (owners->closed > 0)
        cli_note(command, "%zu owner%s left out: you may not read what is below %s", owners->closed,
                 owners->closed == 1 ? " is" : "s are", args->all_users);
}

void cli_speak_of(const struct cli_output *output, const char *owner)
{
    cli_notes_of(owner);
    if (output->gather)
        cli_gather_of(output->gather, owner);
}

/* Runs the command for one history. A history that the daemon removed since the listing (the node's quota, or
 * its age) counts as no answer; the failure is already noted. */
static int run_one(const struct cli_command *command, struct cli_args *args, const struct cli_owner *history)
{
    args->db = history->path;
    cli_speak_of(&((struct cli_list_args *)args)->output, history->name);
    int status = command->run(command, args);
    bool is_gone = status == CLI_EXIT_FAILURE && access(history->path, F_OK) != 0 && errno == ENOENT;
    return is_gone ? CLI_EXIT_NOTHING : status;
}

static int run_each(const struct cli_command *command, struct cli_args *args, const struct cli_owners *found)
{
    int result = CLI_EXIT_NOTHING;
    for (size_t i = 0; i < found->n; i++) {
        if (!command->merges_owners)
            print_heading(found->list[i].name, i == 0);
        result = cli_join_owners(result, run_one(command, args, &found->list[i]));
    }
    cli_notes_of(NULL);
    return result;
}

static int run_merged(const struct cli_command *command, struct cli_args *args,
                      const struct cli_owners *found)
{
    struct cli_list_args *list = (struct cli_list_args *)args;
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(cli_gather_freep) struct cli_gather *gather = NULL;
    struct cli_selection below = {0};
    char cut[96];
    if (cli_gather_new(&list->output.merge, &gather, &err) != 0)
        return cli_failure(command, &err);
    list->output.gather = list->selection.gather = gather;
    cli_notes_hold();
    int result = run_each(command, args, found);
    if (command->note_all)
        command->note_all(command, args);
    if (cli_gather_print(gather, stdout, &err) != 0)
        result = cli_failure(command, &err);
    if (cli_output_format(&list->output, &below.format, &err) == 0 &&
        cli_gather_cut_text(gather, cut, sizeof cut))
        cli_footer(command, &below, "%s", cut);
    cli_notes_release(command);
    return result;
}

int cli_check_all_users(const struct cli_command *command, const struct cli_args *args, struct occ_error *err)
{
    const struct cli_output *output = &((const struct cli_list_args *)args)->output;
    if (args->db)
        return occ_fail(err, OCC_E_INVALID, "--all-users and --db exclude each other");
    if (!command->merges_owners && !command->run_all && (output->json || output->csv))
        return occ_fail(err, OCC_E_INVALID,
                        "--all-users: owners' answers do not add up; ask one history with --db for %s",
                        output->json ? "JSON" : "CSV");
    return 0;
}

int cli_run_for_all(const struct cli_command *command, struct cli_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    _cleanup_(release) struct cli_owners found = {0};
    if (find(args->all_users, &found, &err) != 0)
        return cli_failure(command, &err);
    if (command->run_all)
        return command->run_all(command, args, &found);
    int result = (command->merges_owners ? run_merged : run_each)(command, args, &found);
    cli_note_closed(command, args, &found);
    return result;
}
