/* Writes cells of CSV; see csv.h. */
#include "csv.h"

#include <string.h>

#include "support/text.h"

static size_t digits_from(const char *text, size_t n, size_t at)
{
    while (at < n && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* True for "-1", "+.5", "-1.5e-9": spreadsheets read these as numbers, not as formulas. */
static bool is_signed_number(const char *text, size_t n)
{
    size_t end = digits_from(text, n, 1), digits = end - 1;
    if (end < n && text[end] == '.') {
        size_t fraction = end + 1;
        end = digits_from(text, n, fraction);
        digits += end - fraction;
    }
    if (end + 1 < n && (text[end] == 'e' || text[end] == 'E')) {
        size_t exponent = end + (text[end + 1] == '+' || text[end + 1] == '-' ? 2 : 1);
        end = digits_from(text, n, exponent);
        digits = end > exponent ? digits : 0;
    }
    return digits > 0 && end == n;
}

bool cli_csv_is_formula(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && text[at] == '\'')
        at++;
    if (at == n || !memchr("=+-@\t\r\n", text[at], 7))
        return false;
    bool has_sign = at == 0 && (text[0] == '+' || text[0] == '-');
    return !has_sign || !is_signed_number(text, n);
}

/* Counts leading ASCII bytes that need no quoting: most texts have no others, so they are written at once. */
static size_t plain_bytes(const char *text)
{
    size_t n = 0;
    while (text[n] >= ' ' && text[n] < 0x7f && text[n] != '"')
        n++;
    return n;
}

/* Writes one character of *bytes bytes, unchanged or as '?'. */
static void put_character(FILE *out, const char *at, size_t *bytes)
{
    *bytes = occ_text_character(at);
    if (*bytes == 0) {
        *bytes = 1;
        (void)fputc(strchr("\t\r\n", *at) ? *at : '?', out);
        return;
    }
    if (*at == '"')
        (void)fputc('"', out);
    (void)fwrite(at, 1, *bytes, out);
}

void cli_csv_text(FILE *out, const char *text)
{
    bool has_quotes = text[0] == '\0' || strpbrk(text, ",\"\r\n");
    if (has_quotes)
        (void)fputc('"', out);
    if (cli_csv_is_formula(text, strlen(text)))
        (void)fputc('\'', out);
    for (size_t bytes; *text; text += bytes) {
        bytes = plain_bytes(text);
        if (bytes > 0)
            (void)fwrite(text, 1, bytes, out);
        else
            put_character(out, text, &bytes);
    }
    if (has_quotes)
        (void)fputc('"', out);
}

void cli_csv_value(FILE *out, const struct cli_value *value)
{
    char digits[OCC_DIGITS_BYTES];
    if (value->type == CLI_STRING)
        cli_csv_text(out, value->string);
    else
        (void)fputs(cli_value_raw(value, digits), out);
}
