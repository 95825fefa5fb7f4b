/* See ncu_csv.h. */
#include "ncu_csv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 256 };

/* Reads the next field without its quotes, cut to `size`; false: no more fields. */
static bool next_field(const char **at, char *field, size_t size)
{
    size_t n = 0;
    if (!*at)
        return false;
    const char *p = *at;
    bool quoted = *p == '"';
    for (p += quoted; *p && (quoted || *p != ','); p++) {
        if (quoted && *p == '"' && *++p != '"')
            break;
        if (n + 1 < size)
            field[n++] = *p;
    }
    field[n] = '\0';
    *at = *p == ',' ? p + 1 : NULL;
    return true;
}

/* Reads a number in ncu's format: "1,234.5" has digit-group commas. */
static bool number_of(const char *text, double *ret_value)
{
    char plain[FIELD_BYTES], *end = NULL;
    size_t n = 0;
    for (; *text && n + 1 < sizeof plain; text++)
        if (*text != ',')
            plain[n++] = *text;
    plain[n] = '\0';
    double value = strtod(plain, &end);
    if (end == plain || *end != '\0')
        return false;
    *ret_value = value;
    return true;
}

static void take_header(struct ncu_csv *csv, const char *line)
{
    char field[FIELD_BYTES];
    struct ncu_csv found = NCU_CSV_INIT;
    for (int column = 0; next_field(&line, field, sizeof field); column++) {
        if (strcmp(field, "Metric Name") == 0)
            found.metric = column;
        if (strcmp(field, "Metric Value") == 0)
            found.value = column;
    }
    if (found.metric >= 0 && found.value >= 0)
        *csv = found;
}

int ncu_csv_line(struct ncu_csv *csv, const char *line, const char *metric, double *ret_value)
{
    char field[FIELD_BYTES];
    bool named = false, valued = false;
    double value = 0;
    if (csv->metric < 0) {
        take_header(csv, line);
        return 0;
    }
    for (int column = 0; next_field(&line, field, sizeof field); column++) {
        if (column == csv->metric)
            named = strcmp(field, metric) == 0;
        if (column == csv->value)
            valued = number_of(field, &value);
    }
    if (named && valued)
        *ret_value = value;
    return named && valued;
}
