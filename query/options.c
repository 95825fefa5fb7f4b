/* See options.h. */
#include "options.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "cli/forms.h"
#include "support/text.h"

/* The long options of commands that a question may have. */
static const char *const accepted[] = {
    "since",     "until",     "run",        "label",   "user",  "job",     "rank",          "session",
    "account",   "partition", "kernel",     "exclude", "gpu",   "device",  "stream",        "range",
    "graph",     "number",    "name",       "by",      "order", "cause",   "min-loss",      "depth",
    "operators", "unfold",    "advice",     "gaps",    "on",    "columns", "low-occupancy", "floor",
    "min-time",  "force",     "min-change", "info",    "with",  "rows",    "cost",          "rules",
    "baseline",  "strict",    "all",        "explain", "for",   "node",    "cluster-name"};

/* Formats, and the option that chooses them; "": none. */
static const struct {
    const char *name, *option;
} formats[] = {{"json", "--json"}, {"csv", "--csv"}, {"markdown", "--markdown"}, {"text", ""}};

static int add(struct query_options *options, const char *before, const char *name, const char *value,
               struct occ_error *err)
{
    if (options->n >= QUERY_ARGUMENTS_MAX)
        return occ_fail(err, OCC_E_FULL, "more than %d options", QUERY_ARGUMENTS_MAX);
    size_t size = strlen(before) + strlen(name) + (value ? strlen(value) + 1 : 0) + 1;
    char *text = occ_arena_get(&options->texts, size, 1);
    if (!text)
        return occ_no_memory(err);
    (void)snprintf(text, size, "%s%s%s%s", before, name, value ? "=" : "", value ? value : "");
    options->argv[options->n++] = text;
    return 0;
}

/* ---- members ---- */

/* A member of the object. `value`: its text; NULL: true. */
struct member {
    const char *name, *value;
};

static int set_format(struct query_options *options, const char *value, struct occ_error *err)
{
    for (size_t i = 0; value && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(formats[i].name, value) != 0)
            continue;
        options->format = formats[i].option;
        return 0;
    }
    return occ_fail(err, OCC_E_INVALID, "format is one of json, csv, markdown and text");
}

static int set_width(struct query_options *options, const char *value, struct occ_error *err)
{
    uint64_t width = 0;
    if (!value || occ_parse_u64(value, 0, 10000, &width, NULL) != 0)
        return occ_fail(err, OCC_E_INVALID, "width is a number of characters, at most 10000");
    options->width = width;
    return 0;
}

/* Keeps a copy as operand `index`. "-" would be standard input. */
static int set_operand(struct query_options *options, size_t index, const struct member *member,
                       struct occ_error *err)
{
    if (!member->value || !member->value[0] || strcmp(member->value, "-") == 0)
        return occ_fail(err, OCC_E_INVALID, "%s is a text", member->name);
    size_t size = strlen(member->value) + 1;
    char *copy = occ_arena_get(&options->texts, size, 1);
    if (!copy)
        return occ_no_memory(err);
    options->operands[index] = memcpy(copy, member->value, size);
    return 0;
}

static int set_option(struct query_options *options, const struct member *member, struct occ_error *err)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s", member->name);
    for (char *at = name; (at = strchr(at, '_'));)
        *at = '-';
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        if (strcmp(accepted[i], name) == 0)
            return add(options, "--", name, member->value, err);
    return occ_fail(err, OCC_E_INVALID, "unknown option '%.64s'", member->name);
}

static int set_member(const struct query_question *question, struct query_options *options,
                      const struct member *member, struct occ_error *err)
{
    for (size_t i = 0; i < QUERY_OPERANDS_MAX; i++)
        if (question->operands[i] && strcmp(question->operands[i], member->name) == 0)
            return set_operand(options, i, member, err);
    if (strcmp(member->name, "format") == 0)
        return set_format(options, member->value, err);
    if (strcmp(member->name, "width") == 0)
        return set_width(options, member->value, err);
    return set_option(options, member, err);
}

/* ---- the object ---- */

enum { COLUMN_KEY, COLUMN_TYPE, COLUMN_VALUE };

/* Returns a text column without NUL inside; NULL: there is none. */
static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text && strlen(text) == (size_t)sqlite3_column_bytes(row, column) ? text : NULL;
}

