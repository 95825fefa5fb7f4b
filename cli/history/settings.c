/* See settings.h. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/forms.h"
#include "config/yaml_reader.h"
#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"

enum { ADDED_MAX = 6 }; /* three options with their values */

/* ---- the file ---- */

static int set_text(const struct occ_yaml *yaml, const char *name, char *text, size_t size,
                    struct occ_error *err)
{
    const char *value = occ_yaml_scalar(yaml);
    if (!value)
        return occ_yaml_fail(yaml, err, "%s: one value is expected here", name);
    if (text[0])
        return occ_yaml_fail(yaml, err, "'%s' is given twice", name);
    if (!value[0] || strlen(value) >= size)
        return occ_yaml_fail(yaml, err, "%s: the value is %s", name, value[0] ? "too long" : "empty");
    (void)snprintf(text, size, "%s", value);
    return 0;
}

/* Reads a command's name, which is the current event, and its columns. */
static int read_command(struct occ_yaml *yaml, struct occq_settings *settings, struct occ_error *err)
{
    const char *name = occ_yaml_scalar(yaml);
    struct occq_columns *columns = &settings->columns[settings->n_columns];
    if (!name || !name[0] || strlen(name) >= sizeof columns->command)
        return occ_yaml_fail(yaml, err, "a command of occq is expected here");
    if (settings->n_columns == SETTINGS_COMMANDS_MAX)
        return occ_yaml_fail(yaml, err, "more than %d commands", SETTINGS_COMMANDS_MAX);
    for (size_t i = 0; i < settings->n_columns; i++)
        if (strcmp(settings->columns[i].command, name) == 0)
            return occ_yaml_fail(yaml, err, "'%s' is given twice", name);
    (void)snprintf(columns->command, sizeof columns->command, "%s", name);
    settings->n_columns++;
    int status = occ_yaml_next(yaml, err);
    return status == 0 ? set_text(yaml, columns->command, columns->list, sizeof columns->list, err) : status;
}

static int read_columns(struct occ_yaml *yaml, struct occq_settings *settings, struct occ_error *err)
{
    int status = 0;
    if (yaml->event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(yaml, err, "columns: commands with their columns are expected here");
    if (settings->n_columns > 0)
        return occ_yaml_fail(yaml, err, "'columns' is given twice");
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_MAPPING_END_EVENT)
        status = read_command(yaml, settings, err);
    return status;
}

/* Reads a GPU model, which is the current event, and its price. */
static int read_price(struct occ_yaml *yaml, struct occ_prices *prices, struct occ_error *err)
{
    const char *model = occ_yaml_scalar(yaml);
    struct occ_price *price = &prices->list[prices->n];
    if (!model || !model[0] || strlen(model) >= sizeof price->model)
        return occ_yaml_fail(yaml, err, "a part of a GPU's name is expected here");
    if (prices->n == OCC_PRICES_MAX)
        return occ_yaml_fail(yaml, err, "more than %d prices", OCC_PRICES_MAX);
    for (size_t i = 0; i < prices->n; i++)
        if (strcasecmp(prices->list[i].model, model) == 0)
            return occ_yaml_fail(yaml, err, "'%s' is given twice", model);
    (void)snprintf(price->model, sizeof price->model, "%s", model);
    prices->n++;
    int status = occ_yaml_next(yaml, err);
    const char *value = status == 0 ? occ_yaml_scalar(yaml) : NULL;
    return status != 0 || (value && occ_price_parse(value, price))
               ? status
               : occ_yaml_fail(yaml, err, "%s: a price for an hour is expected here, such as 2.50 EUR",
                               price->model);
}

static int read_prices(struct occ_yaml *yaml, struct occ_prices *prices, struct occ_error *err)
{
    int status = 0;
    if (yaml->event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(yaml, err, "prices: GPUs with their prices are expected here");
    if (prices->n > 0)
        return occ_yaml_fail(yaml, err, "'prices' is given twice");
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_MAPPING_END_EVENT)
        status = read_price(yaml, prices, err);
    return status;
}

/* Reads a key, which is the current event, and its value. */
static int read_key(struct occ_yaml *yaml, struct occq_settings *settings, struct occ_error *err)
{
    enum { HISTORY, EXCLUDE, COLUMNS, PRICES };
    static const char *const names[] = {"history", "exclude", "columns", "prices", NULL};
    struct occ_error why = OCC_ERROR_INIT;
    const char *name = occ_yaml_scalar(yaml);
    size_t key = 0;
    while (name && names[key] && strcmp(names[key], name) != 0)
        key++;
    if (!name)
        return occ_yaml_fail(yaml, err, "a key is expected here");
    if (!names[key]) {
        (void)cli_fail_unknown("key", "", name, strlen(name), names, &why);
        return occ_yaml_fail(yaml, err, "%s", why.message);
    }
    int status = occ_yaml_next(yaml, err);
    if (status != 0)
        return status;
    if (key == COLUMNS)
        return read_columns(yaml, settings, err);
    if (key == PRICES)
        return read_prices(yaml, &settings->prices, err);
    status = key == HISTORY ? set_text(yaml, "history", settings->history, sizeof settings->history, err)
                            : set_text(yaml, "exclude", settings->exclude, sizeof settings->exclude, err);
    return status == 0 && key == HISTORY && settings->history[0] != '/'
               ? occ_yaml_fail(yaml, err, "history: an absolute path is expected here")
               : status;
}

