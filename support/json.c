/* See json.h. No state but in struct occ_json. */
#include "json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "digits.h"
#include "text.h"

/* Returns the number of bytes that are written. */
static size_t write_escaped(const struct occ_json *json, const char *at)
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
static void write_string(const struct occ_json *json, const char *string)
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

static void new_line(struct occ_json *json)
{
    (void)fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Comma, line and key before a member. */
static void lead(struct occ_json *json, const char *key)
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

static void open_any(struct occ_json *json, const char *key, bool compact, char start, char end)
{
    assert(json->depth < OCC_JSON_DEPTH);
    lead(json, key);
    (void)fputc(start, json->out);
    bool inside_compact = json->depth > 0 && json->open[json->depth - 1].compact;
    json->open[json->depth].end = end;
    json->open[json->depth].compact = compact || inside_compact;
    json->open[json->depth].filled = false;
    json->depth++;
}

void occ_json_object(struct occ_json *json, const char *key, bool compact)
{
    open_any(json, key, compact, '{', '}');
}

void occ_json_array(struct occ_json *json, const char *key, bool compact)
{
    open_any(json, key, compact, '[', ']');
}

void occ_json_close(struct occ_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->open[json->depth].filled && !json->open[json->depth].compact)
        new_line(json);
    (void)fputc(json->open[json->depth].end, json->out);
}

void occ_json_begin(struct occ_json *json, FILE *out)
{
    *json = (struct occ_json){.out = out};
    occ_json_object(json, NULL, false);
}

void occ_json_end(struct occ_json *json)
{
    occ_json_close(json);
    (void)fputc('\n', json->out);
}

/* ---- values ---- */

void occ_json_raw(struct occ_json *json, const char *key, const char *text)
{
    lead(json, key);
    (void)fputs(text, json->out);
}

void occ_json_string(struct occ_json *json, const char *key, const char *string)
{
    lead(json, key);
    if (string)
        write_string(json, string);
    else
        (void)fputs("null", json->out);
}

void occ_json_unsigned(struct occ_json *json, const char *key, uint64_t number)
{
    char digits[OCC_DIGITS_BYTES];
    *occ_put_number(digits, number, 1) = '\0';
    occ_json_raw(json, key, digits);
}

void occ_json_integer(struct occ_json *json, const char *key, int64_t number)
{
    char digits[OCC_DIGITS_BYTES];
    occ_json_raw(json, key, occ_integer_digits(number, digits));
}

void occ_json_real(struct occ_json *json, const char *key, double real)
{
    char digits[OCC_DIGITS_BYTES];
    occ_json_raw(json, key, isfinite(real) ? occ_real_digits(real, digits) : "null");
}

void occ_json_bool(struct occ_json *json, const char *key, bool boolean)
{
    occ_json_raw(json, key, boolean ? "true" : "false");
}

void occ_json_null(struct occ_json *json, const char *key)
{
    occ_json_raw(json, key, "null");
}