static int read_member(const struct query_question *question, struct query_options *options,
                       sqlite3_stmt *row, struct occ_error *err)
{
    struct member member = {.name = text_of(row, COLUMN_KEY), .value = text_of(row, COLUMN_VALUE)};
    const char *type = (const char *)sqlite3_column_text(row, COLUMN_TYPE);
    if (!member.name || !type)
        return occ_fail(err, OCC_E_INVALID, "the options are a JSON object");
    if (strcmp(type, "null") == 0 || strcmp(type, "false") == 0)
        return 0;
    if (strcmp(type, "true") == 0)
        member.value = NULL;
    else if (!member.value)
        return occ_fail(err, OCC_E_INVALID, "%.64s is a text, a number, true or false", member.name);
    return set_member(question, options, &member, err);
}

static int read_members(sqlite3 *db, const char *json, const struct query_question *question,
                        struct query_options *options, struct occ_error *err)
{
    static const char sql[] = "SELECT key, type, atom FROM json_each(?1) WHERE json_type(?1) = 'object' "
                              "UNION ALL SELECT NULL, NULL, NULL WHERE json_type(?1) IS NOT 'object'";
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &row, NULL), status = 0;
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(row, 1, json, -1, SQLITE_STATIC);
    while (code == SQLITE_OK && status == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        status = read_member(question, options, row, err);
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(row);
    if (status == 0 && code != SQLITE_DONE)
        status = occ_fail(err, OCC_E_INVALID, "the options are a JSON object: %s", sqlite3_errmsg(db));
    return status;
}

static int read_json(const struct query_question *question, const char *json, struct query_options *options,
                     struct occ_error *err)
{
    sqlite3 *db = NULL;
    if (strlen(json) > QUERY_OPTIONS_BYTES_MAX)
        return occ_fail(err, OCC_E_FULL, "the options have more than %d bytes", QUERY_OPTIONS_BYTES_MAX);
    if (strstr(json, "\\u0000"))
        return occ_fail(err, OCC_E_INVALID, "a text of the options holds a NUL");
    int status =
        sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) == SQLITE_OK
            ? read_members(db, json, question, options, err)
            : occ_no_memory(err);
    (void)sqlite3_close(db);
    return status;
}

/* Adds the operands behind "--", so that no text is an option. */
static int add_operands(const struct query_question *question, struct query_options *options,
                        struct occ_error *err)
{
    int status = add(options, "--", "", NULL, err);
    for (size_t i = 0; i < QUERY_OPERANDS_MAX && status == 0; i++) {
        if (options->operands[i])
            status = add(options, options->operands[i], "", NULL, err);
        else if (i < question->n_needed)
            status = occ_fail(err, OCC_E_INVALID, "%s is missing", question->operands[i]);
    }
    return status;
}

/* Adds the arguments that do not come from members. */
static int complete(const struct query_question *question, const char *where, bool is_url,
                    struct query_options *options, struct occ_error *err)
{
    const struct cli_command *form = cli_form_of(question->command, options->argv);
    const char *source = is_url ? "--cluster" : "--db";
    if (!cli_option_of(form->options, source, strlen(source)))
        return occ_fail(err, OCC_E_INVALID,
                        is_url ? "a warehouse does not answer '%s%s%s'" : "only a warehouse answers '%s%s%s'",
                        question->name, form->form ? " " : "", form->form ? form->form : "");
    int status = add(options, source, "", where, err);
    if (status == 0 && options->format[0])
        status = add(options, options->format, "", NULL, err);
    if (status == 0)
        status = add_operands(question, options, err);
    return status;
}

static void begin(const struct query_question *question, struct query_options *ret_options)
{
    *ret_options = (struct query_options){.command = question->command, .format = formats[0].option};
}

int query_options_read(const struct query_question *question, const char *json, const char *where,
                       bool is_url, struct query_options *ret_options, struct occ_error *err)
{
    begin(question, ret_options);
    int status = json ? read_json(question, json, ret_options, err) : 0;
    return status == 0 ? complete(question, where, is_url, ret_options, err) : status;
}

int query_options_of_statement(const char *statement, const char *url, struct query_options *ret_options,
                               struct occ_error *err)
{
    const struct query_question *question = query_find_question("sql", err);
    begin(question, ret_options);
    int status = set_operand(ret_options, 0, &(struct member){question->operands[0], statement}, err);
    return status == 0 ? complete(question, url, true, ret_options, err) : status;
}

void query_options_free(struct query_options *options)
{
    occ_arena_free(options->texts.blocks);
    options->texts = (struct occ_arena){.failed = false};
}
