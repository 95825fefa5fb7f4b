/* Values, columns and their selection; see values.h. No state; any thread. */
#include "values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "support/text.h"

struct cli_value cli_integer(int64_t integer)
{
    return (struct cli_value){.type = CLI_INTEGER, .integer = integer};
}

struct cli_value cli_unsigned(uint64_t number)
{
    return (struct cli_value){.type = CLI_UNSIGNED, .number = number};
}

struct cli_value cli_real(double real)
{
    return (struct cli_value){.type = isfinite(real) ? CLI_REAL : CLI_NONE, .real = real};
}

struct cli_value cli_string(const char *string)
{
    return (struct cli_value){.type = string ? CLI_STRING : CLI_NONE, .string = string};
}

struct cli_value cli_bool(bool boolean)
{
    return (struct cli_value){.type = CLI_BOOL, .boolean = boolean};
}

/* ---- members of a row ---- */

static struct cli_value known_string(const char *text)
{
    return cli_string(text && text[0] ? text : NULL);
}

#define GETTER(name, type, make)                                                                             \
    struct cli_value cli_get_##name(const struct cli_column *column, const void *row)                        \
    {                                                                                                        \
        return make(*(const type *)(const void *)((const char *)row + column->index));                       \
    }

GETTER(u32, uint32_t, cli_unsigned)
GETTER(u64, uint64_t, cli_unsigned)
GETTER(i64, int64_t, cli_integer)
GETTER(real, double, cli_real)
GETTER(bool, bool, cli_bool)
GETTER(string, char *, known_string)

struct cli_value cli_get_array(const struct cli_column *column, const void *row)
{
    return known_string((const char *)row + column->index);
}

/* ---- texts ---- */

const char *cli_percent_text(double ratio, char *buffer, size_t size)
{
    /* Rounds halves up, also if the rounding error of a mean of equal values is below the half: 43.75 is 43.8
     * % everywhere. */
    double tenths = floor(fabs(ratio) * 1000 + 0.5 + 1e-6);
    if (isfinite(ratio)) /* no sign if the text would be "-0.0" */
        (void)snprintf(buffer, size, "%s%.1f%%", ratio < 0 && tenths > 0 ? "-" : "", tenths / 10);
    else
        (void)snprintf(buffer, size, "-");
    return buffer;
}

static const char *range_text(double low, double high, const char *between, char *buffer, size_t size)
{
    char end[16];
    const char *text = cli_percent_text(high, end, sizeof end);
    if (strcmp(cli_percent_text(low, buffer, size), text) != 0) /* "66.7 to 78.1%" */
        (void)snprintf(buffer + strlen(buffer) - 1, size - strlen(buffer), "%s%s", between, text);
    return buffer;
}

const char *cli_range_text(double low, double high, char *buffer, size_t size)
{
    return range_text(low, high, " to ", buffer, size);
}

const char *cli_range_cell(double low, double high, char *buffer, size_t size)
{
    return range_text(low, high, "-", buffer, size);
}

const char *cli_amount_text(double amount, char *buffer, size_t size)
{
    static const char suffixes[] = " kMGTPE";
    size_t i = 0;
    if (!isfinite(amount)) {
        (void)snprintf(buffer, size, "-");
        return buffer;
    }
    while (fabs(amount) >= 999.95 && i + 2 < sizeof suffixes) {
        amount /= 1000;
        i++;
    }
    return occ_format_digits(amount, (const char[]){i ? suffixes[i] : '\0', '\0'}, buffer, size);
}

