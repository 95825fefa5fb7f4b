/* Man pages and completion; see docs.h. No state. */
#include "docs.h"

#include <string.h>

#include "values.h"

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
    {"OCCTRACE_LIBRARY", "the library to preload, if it is not the one installed with occtrace"},
    {"OCCTRACE_SOCKET", SOCKET_TEXT},
    {"OCCTRACE_CUPTI", "the libcupti to use, an absolute path"},
    {"OCCTRACE_DISABLE", "if set, neither empty nor 0: programs run as without occtrace"},
    {"OCCTRACE_LOG",
     "where the library inside the program says what happens: stderr, or the absolute path of a file"},
    {"OCCTRACE_RING_SLOTS", "launches that the ring between program and daemon holds: a power of two, 256 to "
                            "4194304 (default 262144)"},
    {"OCCTRACE_BUFFERS, OCCTRACE_BUFFER_BYTES",
     "activity buffers that CUPTI gets at most (default 64), and the size of one: a power of two, 16384 to "
     "16777216 (default 1048576)"},
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

/* ---- roff ---- */

static void put_character(FILE *out, char c)
{
    if (c == '\\')
        (void)fputs("\\e", out);
    else if (c == '-')
        (void)fputs("\\-", out);
    else if (c == '\'')
        (void)fputs("\\(aq", out);
    else if (c == '~')
        (void)fputs("\\(ti", out);
    else if (c == '^')
        (void)fputs("\\(ha", out);
    else
        (void)fputc(c, out);
}

static void put_text(FILE *out, const char *text)
{
    if (text[0] == '.')
        (void)fputs("\\&", out);
    for (; *text; text++)
        put_character(out, *text);
}

/* Paragraphs: an empty line in the text starts a new one. */
static void put_paragraphs(FILE *out, const char *text)
{
    const char *end;
    for (; (end = strstr(text, "\n\n")); text = end + 2) {
        for (const char *at = text; at < end; at++)
            put_character(out, *at);
        (void)fputs("\n.PP\n", out);
    }
    put_text(out, text);
    (void)fputc('\n', out);
}

/* "occq-top", for names of pages, and "occq top", for what is typed. */
static void put_name(FILE *out, const struct cli_command *command, const char *separator)
{
    put_text(out, command->program);
    put_text(out, command->name ? separator : "");
    put_text(out, command->name ? command->name : "");
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++)
        put_character(out, *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text);
}

static void put_entries(FILE *out, const char *section, const struct entry *entries)
{
    (void)fprintf(out, ".SH %s\n", section);
    for (; entries->left; entries++) {
        (void)fputs(".TP\n.B ", out);
        put_text(out, entries->left);
        (void)fputc('\n', out);
        put_text(out, entries->right);
        (void)fputc('\n', out);
    }
}

