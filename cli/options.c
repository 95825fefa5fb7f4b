/* Parses the command line: walks argv once, finds each option's row, converts its value by the row's kind. No
 * state except the walk; one thread. */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/clock.h"
#include "support/text.h"

enum {
    MAX_OPTIONS = 64 /* bits of given */,
    LISTED_MAX_BYTES = 80 /* of words in a message */,
    PRINTABLE_BYTES = 64
};

const char *const cli_colour_words[] = {"auto", "always", "never", NULL};

/* A walk through argv: `next` is the next argument; operands are collected at the front of argv. */
struct walk {
    const struct cli_command *command;
    struct cli_args *args;
    char **next;
};

/* Returns the first `length` bytes of a text from the user, shortened and sanitised for a terminal. */
static const char *printable(const char *text, size_t length, char buffer[PRINTABLE_BYTES])
{
    (void)snprintf(buffer, PRINTABLE_BYTES, "%.*s", length < PRINTABLE_BYTES ? (int)length : PRINTABLE_BYTES,
                   text);
    occ_text_sanitise(buffer);
    return buffer;
}

static const struct cli_option *find_name(const struct cli_option *row, const char *name, size_t length)
{
    for (; row->name; row++)
        if (row->name[0] == name[0] && strncmp(row->name, name, length) == 0 && row->name[length] == '\0')
            return row;
    return NULL;
}

int cli_fail_unknown(const char *what, const char *before, const char *word, size_t length,
                     const char *const *names, struct occ_error *err)
{
    char buffer[PRINTABLE_BYTES];
    const char *clean = printable(word, length, buffer), *nearest = occ_text_nearest(clean, names);
    if (!nearest)
        return occ_fail(err, OCC_E_INVALID, "unknown %s '%s%s'", what, before, clean);
    return occ_fail(err, OCC_E_INVALID, "unknown %s '%s%s'; did you mean '%s%s'?", what, before, clean,
                    before, nearest);
}

static int fail_unknown_name(const struct cli_option *row, const char *name, size_t length,
                             struct occ_error *err)
{
    const char *names[MAX_OPTIONS + 1] = {NULL};
    for (size_t n = 0; row[n].name && n < MAX_OPTIONS; n++)
        names[n] = row[n].name;
    return cli_fail_unknown("option", "--", name, length, names, err);
}

static int convert_number(const struct cli_option *row, const char *text, int64_t *ret_value,
                          struct occ_error *err)
{
    uint64_t value = 0;
    for (int64_t i = 0; row->words && row->words[i]; i++)
        if (strcmp(row->words[i], text) == 0) {
            *ret_value = -1 - i;
            return 0;
        }
    int status = occ_parse_u64(text, (uint64_t)row->min, (uint64_t)row->max, &value, err);
    if (status == 0)
        *ret_value = (int64_t)value;
    return status;
}

static int convert_bytes(const struct cli_option *row, const char *text, int64_t *ret_value,
                         struct occ_error *err)
{
    uint64_t value = 0;
    if (occ_parse_bytes(text, (uint64_t)row->max, &value, err) != 0)
        return OCC_E_INVALID;
    if ((int64_t)value < row->min)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is less than %" PRId64 " bytes", text, row->min);
    *ret_value = (int64_t)value;
    return 0;
}

static int parse_size(const char *text, uint32_t size[3], struct occ_error *err)
{
    uint64_t values[3] = {1, 1, 1};
    const char *at = text;
    for (int axis = 0; axis < 3; axis++) {
        char digits[16];
        size_t length = strcspn(at, "x,");
        if (length == 0)
            return occ_fail(err, OCC_E_INVALID, "'%.64s' lacks a number beside its %s", text,
                            strchr(text, ',') ? "comma" : "x");
        (void)snprintf(digits, sizeof digits, "%.*s",
                       length < sizeof digits ? (int)length : (int)sizeof digits - 1, at);
        if (occ_parse_u64(digits, 0, UINT32_MAX, &values[axis], err) != 0)
            return OCC_E_INVALID;
        if (values[axis] == 0)
            return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (1 or more)", text);
        at += length;
        if (*at == '\0')
            break;
        at++;
        if (axis == 2)
            return occ_fail(err, OCC_E_INVALID, "'%.64s' has more than three dimensions", text);
    }
    for (int axis = 0; axis < 3; axis++)
        size[axis] = (uint32_t)values[axis];
    return 0;
}

