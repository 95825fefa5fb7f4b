/* Prints lines on stderr; see command.h and notes.h. One thread. */
#include "notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "stream.h"
#include "usage.h"
#include "support/cleanup.h"
#include "support/text.h"

static struct {
    const char *owner;
    bool holds;
    FILE *out; /* the kept lines; NULL: no memory, lines are printed at once */
    char *text;
    size_t size;
    char nothing[OCC_ERROR_MESSAGE_BYTES]; /* the first reason for an empty answer */
    size_t nothings;                       /* number of owners with that reason */
} notes;

void cli_notes_of(const char *owner)
{
    notes.owner = owner;
}

void cli_notes_hold(void)
{
    notes.holds = true;
    notes.nothings = 0;
    notes.out = open_memstream(&notes.text, &notes.size);
}

void cli_notes_release(const struct cli_command *command)
{
    _cleanup_(occ_freep) char *text = NULL;
    notes.owner = NULL;
    notes.holds = false;
    if (notes.out && fclose(notes.out) == 0)
        text = notes.text;
    notes.out = NULL;
    notes.text = NULL;
    if (notes.nothings > 0)
        cli_note(command, "%zu owner%s: %s", notes.nothings, notes.nothings == 1 ? "" : "s", notes.nothing);
    cli_flush_stdout();
    if (text)
        (void)fputs(text, cli_err());
}

void cli_note(const struct cli_command *command, const char *format, ...)
{
    char line[OCC_ERROR_MESSAGE_BYTES + 64], owner[OCC_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    occ_text_sanitise(line);
    (void)snprintf(owner, sizeof owner, "%s%s", notes.owner ? notes.owner : "", notes.owner ? ": " : "");
    occ_text_sanitise(owner);
    if (!notes.out)
        cli_flush_stdout();
    (void)fprintf(notes.out ? notes.out : cli_err(), "%s%s%s: %s%s\n", cli_program(command),
                  command->name ? " " : "", command->name ? command->name : "", owner, line);
}

int cli_nothing(const struct cli_command *command, const char *why)
{
    bool is_first = notes.holds && notes.nothings == 0;
    if (is_first)
        (void)snprintf(notes.nothing, sizeof notes.nothing, "%s", why);
    if (notes.holds && strcmp(notes.nothing, why) == 0)
        notes.nothings++;
    else
        cli_note(command, "%s", why);
    return CLI_EXIT_NOTHING;
}
