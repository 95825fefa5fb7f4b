/* The JSON writer; see json.h. State in struct cli_json, and what documents end with. */
#include "json.h"

#include <assert.h>
#include <string.h>

#include "support/text.h"

/* Returns the number of bytes that are written. */
static size_t write_escaped(const struct cli_json *json, const char *at)
{
    FILE *out = json->out;
    unsigned char c = (unsigned char)*at;
    size_t n = occ_text_character(at);
    if (c == '"' || c == '\\')
        (void)fprintf(out, "\\%c", c);
    else if (c == '\n')
        (void)fputs("\\n", out);
    else if (c == '\t')
        (void)fputs("\\t", out);
    else if (c < 0x20 || c == 0x7f || (json->in_html && (c == '<' || c == '>' || c == '&')))
        (void)fprintf(out, "\\u%04x", c);
    else if (n == 0)
        (void)fputs("\\ufffd", out);
    else
        (void)fwrite(at, 1, n, out);
    return n ? n : 1;
}

/* Bytes of ASCII that stand in a string as they are: nearly all of a text, and written at once. */
static size_t plain_bytes(const char *string)
{
    size_t n = 0;
    while (string[n] >= ' ' && string[n] < 0x7f && !strchr("\"\\<>&", string[n]))
        n++;
    return n;
}

/* Bytes that occ_text_sanitise() replaces can stand neither in JSON nor on a terminal. Nothing is allocated:
 * a string is whole, also if memory ends. */
static void write_string(const struct cli_json *json, const char *string)
{
    (void)fputc('"', json->out);
    while (*string) {
        size_t n = plain_bytes(string);
        string += n > 0 ? fwrite(string, 1, n, json->out) : 0;
        if (*string)
            string += write_escaped(json, string);
    }
    (void)fputc('"', json->out);
}

static void new_line(struct cli_json *json)
{
    (void)fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* What stands before a member: comma, line, key. */
static void lead(struct cli_json *json, const char *key)
{
    if (json->depth > 0) {
        bool compact = json->open[json->depth - 1].compact;
        if (json->open[json->depth - 1].filled)
            (void)fputs(compact ? ", " : ",", json->out);
        if (!compact)
            new_line(json);
        json->open[json->depth - 1].filled = true;
    }
    if (key) {
        write_string(json, key);
        (void)fputs(": ", json->out);
    }
}

static void open_any(struct cli_json *json, const char *key, bool compact, char start, char end)
{
    assert(json->depth < CLI_JSON_DEPTH);
    lead(json, key);
    (void)fputc(start, json->out);
    bool inside_compact = json->depth > 0 && json->open[json->depth - 1].compact;
    json->open[json->depth].end = end;
    json->open[json->depth].compact = compact || inside_compact;
    json->open[json->depth].filled = false;
    json->depth++;
}

void cli_json_object(struct cli_json *json, const char *key, bool compact)
{
    open_any(json, key, compact, '{', '}');
}

void cli_json_array(struct cli_json *json, const char *key, bool compact)
{
    open_any(json, key, compact, '[', ']');
}

void cli_json_close(struct cli_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->open[json->depth].filled && !json->open[json->depth].compact)
        new_line(json);
    (void)fputc(json->open[json->depth].end, json->out);
}

void cli_json_begin(struct cli_json *json, FILE *out)
{
    *json = (struct cli_json){.out = out};
    cli_json_object(json, NULL, false);
    cli_json_unsigned(json, "schema", CLI_JSON_SCHEMA);
}

static void (*put_last)(struct cli_json *json);

void cli_json_set_last(void (*put)(struct cli_json *json))
{
    put_last = put;
}

void cli_json_end(struct cli_json *json)
{
    if (put_last)
        put_last(json);
    cli_json_close(json);
    (void)fputc('\n', json->out);
}

void cli_json_value(struct cli_json *json, const char *key, struct cli_value value)
{
    char digits[CLI_DIGITS_BYTES];
    lead(json, key);
    if (value.type == CLI_STRING)
        write_string(json, value.string);
    else
        (void)fputs(value.type == CLI_NONE ? "null" : cli_value_raw(&value, digits), json->out);
}

#define PUT(name, type, make)                                                                                \
    void cli_json_##name(struct cli_json *json, const char *key, type content)                               \
    {                                                                                                        \
        cli_json_value(json, key, make);                                                                     \
    }
PUT(string, const char *, cli_string(content))
PUT(unsigned, uint64_t, cli_unsigned(content))
PUT(integer, int64_t, cli_integer(content))
PUT(real, double, cli_real(content))
PUT(bool, bool, cli_bool(content))

void cli_json_null(struct cli_json *json, const char *key)
{
    cli_json_string(json, key, NULL);
}

void cli_json_row(struct cli_json *json, const struct cli_column *table, const void *row)
{
    for (; table->name; table++)
        cli_json_value(json, table->key, table->get(table, row));
}

void cli_json_rows(struct cli_json *json, const char *key, const struct cli_column *table, const void *rows,
                   size_t n, size_t row_bytes)
{
    cli_json_array(json, key, false);
    for (size_t i = 0; i < n; i++) {
        cli_json_object(json, NULL, true);
        cli_json_row(json, table, (const char *)rows + i * row_bytes);
        cli_json_close(json);
    }
    cli_json_close(json);
}