static int convert_percent(const char *text, double *ret_ratio, struct occ_error *err)
{
    double percent = 0;
    char number[32];
    size_t length = strlen(text);
    bool has_sign = length > 1 && length < sizeof number && text[length - 1] == '%';
    (void)snprintf(number, sizeof number, "%.*s", has_sign ? (int)length - 1 : 0, text);
    int status = occ_parse_double(has_sign ? number : text, 0, 100, &percent, err);
    if (status != 0)
        return status;
    if (percent <= 0)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (more than 0, to 100)", text);
    *ret_ratio = percent / 100;
    return 0;
}

static int convert_word(const struct cli_option *row, const char *text, const char **ret_word,
                        struct occ_error *err)
{
    char all[256] = "";
    for (const char *const *word = row->words; *word; word++) {
        if (strcmp(*word, text) == 0) {
            *ret_word = *word;
            return 0;
        }
        occ_text_append(all, sizeof all, ", ", "%s", *word);
    }
    if (strlen(all) > LISTED_MAX_BYTES) {
        const char *nearest = occ_text_nearest(text, row->words);
        return nearest
                   ? occ_fail(err, OCC_E_INVALID, "'%.64s' is not known; did you mean '%s'?", text, nearest)
                   : occ_fail(err, OCC_E_INVALID, "'%.64s' is not known; see --help", text);
    }
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is none of %s", text, all);
}

static int convert_span(const struct cli_option *row, const char *text, int64_t *value, struct occ_error *err)
{
    char low[32], high[32];
    int status = occ_parse_duration_ns(text, value, err);
    if (status != 0 || (*value >= row->min && *value <= row->max))
        return status;
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%s to %s)", text,
                    occ_format_duration(row->min, low, sizeof low),
                    occ_format_duration(row->max, high, sizeof high));
}

static int convert(const struct cli_option *row, const char *text, struct cli_args *args,
                   struct occ_error *err)
{
    void *field = (char *)args + row->offset;
    if (row->kind != CLI_FLAG && text[0] == '\0')
        return occ_fail(err, OCC_E_INVALID, "the value is empty");
    switch (row->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return 0;
    case CLI_TEXT:
        *(const char **)field = text;
        return 0;
    case CLI_MOMENT:
        return occ_parse_time_ns(text, occ_now_ns(), field, err);
    case CLI_NUMBER:
        return convert_number(row, text, field, err);
    case CLI_PERCENT:
        return convert_percent(text, field, err);
    case CLI_WORD:
        return convert_word(row, text, field, err);
    case CLI_SPAN:
        return convert_span(row, text, field, err);
    case CLI_BYTES:
        return convert_bytes(row, text, field, err);
    case CLI_SIZE:
        return parse_size(text, field, err);
    }
    return occ_fail(err, OCC_E_INVALID, "an option of no kind");
}

/* Takes an option. `name`: the option as typed, "-n" or "--number". `value`: the value in the same argument;
 * NULL: none. Reads the next argument if the option needs a value. */
static int take(struct walk *walk, const struct cli_option *row, const char *name, const char *value,
                struct occ_error *err)
{
    if (row->kind == CLI_FLAG && value)
        return occ_fail(err, OCC_E_INVALID, "%s takes no value", name);
    if (row->kind == CLI_FLAG)
        value = "";
    else if (!value && row->without)
        value = row->without;
    else if (!value && *walk->next)
        value = *walk->next++;
    else if (!value)
        return occ_fail(err, OCC_E_INVALID, "%s needs a value (%s)", name, row->value);
    walk->args->given |= UINT64_C(1) << (row - walk->command->options);
    if (convert(row, value, walk->args, err) == 0)
        return 0;
    (void)occ_error_prefix(err, "%s", name);
    if (err)
        occ_text_sanitise(err->message);
    return OCC_E_INVALID;
}

/* Spellings that users know from other tools, and the option's name here. */
static const struct {
    const char *spelling, *name;
} habits[] = {{"limit", "number"}, {"colour", "color"}, {"sort", "order"}};

static const struct cli_option *find_habit(const struct cli_option *options, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strncmp(habits[i].spelling, name, length) == 0 && habits[i].spelling[length] == '\0')
            return find_name(options, habits[i].name, strlen(habits[i].name));
    return NULL;
}

