/* Prints texts from tables, and usage errors; see usage.h. The only state is the first error of stdout. */
#include "usage.h"

#include <errno.h>
#include <string.h>

#include "screen.h"
#include "stream.h"
#include "values.h"

enum { HELP_WIDTH = 80, HELP_INDENT = 28 };

static int stdout_errno;

void cli_flush_stdout(void)
{
    if (fflush(cli_out()) != 0 && stdout_errno == 0)
        stdout_errno = errno;
}

int cli_stdout_errno(void)
{
    return stdout_errno;
}

static void print_name(FILE *out, const struct cli_command *command)
{
    const char *const words[] = {command->name, command->form};
    (void)fputs(cli_program(command), out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i])
            (void)fprintf(out, " %s", words[i]);
}

const char *cli_print_wrapped(FILE *out, const char *text, int at, int indent)
{
    size_t screen = cli_screen_width();
    int limit = screen > HELP_INDENT && screen < HELP_WIDTH ? (int)screen : HELP_WIDTH;
    bool first = true;
    while (*text && strncmp(text, "\n\n", 2) != 0) {
        size_t blanks = strspn(text, " \n");
        text += blanks;
        int length = (int)strcspn(text, " \n");
        if (!first && at + 1 + length > limit) {
            (void)fprintf(out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        at += fprintf(out, "%s%.*s", first ? "" : " ", length, text);
        first = false;
        text += length;
    }
    (void)fputc('\n', out);
    return text + strspn(text, "\n");
}

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        text = cli_print_wrapped(out, text, 0, 0);
        (void)fputs(*text ? "\n" : "", out);
    }
}

static void print_section(FILE *out, const char *title)
{
    (void)fprintf(out, "\n%s:\n", title);
}

static void print_entry(FILE *out, const char *left, const char *help)
{
    int at = fprintf(out, "  %s", left);
    if (at > HELP_INDENT - 2) {
        (void)fputc('\n', out);
        at = 0;
    }
    (void)fprintf(out, "%*s", HELP_INDENT - at, "");
    (void)cli_print_wrapped(out, help, HELP_INDENT, HELP_INDENT);
}

/* Formats "-d, --db FILE". */
static const char *option_synopsis(const struct cli_option *option, char *buffer, size_t size)
{
    char letter[8] = "    ";
    if (option->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    (void)snprintf(buffer, size, "%s--%s%s%s%s", letter, option->name,
                   !option->value    ? ""
                   : option->without ? "[="
                                     : " ",
                   option->value ? option->value : "", option->without ? "]" : "");
    return buffer;
}

static void describe_columns(FILE *out, const struct cli_column *columns)
{
    print_section(out, "Columns");
    print_paragraphs(out, "For -o; * is shown by default, if the terminal is wide enough. In brackets: the "
                          "name in JSON and CSV, where it differs.");
    for (const struct cli_column *c = columns; c->name; c++) {
        char left[80];
        bool same = strcmp(c->name, c->key) == 0;
        (void)snprintf(left, sizeof left, "%s%s%s%s%s", c->name, c->flags & CLI_DEFAULT ? "*" : "",
                       same ? "" : " (", same ? "" : c->key, same ? "" : ")");
        print_entry(out, left, c->help);
    }
}

/* Lists the commands below the headings of their groups. */
static void list_commands(FILE *out, const struct cli_command *const *commands)
{
    const char *group = "";
    for (; commands && *commands; commands++) {
        if (strcmp((*commands)->group, group) != 0)
            print_section(out, (*commands)->group);
        group = (*commands)->group;
        print_entry(out, (*commands)->name, (*commands)->summary);
    }
}

static void list_forms(FILE *out, const struct cli_command *command)
{
    char left[80];
    if (command->forms)
        print_section(out, "Other forms");
    for (const struct cli_form *form = command->forms; form && form->option; form++) {
        (void)snprintf(left, sizeof left, "%s %s %s", cli_program(command), command->name,
                       form->command->form);
        print_entry(out, left, form->command->summary);
    }
}

void cli_print_help(FILE *out, const struct cli_command *command, const struct cli_command *const *commands)
{
    char left[80];
    (void)fputs("Usage: ", out);
    print_name(out, command);
    (void)fprintf(out, "%s [OPTION...]%s%s%s\n\n", commands ? " COMMAND" : "",
                  command->stops_at_operand && command->operands ? " [--]" : "", command->operands ? " " : "",
                  command->operands ? command->operands : "");
    print_paragraphs(out, command->description);
    list_commands(out, commands);
    print_section(out, "Options");
    for (const struct cli_option *o = command->options; o->name; o++)
        print_entry(out, option_synopsis(o, left, sizeof left), o->help);
    list_forms(out, command);
    if (command->columns)
        describe_columns(out, command->columns);
    if (command->examples[0].command)
        print_section(out, "Examples");
    for (const struct cli_example *e = command->examples; e->command; e++)
        print_entry(out, e->command, e->text);
}

int cli_usage_error(const struct cli_command *command, const struct occ_error *err)
{
    cli_flush_stdout();
    print_name(cli_err(), command);
    (void)fprintf(cli_err(), ": %s\nTry '", err->message);
    print_name(cli_err(), command);
    (void)fputs(" --help'.\n", cli_err());
    return CLI_EXIT_USAGE;
}
