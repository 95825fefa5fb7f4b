/* Steps shared by commands; see command.h. One thread. */
#include "command.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gather.h"
#include "screen.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "usage.h"

int cli_output_format(const struct cli_output *output, enum cli_format *ret_format, struct occ_error *err)
{
    if (output->json && output->csv)
        return occ_fail(err, OCC_E_INVALID, "--json and --csv exclude each other");
    *ret_format = output->json ? CLI_FORMAT_JSON : output->csv ? CLI_FORMAT_CSV : CLI_FORMAT_TEXT;
    return 0;
}

int cli_output_choose(const struct cli_output *output, const struct cli_column *table,
                      struct cli_selection *ret_selection, struct occ_error *err)
{
    int status = cli_output_format(output, &ret_selection->format, err);
    if (status != 0)
        return status;
    if (ret_selection->format == CLI_FORMAT_TEXT)
        cli_select(table, CLI_DEFAULT, 0, ret_selection);
    else
        cli_select(table, 0, CLI_TEXT_ONLY, ret_selection);
    if (output->columns)
        status = cli_select_list(table, output->columns, ret_selection, err);
    ret_selection->gather = output->gather;
    return status;
}

int cli_failure(const struct cli_command *command, const struct occ_error *err)
{
    cli_note(command, "%s", err->message);
    return err->code == OCC_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_FAILURE;
}

void cli_note_simulated(const struct cli_command *command, const struct cli_selection *selection)
{
    for (size_t i = 0; selection->format == CLI_FORMAT_TEXT && i < selection->n; i++)
        if (selection->columns[i]->flags & CLI_MARKS)
            return; /* the legend explains it */
    cli_note(command, "some results are from a simulated device");
}

void cli_put_below(const struct cli_selection *selection, const char *line)
{
    _cleanup_(occ_freep) char *text = selection->gather ? NULL : cli_screen_text(line);
    if (selection->gather)
        cli_gather_line(selection->gather, line);
    else if (text)
        cli_print("%s\n", text);
    else
        cli_screen_lose_text();
}

void cli_footer(const struct cli_command *command, const struct cli_selection *selection, const char *format,
                ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (selection->format == CLI_FORMAT_TEXT)
        cli_put_below(selection, line);
    else
        cli_note(command, "%s", line);
}

int cli_close_stdout(const char *program, int status)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    cli_flush_stdout();
    int why = cli_stdout_errno();
    bool failed = ferror(stdout) != 0 || why != 0;
    /* poll() reports an error condition for a pipe without a reader */
    bool gone = failed && (why == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR)));
    errno = 0;
    if (fclose(stdout) != 0 && !failed && errno != EBADF) { /* EBADF: the caller closed it before us */
        failed = true;
        why = errno;
    }
    cli_screen_end();
    if (!failed)
        return status;
    if (!gone)
        (void)fprintf(stderr, "%s: cannot write the output: %s\n", program,
                      why ? strerror(why) : "write error");
    return CLI_EXIT_FAILURE;
}

static bool is_database(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* first bytes of every database, with the NUL */
    char head[sizeof magic] = "";
    struct stat st;
    _cleanup_(occ_fclosep) FILE *file =
        stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    return file && fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof magic) == 0;
}

int cli_check_output(const char *path, struct occ_error *err)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"}; /* suffixes of SQLite's other files */
    _cleanup_(occ_freep) char *target = realpath(path, NULL);
    char *name = target ? target : strdupa(path);
    if (is_database(name))
        return occ_fail(err, OCC_E_INVALID, "%s is a database: nothing is written over it", path);
    for (size_t i = 0, n = strlen(name); i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (n <= end || strcmp(name + n - end, ends[i]) != 0)
            continue;
        name[n - end] = '\0';
        if (is_database(name))
            return occ_fail(err, OCC_E_INVALID, "%s is part of a database: nothing is written over it", path);
    }
    return 0;
}
