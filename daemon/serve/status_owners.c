/* See status_owners.h. */
#include "status_owners.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "support/array.h"
#include "support/control.h"
#include "support/text.h"

#define LINES_MAX (1u << 16)
#define SPACES    2

/* LOST is the sum over all causes. */
static const struct column {
    const char *heading;
    enum occ_status_value value;
} columns[] = {
    {"OWNER", OCC_STATUS_OWNER},       {"STATE", OCC_STATUS_STATE},         {"PROGRAMS", OCC_STATUS_PROGRAMS},
    {"LAUNCHES", OCC_STATUS_LAUNCHES}, {"LOST", OCC_STATUS_LOST_RING_FULL}, {"FAILED", OCC_STATUS_FAILURES},
    {"BEHIND", OCC_STATUS_LAG},        {"RING", OCC_STATUS_RING_FILL},      {"SIZE", OCC_STATUS_BYTES},
    {"QUOTA", OCC_STATUS_QUOTA_FILL},  {"REASON", OCC_STATUS_REASON},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)
enum { OWNER, STATE, LOST = 4, FAILED, RING = 7, QUOTA = 9, REASON };

static bool is_text(size_t column)
{
    return occ_status_rows[columns[column].value].kind == OCC_STATUS_AS_TEXT;
}

struct occ_owner_line {
    char *texts[N_COLUMNS];    /* NULL: unknown */
    double numbers[N_COLUMNS]; /* values of number columns; NAN: unknown */
};

/* ---- reading ---- */

static double read_number(const char *answer, enum occ_status_value value)
{
    double number = NAN;
    char *text = occ_control_value(answer, occ_status_rows[value].key);
    if (text && occ_parse_double(text, 0, 1e19, &number, NULL) != 0)
        number = NAN;
    free(text);
    return number;
}

/* NAN: no cause is known. */
static double read_lost(const char *answer)
{
    double sum = NAN;
    for (unsigned int i = 0; i < OCC_LOSS_COUNT; i++) {
        double lost = read_number(answer, (enum occ_status_value)(OCC_STATUS_LOST_RING_FULL + i));
        if (!isnan(lost))
            sum = isnan(sum) ? lost : sum + lost;
    }
    return sum;
}

static void free_line(struct occ_owner_line *line)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        free(line->texts[i]);
}

int occ_owner_lines_add(struct occ_owner_lines *l, const char *answer, struct occ_error *err)
{
    struct occ_owner_line line = {.texts = {NULL}};
    if (!occ_grow((void **)&l->lines, &l->allocated, l->n, LINES_MAX, sizeof *l->lines))
        return occ_no_memory(err);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (is_text(i))
            line.texts[i] = occ_control_value(answer, occ_status_rows[columns[i].value].key);
        if (line.texts[i])
            occ_text_sanitise(line.texts[i]);
        line.numbers[i] = is_text(i)  ? NAN
                          : i == LOST ? read_lost(answer)
                                      : read_number(answer, columns[i].value);
    }
    l->lines[l->n++] = line;
    return 0;
}

void occ_owner_lines_free(struct occ_owner_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free_line(&l->lines[i]);
    free(l->lines);
    *l = (struct occ_owner_lines){.lines = NULL};
}

/* ---- order ---- */

static bool is_stalled(const struct occ_owner_line *line)
{
    return line->texts[STATE] && strcmp(line->texts[STATE], "ok") != 0;
}

static double known(double number)
{
    return isnan(number) ? 0 : number;
}

static int compare_lines(const void *a, const void *b)
{
    static const int by[] = {LOST, FAILED, RING, QUOTA};
    const struct occ_owner_line *first = a, *second = b;
    if (is_stalled(first) != is_stalled(second))
        return is_stalled(first) ? -1 : 1;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        double x = known(first->numbers[by[i]]), y = known(second->numbers[by[i]]);
        if (x != y)
            return x > y ? -1 : 1;
    }
    return first->texts[OWNER] && second->texts[OWNER] ? strcmp(first->texts[OWNER], second->texts[OWNER])
                                                       : 0;
}

/* ---- printing ---- */

static const char *format_cell(const struct occ_owner_line *line, size_t column,
                               char text[OCC_STATUS_TEXT_BYTES])
{
    if (is_text(column))
        return line->texts[column] ? line->texts[column] : column == REASON ? "" : "-";
    double number = line->numbers[column];
    return isnan(number) ? "-" : occ_status_format(occ_status_rows[columns[column].value].kind, number, text);
}

static void find_widths(const struct occ_owner_lines *l, int widths[N_COLUMNS])
{
    char text[OCC_STATUS_TEXT_BYTES];
    for (size_t c = 0; c < N_COLUMNS; c++) {
        widths[c] = (int)strlen(columns[c].heading);
        for (size_t i = 0; i < l->n; i++) {
            int width = (int)strlen(format_cell(&l->lines[i], c, text));
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
}

/* The last column is not padded, and is omitted if it has no text in any line. */
static void print_cell(size_t column, const char *text, int width, FILE *out)
{
    int left = is_text(column) ? -width : width;
    if (column == REASON && text[0])
        (void)fprintf(out, "%*s%s", SPACES, "", text);
    else if (column != REASON)
        (void)fprintf(out, "%*s%*s", SPACES, "", left, text);
}

void occ_owner_lines_print(struct occ_owner_lines *l, FILE *out)
{
    int widths[N_COLUMNS];
    char text[OCC_STATUS_TEXT_BYTES];
    bool some_reason = false;
    if (l->n > 1)
        qsort(l->lines, l->n, sizeof *l->lines, compare_lines);
    find_widths(l, widths);
    for (size_t i = 0; i < l->n; i++)
        some_reason |= l->lines[i].texts[REASON] != NULL;
    for (size_t c = 0; l->n > 0 && c < N_COLUMNS; c++)
        print_cell(c, c == REASON && !some_reason ? "" : columns[c].heading, widths[c], out);
    (void)fputs(l->n > 0 ? "\n" : "", out);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t c = 0; c < N_COLUMNS; c++)
            print_cell(c, format_cell(&l->lines[i], c, text), widths[c], out);
        (void)fputc('\n', out);
    }
}
