/*
 * occ_gen_docs: writes the man pages (man(7) macros) into a directory, from the tables of options.h. A tool
 * of the build: what it writes is committed, a test compares. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/occq/commands.h"
#include "cli/occtrace/trace_options.h"
#include "cli/usage.h"
#include "cli/values.h"

struct entry {
    const char *left, *right;
};

static const struct entry exit_occq[] = {
    {"0", "done"},
    {"1", "failure: no such history, a damaged one, an output that cannot be written, an error in SQL"},
    {"2", "wrong usage; the message names the option"},
    {"3", "nothing was found"},
    {NULL, NULL},
};

static const struct entry exit_sampler[] = {
    {"0", "done"},
    {"1", "failure: no daemon listens, it does not answer, it refuses, or the output cannot be written"},
    {"2", "wrong usage; the message names the option"},
    {"3", "the daemon samples no GPU; the message says why"},
    {NULL, NULL},
};

static const struct entry exit_doctor[] = {
    {"0", "nothing is wrong; there may be notes"},
    {"1", "there is a problem, or the output cannot be written"},
    {"2", "wrong usage; the message names the option"},
    {NULL, NULL},
};

static const struct entry exit_occtrace[] = {
    {"as the program", "its exit status; if a signal killed it, occtrace dies by the same signal"},
    {"2", "wrong usage of occtrace"},
    {"125", "occtrace itself could not start a process"},
    {"126", "the program was found but could not be executed"},
    {"127", "the program was not found"},
    {NULL, NULL},
};

static const struct entry environment_occq[] = {
    {"XDG_STATE_HOME", "where the history is: $XDG_STATE_HOME/occtrace/history.db, else "
                       "~/.local/state/occtrace/history.db"},
    {"NO_COLOR", "if set and not empty: no colours"},
    {"TZ", "time zone of the times shown"},
    {NULL, NULL},
};

#define SOCKET_TEXT                                                                                          \
    "where a daemon is looked for; default $XDG_RUNTIME_DIR/occtrace/occtraced.sock, then the service's "    \
    "/run/occtrace/occtraced.sock"

static const struct entry environment_sampler[] = {
    {"OCCTRACE_SOCKET", SOCKET_TEXT},
    {"XDG_RUNTIME_DIR", "where the socket of the user's own daemon is; default /tmp/occtrace-UID"},
    {"NO_COLOR", "if set and not empty: no colours"},
    {NULL, NULL},
};

static const struct entry environment_occtrace[] = {
    {"OCCTRACE_SOCKET", SOCKET_TEXT},
    {"OCCTRACE_CUPTI", "the libcupti to use, an absolute path"},
    {"OCCTRACE_DISABLE", "if set, neither empty nor 0: programs run as without occtrace"},
    {"OCCTRACE_LOG", "where the library inside the program logs: stderr, or the absolute path of a file"},
    {"OCCTRACE_BUDGET", "overhead in percent above which less is recorded, 0.0001 to 100 (default 1)"},
    {"OCCTRACE_RING_SLOTS", "launches that the ring between program and daemon holds: a power of two, 256 "
                            "to 4194304 (default 262144)"},
    {"OCCTRACE_BUFFERS, OCCTRACE_BUFFER_BYTES",
     "activity buffers that CUPTI gets at most (default 512), and the largest size of one: a power of two, "
     "16384 to 16777216 (default 131072)"},
    {"XDG_STATE_HOME", "where the history is: $XDG_STATE_HOME/occtrace/history.db, else "
                       "~/.local/state/occtrace/history.db"},
    {"XDG_RUNTIME_DIR", "where the private daemon's socket is made; default /tmp"},
    {NULL, NULL},
};

/* Exit status and environment of a page; a command without a row of its own has its program's. */
static const struct page {
    const char *program, *name;
    const struct entry *exits, *environment;
} pages[] = {
    {"occq", "sampler", exit_sampler, environment_sampler},
    {"occq", "doctor", exit_doctor, environment_sampler},
    {"occq", NULL, exit_occq, environment_occq},
    {"occtrace", NULL, exit_occtrace, environment_occtrace},
};

static const struct page *find_page(const struct cli_command *command)
{
    const struct page *page = pages;
    while (strcmp(page->program, command->program) != 0 ||
           (page->name && (!command->name || strcmp(page->name, command->name) != 0)))
        page++;
    return page;
}

/* ---- man pages ---- */