/* Formats a time. `with_zone` adds the name of the zone. */
static const char *time_text(int64_t ns, bool is_utc, bool with_zone, char *buffer, size_t size)
{
    enum {
        DAYS_UNKNOWN = 365
    }; /* smaller times since 1970 are from a recording without absolute times, not from a current program */
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    char since[32];
    if (seconds >= 0 && seconds < DAYS_UNKNOWN * 86400) {
        (void)snprintf(buffer, size, "+%s", occ_format_duration(ns, since, sizeof since));
        return buffer;
    }
    if (!(is_utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)) ||
        strftime(buffer, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        (void)snprintf(buffer, size, "@%" PRId64, ns / 1000000000);
    else if (with_zone)
        occ_text_append(buffer, size, " ", "%s", is_utc ? "UTC" : tm.tm_zone);
    return buffer;
}

const char *cli_time_text(int64_t ns, char *buffer, size_t size)
{
    return time_text(ns, false, false, buffer, size);
}

const char *cli_zone_time_text(int64_t ns, bool is_utc, char *buffer, size_t size)
{
    return time_text(ns, is_utc, true, buffer, size);
}

static const char *duration_text(int64_t ns, char *buffer, size_t size)
{
    if (ns >= 0)
        return occ_format_duration_digits(ns, buffer, size);
    (void)snprintf(buffer, size, "%" PRId64 " ns", ns);
    return buffer;
}

static const char *number_text(const struct cli_value *value, enum cli_unit unit, char *buffer, size_t size)
{
    char digits[OCC_DIGITS_BYTES];
    double real = value->type == CLI_REAL       ? value->real
                  : value->type == CLI_UNSIGNED ? (double)value->number
                                                : (double)value->integer;
    int64_t integer = value->type == CLI_INTEGER ? value->integer
                      : fabs(real) < 9e18        ? (int64_t)real
                                                 : INT64_MAX;
    switch (unit) {
    case CLI_RATIO:
        return cli_percent_text(real, buffer, size);
    case CLI_DURATION:
        return duration_text(integer, buffer, size);
    case CLI_TIME:
        return cli_time_text(integer, buffer, size);
    case CLI_UTC:
        return cli_zone_time_text(integer, true, buffer, size);
    case CLI_FACTOR:
        (void)snprintf(buffer, size, "%.2f", fabs(real) < 0.005 ? 0 : real); /* no "-0.00" */
        return buffer;
    case CLI_AMOUNT:
        return cli_amount_text(real, buffer, size);
    case CLI_MEMORY:
        return occ_format_bytes((uint64_t)integer, buffer, size);
    case CLI_PLAIN:
        break;
    }
    (void)snprintf(buffer, size, "%s", cli_value_raw(value, digits));
    return buffer;
}

const char *cli_value_text(const struct cli_value *value, enum cli_unit unit, char *buffer, size_t size)
{
    switch (value->type) {
    case CLI_NONE:
        (void)snprintf(buffer, size, "-");
        return buffer;
    case CLI_STRING:
        (void)snprintf(buffer, size, "%s", value->string);
        occ_text_sanitise(buffer);
        return buffer;
    case CLI_BOOL:
        (void)snprintf(buffer, size, "%s", value->boolean ? "yes" : "no");
        return buffer;
    default:
        return number_text(value, unit, buffer, size);
    }
}

const char *cli_value_raw(const struct cli_value *value, char buffer[OCC_DIGITS_BYTES])
{
    buffer[0] = '\0';
    switch (value->type) {
    case CLI_INTEGER:
        (void)occ_integer_digits(value->integer, buffer);
        break;
    case CLI_UNSIGNED:
        *occ_put_number(buffer, value->number, 1) = '\0';
        break;
    case CLI_REAL:
        return occ_real_digits(value->real, buffer);
    case CLI_BOOL:
        return value->boolean ? "true" : "false";
    case CLI_NONE:
    case CLI_STRING:
        break;
    }
    return buffer;
}

void cli_select(const struct cli_column *table, unsigned int with, unsigned int without,
                struct cli_selection *ret_selection)
{
    ret_selection->n = 0;
    ret_selection->table = table;
    ret_selection->gather = NULL;
    memset(ret_selection->asked, false, sizeof ret_selection->asked);
    for (const struct cli_column *c = table; c->name && ret_selection->n < CLI_MAX_COLUMNS; c++)
        if ((c->flags & with) == with && (c->flags & without) == 0)
            ret_selection->columns[ret_selection->n++] = c;
}

static bool is_called(const struct cli_column *column, const char *name, size_t length)
{
    return (strlen(column->name) == length && strncmp(column->name, name, length) == 0) ||
           (strlen(column->key) == length && strncmp(column->key, name, length) == 0);
}

static int fail_unknown_column(const struct cli_column *table, const char *name, size_t length,
                               struct occ_error *err)
{
    const char *names[CLI_MAX_COLUMNS + 1] = {NULL};
    for (size_t n = 0; table[n].name && n < CLI_MAX_COLUMNS; n++)
        names[n] = table[n].name;
    (void)cli_fail_unknown("column", "", name, length, names, err);
    return occ_error_prefix(err, "-o");
}

/* Returns the index of the column; selection->n: not selected. */
static size_t index_of(const struct cli_selection *selection, const struct cli_column *column)
{
    size_t i = 0;
    while (i < selection->n && selection->columns[i] != column)
        i++;
    return i;
}

static int select_one(const struct cli_column *table, const char *name, size_t length, bool adds,
                      struct cli_selection *selection, struct occ_error *err)
{
    const struct cli_column *c = table;
    while (c->name && !is_called(c, name, length))
        c++;
    if (!c->name)
        return fail_unknown_column(table, name, length, err);
    size_t index = index_of(selection, c);
    if (index < selection->n && !adds)
        return occ_fail(err, OCC_E_INVALID, "-o: column '%s' is there already", c->name);
    if (index == CLI_MAX_COLUMNS)
        return occ_fail(err, OCC_E_INVALID, "-o: too many columns");
    selection->n += index == selection->n;
    selection->columns[index] = c;
    selection->asked[index] = true;
    return 0;
}

int cli_select_list(const struct cli_column *table, const char *list, struct cli_selection *selection,
                    struct occ_error *err)
{
    bool adds = list[0] == '+';
    if (adds) {
        list++;
    } else {
        selection->n = 0;
        selection->table = table;
        selection->gather = NULL;
    }
    for (;;) {
        size_t length = strcspn(list, ",");
        int status = select_one(table, list, length, adds, selection, err);
        if (status != 0)
            return status;
        if (list[length] == '\0')
            return 0;
        list += length + 1;
    }
}
