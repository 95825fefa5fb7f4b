/* `occq diff --all-users`: the same two sides in the history of each owner. One thread. */
#include "cli/all_users.h"
#include "cli/notes.h"
#include "cli/usage.h"
#include "diff_forms.h"

int diff_run_owners(const struct cli_command *command, const struct diff_args *args,
                    const struct cli_owners *owners, diff_printer *print)
{
    int result = CLI_EXIT_NOTHING;
    bool is_first = true;
    cli_notes_hold();
    for (size_t i = 0; i < owners->n && result != CLI_EXIT_USAGE; i++) {
        struct diff_args of_owner = *args;
        of_owner.history.list.common.db = owners->list[i].path;
        cli_speak_of(&args->history.list.output, owners->list[i].name);
        int status =
            diff_run_of(command, &of_owner, print, &(struct diff_owner){owners->list[i].name, is_first});
        is_first = is_first && status == CLI_EXIT_NOTHING;
        result = cli_join_owners(result, status);
    }
    cli_notes_release(command);
    if (result == CLI_EXIT_NOTHING && owners->n > 1)
        cli_note(command, "no owner has both sides; 'occq diff %s %s' compares two owners",
                 owners->list[0].path, owners->list[1].path);
    cli_note_closed(command, &args->history.list.common, owners);
    return result;
}