/* --format of commands without such an option: json and csv stand for --json and --csv, text for neither. */
static int take_format(struct walk *walk, const char *value, struct occ_error *err)
{
    static const char *const words[] = {"json", "csv", "text", NULL};
    const struct cli_option format = {.name = "format", .kind = CLI_WORD, .words = words}, *row;
    const char *word = NULL;
    if (!value && *walk->next)
        value = *walk->next++;
    if (!value)
        return occ_fail(err, OCC_E_INVALID, "--format needs a value (json, csv or text)");
    if (convert_word(&format, value, &word, err) != 0)
        return occ_error_prefix(err, "--format");
    if (word == words[2])
        return 0;
    row = find_name(walk->command->options, word, strlen(word));
    return row ? take(walk, row, "--format", NULL, err)
               : occ_fail(err, OCC_E_INVALID, "--format: this command prints no %s", word);
}

static bool is_format(const struct cli_command *command, const char *name, size_t length)
{
    return length == strlen("format") && strncmp(name, "format", length) == 0 &&
           find_name(command->options, "json", strlen("json"));
}

static int parse_name(struct walk *walk, const char *name, struct occ_error *err)
{
    size_t length = strcspn(name, "=");
    const struct cli_option *row = find_name(walk->command->options, name, length);
    char typed[PRINTABLE_BYTES] = "--";
    if (!row)
        row = find_habit(walk->command->options, name, length);
    if (!row && is_format(walk->command, name, length))
        return take_format(walk, name[length] == '=' ? name + length + 1 : NULL, err);
    if (!row)
        return fail_unknown_name(walk->command->options, name, length, err);
    memcpy(typed + 2, name, length < sizeof typed - 3 ? length : sizeof typed - 3);
    return take(walk, row, typed, name[length] == '=' ? name + length + 1 : NULL, err);
}

static int parse_letters(struct walk *walk, const char *letters, struct occ_error *err)
{
    for (const char *at = letters; *at; at++) {
        const struct cli_option *row = walk->command->options;
        char shown[PRINTABLE_BYTES];
        const char typed[] = {'-', *at, '\0'};
        while (row->name && row->letter != *at)
            row++;
        if (!row->name && *at == 'k') /* -k NAME, as in other tools */
            row = find_name(walk->command->options, "kernel", strlen("kernel"));
        if (!row || !row->name)
            return occ_fail(err, OCC_E_INVALID, "unknown option '-%s'", printable(at, SIZE_MAX, shown));
        bool takes_rest = row->kind != CLI_FLAG && at[1] != '\0';
        int status = take(walk, row, typed, takes_rest ? at + 1 : NULL, err);
        if (status != 0 || row->kind != CLI_FLAG)
            return status;
    }
    return 0;
}

bool cli_is_given(const struct cli_option *options, const struct cli_args *args, const char *name)
{
    const struct cli_option *row = find_name(options, name, strlen(name));
    return row && args->given >> (row - options) & 1;
}

static int check_operands(const struct cli_command *command, const struct cli_args *args,
                          struct occ_error *err)
{
    char shown[PRINTABLE_BYTES];
    if (args->help || args->version)
        return 0;
    const char *next = command->operands ? command->operands : "";
    for (int i = 0; i < args->operand_count && strchr(next, ' '); i++)
        next = strchr(next, ' ') + 1;
    if (args->operand_count < command->min_operands)
        return occ_fail(err, OCC_E_INVALID, "%.*s is missing", (int)strcspn(next, " "), next);
    if (command->stops_at_operand || args->operand_count <= command->max_operands)
        return 0;
    (void)printable(args->operands[command->max_operands], SIZE_MAX, shown);
    for (const struct cli_option *row = command->options; row->name; row++) /* "--low-occupancy 30" */
        if (row->without && cli_is_given(command->options, args, row->name))
            return occ_fail(err, OCC_E_INVALID,
                            "unexpected argument '%s'; a value of --%s needs \"=\": --%s=%s", shown,
                            row->name, row->name, shown);
    return occ_fail(err, OCC_E_INVALID, "unexpected argument '%s'", shown);
}

int cli_parse(const struct cli_command *command, char **argv, struct cli_args *args, struct occ_error *err)
{
    struct walk walk = {command, args, argv};
    bool options_end = false;
    args->operands = argv;
    args->operand_count = 0;
    args->given = 0;
    while (*walk.next) {
        char *text = *walk.next++;
        int status = 0;
        if (options_end || text[0] != '-' || text[1] == '\0') {
            /* the write position never passes the read position */
            args->operands[args->operand_count++] = text;
            options_end = options_end || command->stops_at_operand;
        } else if (strcmp(text, "--") == 0) {
            options_end = true;
        } else if (text[1] == '-') {
            status = parse_name(&walk, text + 2, err);
        } else {
            status = parse_letters(&walk, text + 1, err);
        }
        if (status != 0)
            return status;
    }
    args->operands[args->operand_count] = NULL;
    return check_operands(command, args, err);
}
