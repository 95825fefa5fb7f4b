/* See forms.h. */
#include "forms.h"

#include <string.h>

const struct cli_option *cli_option_of(const struct cli_option *options, const char *word, size_t length)
{
    for (const struct cli_option *o = options; o->name; o++) {
        bool is_name = length > 2 && strncmp(word, "--", 2) == 0 && strlen(o->name) == length - 2 &&
                       strncmp(word + 2, o->name, length - 2) == 0;
        if (is_name || (length == 2 && word[0] == '-' && o->letter && word[1] == o->letter))
            return o;
    }
    return NULL;
}

bool cli_takes_value(const struct cli_option *option)
{
    return option->kind != CLI_FLAG && !option->without;
}

/* Finds the option `name` of `options` in `argv`. `more`: further options with values to skip. Returns false
 * if it is not given; *ret_value: its value, NULL for none. */
static bool find_given(const struct cli_option *options, const struct cli_option *more, char *const *argv,
                       const char *name, const char **ret_value)
{
    for (char *const *at = argv; *at && strcmp(*at, "--") != 0; at++) {
        bool is_long = strncmp(*at, "--", 2) == 0;
        size_t length = is_long ? strcspn(*at, "=") : strnlen(*at, 2);
        const struct cli_option *option = cli_option_of(options, *at, length);
        if (!option)
            option = cli_option_of(more, *at, length);
        if (!option)
            continue;
        const char *value = (*at)[length] ? *at + length + is_long : NULL;
        if (!value && cli_takes_value(option) && at[1])
            value = *++at;
        *ret_value = value;
        if (strcmp(option->name, name) == 0)
            return true;
    }
    return false;
}

bool cli_argv_has(const struct cli_option *options, char *const *argv, const char *name)
{
    static const struct cli_option format[] = {CLI_OPTION(0, "format", CLI_TEXT, struct cli_args, db, "", ""),
                                               CLI_OPTION_END};
    const char *value = NULL;
    return find_given(options, format, argv, name, &value);
}

static bool is_chosen(const struct cli_form *form, const struct cli_command *command, char *const *argv)
{
    const char *value = NULL;
    return find_given(form->command->options, command->options, argv, form->option, &value) &&
           (!form->word || (value && strcmp(value, form->word) == 0)) &&
           (!form->applies || form->applies(argv));
}

const struct cli_command *cli_form_of(const struct cli_command *command, char *const *argv)
{
    for (const struct cli_form *form = command->forms; form && form->option; form++)
        if (is_chosen(form, command, argv))
            return form->command;
    return command;
}
