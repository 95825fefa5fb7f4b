/*
 * occ_gen_docs: writes the man pages (man(7) macros) or the bash completion into a directory, from the tables
 * of options.h. A tool of the build: what it writes is committed, a test compares. One thread.
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

/* ---- bash completion ---- */

static void put_option_words(FILE *out, const struct cli_option *options)
{
    for (const struct cli_option *o = options; o->name; o++) {
        if (o->letter)
            (void)fprintf(out, "-%c ", o->letter);
        (void)fprintf(out, "--%s%s", o->name, o[1].name ? " " : "");
    }
}

/* "--by) ...": the words of an option, whose names have one meaning in all commands. */
static void put_choices(FILE *out, const struct cli_option *options)
{
    for (const struct cli_option *o = options; o->name; o++) {
        if (!o->words)
            continue;
        (void)fprintf(out, "        --%s) COMPREPLY=($(compgen -W '", o->name);
        for (const char *const *word = o->words; *word; word++)
            (void)fprintf(out, "%s%s", word == o->words ? "" : " ", *word);
        (void)fputs("' -- \"$word\")); return ;;\n", out);
    }
}

static void put_bash_occq(FILE *out, const struct cli_command *program,
                          const struct cli_command *const *commands)
{
    (void)fputs("# bash completion for occq. Written by occ_gen_docs from the option tables; do not "
                "edit.\n_occq()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - "
                "1]}\n    local options='' columns=''\n    case $((COMP_CWORD > 1)),${COMP_WORDS[1]} "
                "in\n    0,*) options='",
                out);
    for (const struct cli_command *const *c = commands; *c; c++)
        (void)fprintf(out, "%s ", (*c)->name);
    put_option_words(out, program->options);
    (void)fputs("' ;;\n", out);
    for (const struct cli_command *const *c = commands; *c; c++) {
        (void)fprintf(out, "    1,%s)\n        options='", (*c)->name);
        put_option_words(out, (*c)->options);
        (void)fputs("'\n        columns='", out);
        for (const struct cli_column *column = (*c)->columns; column && column->name; column++)
            (void)fprintf(out, "%s%s", column == (*c)->columns ? "" : " ", column->name);
        (void)fputs("'\n        ;;\n", out);
    }
    (void)fputs("    esac\n    case $last in\n        -o | --columns) COMPREPLY=($(compgen -W \"$columns\" "
                "-- \"$word\")); return ;;\n        -d | --db) COMPREPLY=($(compgen -f -- \"$word\")); "
                "return ;;\n",
                out);
    for (const struct cli_command *const *c = commands; *c; c++)
        put_choices(out, (*c)->options);
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n}\ncomplete -o default "
                "-F _occq occq\n",
                out);
}

static void put_bash_occtrace(FILE *out, const struct cli_command *program,
                              const struct cli_command *const *none)
{
    const char *bar = "";
    (void)none;
    (void)fputs(
        "# bash completion for occtrace. Written by occ_gen_docs from the option tables; do not "
        "edit.\n_occtrace()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} "
        "i\n    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n            ",
        out);
    for (const struct cli_option *o = program->options; o->name; o++) { /* the value is not the program */
        if (!o->value || o->without)
            continue;
        if (o->letter)
            (void)fprintf(out, "%s-%c|--%s", bar, o->letter, o->name);
        else
            (void)fprintf(out, "%s--%s", bar, o->name);
        bar = "|";
    }
    (void)fputs(
        ") i=$((i + 1)) ;;\n            --) _command_offset $((i + 1)); return ;;\n            -*) "
        ";;\n            *) _command_offset \"$i\"; return ;;\n        esac\n    done\n    case $last "
        "in\n        -d | --db | --socket) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
        out);
    put_choices(out, program->options);
    (void)fputs("    esac\n    if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W '", out);
    put_option_words(out, program->options);
    (void)fputs("' -- \"$word\"))\n    else\n        COMPREPLY=($(compgen -c -- \"$word\"))\n    "
                "fi\n}\ncomplete -F _occtrace occtrace\n",
                out);
}

/* ---- files ---- */

typedef void writer(FILE *out, const struct cli_command *command, const struct cli_command *const *commands);

static int write_file(const char *directory, const char *name, writer *write,
                      const struct cli_command *command, const struct cli_command *const *commands)
{
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return 1;
    FILE *out = fopen(path, "w");
    if (!out) {
        (void)fprintf(stderr, "occ_gen_docs: %s: %s\n", path, strerror(errno));
        return 1;
    }
    write(out, command, commands);
    int failed = ferror(out);
    return (fclose(out) != 0) | (failed != 0);
}

static int write_page(const char *directory, const struct cli_command *command,
                      const struct cli_command *const *commands)
{
    char name[64], file[72];
    (void)snprintf(file, sizeof file, "%s.1", page_name(command, name));
    return write_file(directory, file, put_man, command, commands);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "man") == 0) {
        int failed = write_page(argv[2], &cli_occtrace, NULL) | write_page(argv[2], &cli_occq, cli_commands);
        for (const struct cli_command *const *c = cli_commands; *c; c++)
            failed |= write_page(argv[2], *c, NULL);
        return failed;
    }
    if (argc == 3 && strcmp(argv[1], "completion") == 0)
        return write_file(argv[2], "occq", put_bash_occq, &cli_occq, cli_commands) |
               write_file(argv[2], "occtrace", put_bash_occtrace, &cli_occtrace, NULL);
    (void)fputs("Usage: occ_gen_docs man|completion DIRECTORY\n", stderr);
    return 2;
}