static int read_settings(struct occ_yaml *yaml, struct occq_settings *settings, struct occ_error *err)
{
    int status = 0;
    if (yaml->event.type == YAML_STREAM_END_EVENT)
        return 0; /* an empty file */
    if (yaml->event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(yaml, err, "settings are expected here");
    while (status == 0 && (status = occ_yaml_next(yaml, err)) == 0 &&
           yaml->event.type != YAML_MAPPING_END_EVENT)
        status = read_key(yaml, settings, err);
    return status == 0 ? occ_yaml_end(yaml, err) : status;
}

int settings_parse(const char *name, const char *text, size_t length, struct occq_settings *ret_settings,
                   struct occ_error *err)
{
    struct occ_yaml yaml;
    *ret_settings = (struct occq_settings){.n_columns = 0};
    int status = occ_yaml_open(&yaml, name, text, length, err);
    if (status == 0)
        status = read_settings(&yaml, ret_settings, err);
    occ_yaml_close(&yaml);
    return status;
}

int settings_load(struct occq_settings *ret_settings, struct occ_error *err)
{
    const char *base = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    _cleanup_(occ_freep) char *path = NULL;
    _cleanup_(occ_freep) char *text = NULL;
    size_t length = 0;
    bool has_base = base && base[0] == '/', has_home = home && home[0] == '/';
    *ret_settings = (struct occq_settings){.n_columns = 0};
    if (!has_base && !has_home)
        return 0;
    int status = occ_format_text(&path, err, "%s%s/occtrace/occq.yaml", has_base ? base : home,
                                 has_base ? "" : "/.config");
    if (status != 0 || access(path, F_OK) != 0)
        return status;
    status = occ_path_read(path, OCC_CONFIG_MAX_BYTES + 1, &text, &length, err);
    return status == 0 ? settings_parse(path, text, length, ret_settings, err) : status;
}

/* ---- the arguments ---- */

static bool has_option(const struct cli_command *command, const char *name)
{
    const struct cli_option *option = command->options;
    while (option->name && strcmp(option->name, name) != 0)
        option++;
    return option->name;
}

/* True if the command has the option `name`, and `argv` gives none of `others` (NULL-terminated). */
static bool is_open(const struct cli_command *command, char *const *argv, const char *name,
                    const char *const *others)
{
    bool is_given = !has_option(command, name);
    for (; *others && !is_given; others++)
        is_given = cli_argv_has(command->options, argv, *others);
    return !is_given;
}

static bool is_set(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value && value[0];
}

static char *columns_of(struct occq_settings *settings, const struct cli_command *command)
{
    for (size_t i = 0; i < settings->n_columns && !command->form; i++)
        if (strcmp(settings->columns[i].command, command->name) == 0)
            return settings->columns[i].list;
    return NULL;
}

char **settings_apply(struct occq_settings *settings, const struct cli_command *command, char *const *argv)
{
    static const char *const histories[] = {"db", "all-users", "cluster", "node", NULL};
    static const char *const formats[] = {"columns", "json", "csv", "format", "help", NULL};
    static const char *const excludes[] = {"exclude", "help", NULL};
    static char db[] = "--db", columns[] = "--columns", exclude[] = "--exclude";
    char *list = columns_of(settings, command);
    size_t n = 0, added = 0;
    while (argv[n])
        n++;
    char **all = calloc(n + ADDED_MAX + 1, sizeof *all);
    if (!all)
        return NULL;
    const struct {
        char *option, *value;
        bool applies;
    } extra[] = {
        {db, settings->history,
         settings->history[0] && !is_set("OCCTRACE_DB") && !is_set("OCCTRACE_CLUSTER") &&
             is_open(command, argv, "db", histories)},
        {columns, list, list && is_open(command, argv, "columns", formats)},
        {exclude, settings->exclude, settings->exclude[0] && is_open(command, argv, "exclude", excludes)}};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        if (!extra[i].applies)
            continue;
        all[added++] = extra[i].option;
        all[added++] = extra[i].value;
        if (extra[i].option == exclude)
            (void)fprintf(stderr, "occq: without kernels that match '%s' (exclude in occq.yaml)\n",
                          extra[i].value);
    }
    memcpy(all + added, argv, n * sizeof *all);
    return all;
}