/* Characters that roff would change. */
static void put_text(FILE *out, const char *text)
{
    static const char from[] = "\\-'~^";
    static const char *const to[] = {"\\e", "\\-", "\\(aq", "\\(ti", "\\(ha"};
    (void)fputs(text[0] == '.' ? "\\&" : "", out);
    for (; *text; text++) {
        const char *found = strchr(from, *text);
        if (found)
            (void)fputs(to[found - from], out);
        else
            (void)fputc(*text, out);
    }
}

static void put_section(FILE *out, const char *title)
{
    (void)fputs(".SH ", out);
    for (; *title; title++)
        (void)fputc(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A' : *title, out);
    (void)fputc('\n', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
    const char *end;
    for (; (end = strstr(text, "\n\n")); text = end + 2) {
        char paragraph[4096];
        (void)snprintf(paragraph, sizeof paragraph, "%.*s", (int)(end - text), text);
        put_text(out, paragraph);
        (void)fputs("\n.PP\n", out);
    }
    put_text(out, text);
    (void)fputc('\n', out);
}

static void put_entry(FILE *out, const char *left, const char *text)
{
    (void)fputs(".TP\n.B ", out);
    put_text(out, left + strspn(left, " "));
    (void)fputc('\n', out);
    put_text(out, text);
    (void)fputc('\n', out);
}

static const struct cli_writer man_writer = {put_section, put_paragraphs, put_entry};

static void put_entries(FILE *out, const char *title, const struct entry *entries)
{
    put_section(out, title);
    for (; entries->left; entries++)
        put_entry(out, entries->left, entries->right);
}

/* "occq-top" */
static const char *page_name(const struct cli_command *command, char buffer[64])
{
    (void)snprintf(buffer, 64, "%s%s%s", command->program, command->name ? "-" : "",
                   command->name ? command->name : "");
    return buffer;
}

static void put_man(FILE *out, const struct cli_command *command, const struct cli_command *const *commands)
{
    char name[64];
    const struct page *page = find_page(command);
    (void)page_name(command, name);
    (void)fputs(".\\\" Written by occ_gen_docs from the option tables in cli/; do not edit.\n.TH ", out);
    put_text(out, name);
    (void)fprintf(out, " 1 \"\" \"occtrace %s\" \"User Commands\"\n.SH NAME\n", OCCTRACE_VERSION);
    put_text(out, name);
    (void)fputs(" \\- ", out);
    put_text(out, command->summary);
    (void)fprintf(out, "\n.SH SYNOPSIS\n.B %s%s%s\n%s[\\fIOPTION\\fR...]\n", command->program,
                  command->name ? " " : "", command->name ? command->name : "",
                  commands ? "\\fICOMMAND\\fR\n" : "");
    if (command->operands[0]) {
        put_text(out, command->stops_at_operand ? "[--] " : "");
        put_text(out, command->operands);
        (void)fputc('\n', out);
    }
    put_section(out, "Description");
    cli_describe(out, &man_writer, command, commands);
    put_entries(out, "Exit status", page->exits);
    put_entries(out, "Environment", page->environment);
    cli_describe_examples(out, &man_writer, command);
    bool is_occq = strcmp(command->program, "occq") == 0;
    (void)fprintf(out, ".SH SEE ALSO\n.BR %s (1),\n.BR occtraced (8)\n",
                  is_occq ? "occtrace (1),\n.BR occq" : "occq");
}

/* ---- files ---- */

static int write_page(const char *directory, const struct cli_command *command,
                      const struct cli_command *const *commands)
{
    char name[64], path[1024];
    if (snprintf(path, sizeof path, "%s/%s.1", directory, page_name(command, name)) >= (int)sizeof path)
        return 1;
    FILE *out = fopen(path, "w");
    if (!out) {
        (void)fprintf(stderr, "occ_gen_docs: %s: %s\n", path, strerror(errno));
        return 1;
    }
    put_man(out, command, commands);
    int failed = ferror(out);
    return (fclose(out) != 0) | (failed != 0);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fputs("Usage: occ_gen_docs DIRECTORY\n", stderr);
        return 2;
    }
    int failed = write_page(argv[1], &cli_occtrace, NULL) | write_page(argv[1], &cli_occq, cli_commands);
    for (const struct cli_command *const *c = cli_commands; *c; c++)
        failed |= write_page(argv[1], *c, NULL);
    return failed;
}
