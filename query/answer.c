/* See answer.h. */
#include "answer.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cli/command.h"
#include "cli/fit.h"
#include "cli/history/cluster.h"

/* A text that grows up to a limit. Beyond the limit its stream has a write error. */
struct kept {
    char *text;
    size_t bytes, room, limit;
    bool is_full;
};

static bool grow(struct kept *kept, size_t bytes)
{
    size_t room = kept->room ? kept->room : 4096;
    while (room < bytes)
        room *= 2;
    char *text = room > kept->room ? realloc(kept->text, room) : kept->text;
    if (!text)
        return false;
    kept->text = text;
    kept->room = room;
    return true;
}

static ssize_t keep(void *cookie, const char *bytes, size_t n)
{
    struct kept *kept = cookie;
    kept->is_full |= n > kept->limit - kept->bytes;
    if (kept->is_full || !grow(kept, kept->bytes + n + 1))
        return 0;
    memcpy(kept->text + kept->bytes, bytes, n);
    kept->bytes += n;
    kept->text[kept->bytes] = '\0';
    return (ssize_t)n;
}

/* Closes the stream. Returns OCC_E_FULL or OCC_E_NO_MEMORY if bytes are missing. */
static int close_stream(FILE *stream, const struct kept *kept, struct occ_error *err)
{
    bool failed = ferror(stream) != 0;
    failed |= fclose(stream) != 0;
    if (kept->is_full)
        return occ_fail(err, OCC_E_FULL, "the answer has more than %zu MiB: choose fewer rows",
                        kept->limit >> 20);
    return failed ? occ_no_memory(err) : 0;
}

static FILE *open_stream(struct kept *kept)
{
    const cookie_io_functions_t functions = {.write = keep};
    return fopencookie(kept, "w", functions);
}

/* Runs the command with both streams set. */
static int run_redirected(struct query_options *options, FILE *out, FILE *notes)
{
    locale_t user = uselocale(cli_text_locale());
    cluster_begin();
    cli_redirect(out, notes, options->width);
    int status = cli_run(options->command, options->argv);
    cli_redirect(NULL, NULL, 0);
    (void)uselocale(user);
    return status;
}

int query_run(struct query_options *options, struct query_answer *ret_answer, struct occ_error *err)
{
    enum { NOTES_MAX = 1 << 20 };
    struct kept answer = {.limit = QUERY_DOCUMENT_MAX}, lines = {.limit = NOTES_MAX};
    FILE *out = open_stream(&answer), *notes = open_stream(&lines);
    int exit_status = out && notes ? run_redirected(options, out, notes) : CLI_EXIT_FAILURE;
    int rc = out ? close_stream(out, &answer, err) : occ_no_memory(err);
    int rc_notes = notes ? close_stream(notes, &lines, rc == 0 ? err : NULL) : occ_no_memory(err);
    if (rc == 0)
        rc = rc_notes;
    if (rc != 0) {
        free(answer.text);
        free(lines.text);
        return rc;
    }
    *ret_answer = (struct query_answer){answer.text, lines.text, exit_status};
    return 0;
}

void query_answer_free(struct query_answer *answer)
{
    free(answer->text);
    free(answer->notes);
    *answer = (struct query_answer){.status = 0};
}
