/* See complete.h. Pure except for the output and the lister of names. */
#include "complete.h"

#include <ctype.h>
#include <string.h>

#include "forms.h"
#include "occupancy/occupancy.h"
#include "support/text.h"
#include "values.h"

/* The word at the cursor: its part to complete, and the text before, which remains ("--by=", "kernel,"). */
struct cursor {
    FILE *out;
    const char *fixed;
    size_t fixed_bytes;
    const char *begun;
    const struct cli_command *command;
    char *const *words; /* the command's arguments */
    cli_list_recorded *list;
};

enum { NAME_BYTES = 512 }; /* longer names are not offered */

static void offer(const struct cursor *c, const char *before, const char *word, const char *help)
{
    char text[NAME_BYTES + 32];
    (void)snprintf(text, sizeof text, "%s%s", before, word);
    if (strncmp(text, c->begun, strlen(c->begun)) != 0)
        return;
    (void)fprintf(c->out, "%.*s%s", (int)c->fixed_bytes, c->fixed, text);
    if (help)
        (void)fprintf(c->out, "\t%.*s", (int)strcspn(help, "\n"), help);
    (void)fputc('\n', c->out);
}

/* ---- recorded names ---- */

/* The cursor, and the text before the names ("label:"). */
struct naming {
    const struct cursor *cursor;
    const char *before;
};

/* True if a terminal prints the text as it is. */
static bool is_printable(const char *text)
{
    char copy[NAME_BYTES + 1];
    (void)snprintf(copy, sizeof copy, "%s", text);
    occ_text_sanitise(copy);
    return strcmp(copy, text) == 0;
}

/* Offers a printable name, unless it looks like an option or like a line for the scripts. */
static void take_name(void *context, const char *name, const char *about)
{
    const struct naming *naming = context;
    if (name[0] && name[0] != '-' && name[0] != ':' && is_printable(name))
        offer(naming->cursor, naming->before, name, about && is_printable(about) ? about : NULL);
}

static void offer_recorded(const struct cursor *c, const char *before, enum cli_recorded what)
{
    size_t length = strlen(before);
    struct naming naming = {.cursor = c, .before = before};
    if (!c->list || strncmp(c->begun, before, strnlen(c->begun, length)) != 0)
        return;
    (void)fflush(c->out); /* the lister may end the process */
    c->list(&(struct cli_recorded_question){.what = what,
                                            .command = c->command,
                                            .words = c->words,
                                            .begun = c->begun + strnlen(c->begun, length),
                                            .take = take_name,
                                            .context = &naming});
}

/* Completes the last word of a side of a comparison: "label:main,run:". */
static void offer_side(struct cursor c)
{
    const char *comma = strrchr(c.begun, ',');
    size_t kept = comma ? (size_t)(comma + 1 - c.begun) : 0;
    c.fixed_bytes += kept;
    c.begun += kept;
    offer(&c, "", "run:last", "the newest run");
    offer_recorded(&c, "label:", CLI_RECORDED_LABELS);
    offer_recorded(&c, "run:", CLI_RECORDED_RUNS);
}