static void put_option(FILE *out, const struct cli_option *option)
{
    (void)fputs(".TP\n", out);
    if (option->letter)
        (void)fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    (void)fputs("\\fB\\-\\-", out);
    put_text(out, option->name);
    (void)fputs("\\fR", out);
    if (option->value)
        (void)fprintf(out, option->without ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", option->value);
    (void)fputc('\n', out);
    put_text(out, option->help);
    (void)fputc('\n', out);
}

static void put_columns(FILE *out, const struct cli_column *columns)
{
    (void)fputs(".SH COLUMNS\nFor \\fB\\-o\\fR; those with * are shown by default, as far as the terminal is "
                "wide enough. In brackets: the name in JSON and "
                "CSV, where it differs.\n",
                out);
    for (const struct cli_column *c = columns; c->name; c++) {
        (void)fputs(".TP\n\\fB", out);
        put_text(out, c->name);
        (void)fprintf(out, "\\fR%s", c->flags & CLI_DEFAULT ? "*" : "");
        if (strcmp(c->name, c->key) != 0) {
            (void)fputs(" (", out);
            put_text(out, c->key);
            (void)fputc(')', out);
        }
        (void)fputc('\n', out);
        put_text(out, c->help);
        (void)fputc('\n', out);
    }
}

static void put_examples(FILE *out, const struct cli_example *examples)
{
    (void)fputs(".SH EXAMPLES\n", out);
    for (; examples->command; examples++) {
        (void)fputs(".TP\n.B ", out);
        put_text(out, examples->command);
        (void)fputc('\n', out);
        put_text(out, examples->text);
        (void)fputc('\n', out);
    }
}

static void put_commands(FILE *out, const struct cli_command *const *commands)
{
    (void)fputs(".SH COMMANDS\n", out);
    for (; *commands; commands++) {
        (void)fputs(".TP\n.BR ", out);
        put_name(out, *commands, "-");
        (void)fputs(" (1)\n", out);
        put_text(out, (*commands)->summary);
        (void)fputc('\n', out);
    }
}

static void put_head(FILE *out, const struct cli_command *command, bool has_commands, const char *version)
{
    (void)fputs(".\\\" Written by occ_gen_docs from the option tables in cli/; do not edit.\n.TH ", out);
    put_upper(out, command->program);
    if (command->name) {
        (void)fputs("\\-", out);
        put_upper(out, command->name);
    }
    (void)fprintf(out, " 1 \"\" \"occtrace %s\" \"User Commands\"\n.SH NAME\n", version);
    put_name(out, command, "-");
    (void)fputs(" \\- ", out);
    put_text(out, command->summary);
    (void)fputs("\n.SH SYNOPSIS\n.B ", out);
    put_name(out, command, " ");
    (void)fprintf(out, "\n%s[\\fIOPTION\\fR...]", has_commands ? "\\fICOMMAND\\fR\n" : "");
    if (command->operands[0]) {
        (void)fputs(command->stops_at_operand ? "\n[\\-\\-] " : "\n", out);
        put_text(out, command->operands);
    }
    (void)fputs("\n.SH DESCRIPTION\n", out);
    put_paragraphs(out, command->description);
}

static void put_see_also(FILE *out, const struct cli_command *command)
{
    (void)fputs(".SH SEE ALSO\n", out);
    if (command->name)
        (void)fprintf(out, ".BR %s (1),\n", command->program);
    (void)fputs(strcmp(command->program, "occq") == 0 ? ".BR occtrace (1),\n" : ".BR occq (1),\n", out);
    (void)fputs(".BR occtraced (8)\n", out);
}

void document_man(FILE *out, const struct cli_command *command, const struct cli_command *const *commands,
                  const char *version)
{
    const struct page *page = find_page(command);
    put_head(out, command, commands != NULL, version);
    if (commands)
        put_commands(out, commands);
    (void)fputs(".SH OPTIONS\n", out);
    for (const struct cli_option *o = command->options; o->name; o++)
        put_option(out, o);
    if (command->columns)
        put_columns(out, command->columns);
    put_entries(out, "EXIT STATUS", page->exits);
    put_entries(out, "ENVIRONMENT", page->environment);
    if (command->examples)
        put_examples(out, command->examples);
    put_see_also(out, command);
}

/* ---- completion ---- */

static void put_option_words(FILE *out, const struct cli_option *options)
{
    for (const struct cli_option *o = options; o->name; o++) {
        if (o->letter)
            (void)fprintf(out, "-%c ", o->letter);
        (void)fprintf(out, "--%s%s", o->name, o[1].name ? " " : "");
    }
}

/* "-d|--db": the words after which a value of this kind stands; NULL: of any kind. Returns whether there was one. */
static bool put_option_pattern(FILE *out, const struct cli_option *options, const char *value)
{
    bool any = false;
    for (const struct cli_option *o = options; o->name; o++) {
        if (!o->value || o->without || (value && strcmp(o->value, value) != 0))
            continue;
        if (o->letter)
            (void)fprintf(out, "%s-%c", any ? "|" : "", o->letter);
        (void)fprintf(out, "%s--%s", any || o->letter ? "|" : "", o->name);
        any = true;
    }
    return any;
}

/* `before`: what stands before the option in the pattern. */
static void put_choices(FILE *out, const char *before, const struct cli_option *option)
{
    (void)fprintf(out, "        %s--%s) COMPREPLY=($(compgen -W '", before, option->name);
    for (const char *const *word = option->words; *word; word++)
        (void)fprintf(out, "%s%s", word == option->words ? "" : " ", *word);
    (void)fputs("' -- \"$word\")); return ;;\n", out);
}

static void put_column_names(FILE *out, const struct cli_column *columns)
{
    for (const struct cli_column *c = columns; c->name; c++)
        (void)fprintf(out, "%s%s", c == columns ? "" : " ", c->name);
}

static void put_command_cases(FILE *out, const struct cli_command *command)
{
    (void)fprintf(out, "    %s)\n        options='", command->name);
    put_option_words(out, command->options);
    (void)fputs("'\n", out);
    if (command->columns) {
        (void)fputs("        columns='", out);
        put_column_names(out, command->columns);
        (void)fputs("'\n", out);
    }
    (void)fputs("        ;;\n", out);
}

void document_bash_occq(FILE *out, const struct cli_command *program,
                        const struct cli_command *const *commands)
{
    (void)fputs("# bash completion for occq. Written by occ_gen_docs from the option tables; do not edit.\n"
                "_occq()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    local options='' columns=''\n    if ((COMP_CWORD == 1)); then\n"
                "        COMPREPLY=($(compgen -W '",
                out);
    for (const struct cli_command *const *c = commands; *c; c++)
        (void)fprintf(out, "%s ", (*c)->name);
    put_option_words(out, program->options);
    (void)fputs("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (const struct cli_command *const *c = commands; *c; c++)
        put_command_cases(out, *c);
    (void)fputs("    esac\n    case $columns,$last in\n        *,-d | *,--db) COMPREPLY=($(compgen -f -- "
                "\"$word\")); "
                "return ;;\n",
                out);
    for (const struct cli_command *const *c = commands; *c; c++)
        for (const struct cli_option *o = (*c)->options; o->name; o++)
            if (o->words)
                put_choices(out, "*,", o);
    (void)fputs(
        "        ?*,-o | ?*,--columns) COMPREPLY=($(compgen -W \"$columns\" -- \"$word\")); return ;;\n"
        "    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n}\ncomplete -F _occq occq\n",
        out);
}

void document_bash_occtrace(FILE *out, const struct cli_command *program)
{
    (void)fputs(
        "# bash completion for occtrace. Written by occ_gen_docs from the option tables; do not edit.\n"
        "_occtrace()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} i\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n            ",
        out);
    (void)put_option_pattern(out, program->options, NULL);
    (void)fputs(
        ") i=$((i + 1)) ;;\n            --) _command_offset $((i + 1)); return ;;\n            -*) ;;\n"
        "            *) _command_offset \"$i\"; return ;;\n        esac\n    done\n    case $last in\n       "
        " ",
        out);
    (void)put_option_pattern(out, program->options, "FILE");
    (void)fputc('|', out);
    (void)put_option_pattern(out, program->options, "PATH");
    (void)fputs(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", out);
    for (const struct cli_option *o = program->options; o->name; o++)
        if (o->words)
            put_choices(out, "", o);
    (void)fputs("    esac\n    if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W '", out);
    put_option_words(out, program->options);
    (void)fputs("' -- \"$word\"))\n    else\n        COMPREPLY=($(compgen -c -- \"$word\"))\n    fi\n}\n"
                "complete -F _occtrace occtrace\n",
                out);
}