/* Values and operands that are recorded names. "KERNEL", "A" and so on are the words of synopses. */
static void offer_names(const struct cursor *c, const char *word, size_t length)
{
    static const struct {
        const char *word;
        enum cli_recorded what;
    } names[] = {{"KERNEL", CLI_RECORDED_KERNELS},
                 {"NAME|REGEX", CLI_RECORDED_KERNELS},
                 {"RUN...", CLI_RECORDED_RUNS}};
    static const char *const sides[] = {"A", "B", "SIDE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].word) == length && strncmp(names[i].word, word, length) == 0)
            offer_recorded(c, "", names[i].what);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        if (strlen(sides[i]) == length && strncmp(sides[i], word, length) == 0) {
            offer_side(*c);
            (void)fputs(":files\n", c->out);
        }
}

static void offer_gpus(const struct cursor *c)
{
    const struct occ_gpu *gpu;
    for (size_t i = 0; (gpu = occ_gpu_at(i)); i++)
        offer(c, "", gpu->name, gpu->title);
}

/* Completes the last name of a list such as "+kernel,ti". */
static void offer_columns(struct cursor c, const struct cli_column *columns)
{
    const char *comma = strrchr(c.begun, ',');
    size_t kept = comma ? (size_t)(comma + 1 - c.begun) : c.begun[0] == '+';
    c.fixed_bytes += kept; /* `fixed` and `begun` point into one text */
    c.begun += kept;
    for (; columns && columns->name; columns++)
        offer(&c, "", columns->name, columns->help);
}

static bool has_word(const struct cli_option *option, const char *word)
{
    const char *const *at = option->words;
    while (at && *at && strcmp(*at, word) != 0)
        at++;
    return at && *at;
}

static void offer_values(const struct cursor *c, const struct cli_command *command,
                         const struct cli_option *option)
{
    static const char *const files[] = {"FILE", "DIR", "PATH", NULL};
    if (option->words)
        for (const char *const *word = option->words; *word; word++)
            offer(c, "", *word, NULL);
    for (const struct cli_form *form = command->forms; form && form->option; form++)
        if (form->word && strcmp(form->option, option->name) == 0 && !has_word(option, form->word))
            offer(c, "", form->word, NULL);
    if (strcmp(option->name, "columns") == 0)
        offer_columns(*c, command->columns);
    else if ((strcmp(option->name, "gpu") == 0 || strcmp(option->name, "on") == 0))
        offer_gpus(c);
    else if (strcmp(option->name, "label") == 0)
        offer_recorded(c, "", CLI_RECORDED_LABELS);
    else if (strcmp(option->name, "run") == 0)
        offer_recorded(c, "", CLI_RECORDED_RUNS);
    offer_names(c, option->value, strlen(option->value));
    for (size_t i = 0; files[i]; i++)
        if (strcmp(option->value, files[i]) == 0)
            (void)fputs(":files\n", c->out);
}

static void offer_options(const struct cursor *c, const struct cli_command *command)
{
    for (const struct cli_option *option = command->options; option->name; option++)
        offer(c, "--", option->name, option->help);
    for (const struct cli_form *form = command->forms; form && form->option; form++)
        if (!form->word)
            offer(c, "--", form->option, form->command->summary);
}

/* Completes the lower-case words of a synopsis such as "[pause|resume PID]", recorded names, and file names
 * if the synopsis has "FILE". */
static void offer_operands(const struct cursor *c, const struct cli_command *command)
{
    static const char separators[] = "[]| ";
    char word[32];
    bool is_named = false; /* both sides of a comparison have the same names */
    for (const char *at = command->operands; at && *at; at += strcspn(at, separators)) {
        at += strspn(at, separators);
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, separators), at);
        if (!is_named && isupper((unsigned char)word[0]))
            offer_names(c, word, strlen(word));
        is_named = is_named || isupper((unsigned char)word[0]);
        if (islower((unsigned char)word[0]))
            offer(c, "", word, NULL);
        else if (strncmp(word, "FILE", 4) == 0)
            (void)fputs(":files\n", c->out);
    }
}

/* Returns the index of the first operand of `words`; more than `last` if that word is an option's value. */
static size_t first_operand(const struct cli_command *command, char *const *words, size_t last)
{
    size_t at = 0;
    for (; at <= last && words[at][0] == '-'; at++) {
        const struct cli_option *option = cli_option_of(command->options, words[at], strlen(words[at]));
        if (at < last && strcmp(words[at], "--") == 0)
            return at + 1;
        at += option && cli_takes_value(option);
    }
    return at;
}

static void complete_word(FILE *out, const struct cli_command *command, char *const *words, size_t last,
                          cli_list_recorded *list)
{
    const char *word = words[last], *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    const struct cli_option *option =
        last > 0 ? cli_option_of(command->options, words[last - 1], strlen(words[last - 1])) : NULL;
    struct cursor cursor = {
        .out = out, .fixed = word, .begun = word, .command = command, .words = words, .list = list};
    if (equals) {
        option = cli_option_of(command->options, word, (size_t)(equals - word));
        cursor.fixed_bytes = (size_t)(equals + 1 - word);
        cursor.begun = equals + 1;
    }
    if (option && (equals ? option->kind != CLI_FLAG : cli_takes_value(option)))
        offer_values(&cursor, command, option);
    else if (word[0] == '-')
        offer_options(&cursor, command);
    else
        offer_operands(&cursor, command);
}

static void complete_command(FILE *out, const struct cli_command *const *commands, char *const *words,
                             size_t last, cli_list_recorded *list)
{
    const struct cursor cursor = {.out = out, .begun = words[0]};
    for (const struct cli_command *const *c = commands; *c; c++)
        if (last == 0)
            offer(&cursor, "", (*c)->name, (*c)->summary);
        else if (strcmp((*c)->name, words[0]) == 0)
            complete_word(out, cli_form_of(*c, words + 1), words + 1, last - 1, list);
}

void cli_complete(FILE *out, const struct cli_command *program, const struct cli_command *const *commands,
                  char *const *words, cli_list_recorded *list)
{
    size_t last = 0;
    if (!words[0])
        return;
    while (words[last + 1])
        last++;
    size_t operand = first_operand(program, words, last);
    if (commands && words[0][0] != '-')
        complete_command(out, commands, words, last, list);
    else if (!commands && operand <= last)
        (void)fprintf(out, ":program %zu\n", operand);
    else
        complete_word(out, program, words, last, list);
}
