/*
 * Reads the output of `ncu --csv`. Page "details": a record for each metric, with its label or name, unit and
 * value. Page "raw": a record for each result, a column for each metric, units in the second record. Lines
 * that do not begin with a quote are ncu's messages or the program's output.
 *
 * Numbers have the separators of ncu's locale: the first pass over all values finds the decimal point. Values
 * are scaled to base units; bytes that were rounded for printing become the roundest number that is printed
 * the same. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncu.h"
#include "ncu_lines.h"
#include "support/cleanup.h"

/* Larger than any output of ncu; they bound the memory. */
#define RECORD_MAX (4u << 20)
#define FIELDS_MAX 16384u

enum column { ID, KERNEL, CONTEXT, STREAM, BLOCK, GRID, DEVICE, CC, METRIC, UNIT, VALUE, COLUMN_COUNT };
static const char *const headings[] = {"ID",          "Kernel Name", "Context",     "Stream",
                                       "Block Size",  "Grid Size",   "Device",      "CC",
                                       "Metric Name", "Metric Unit", "Metric Value"};

struct record {
    char *text;
    const char *field[FIELDS_MAX]; /* fields, pointing into the text */
    size_t n;
};

struct csv {
    struct occ_ncu_lines lines;
    struct occ_ncu *ncu;
    struct occ_error *err;
    char point;                              /* the decimal point's character */
    struct record heading, units, record;    /* `units` is for the page "raw" */
    enum occ_ncu_metric_row row[FIELDS_MAX]; /* rows of the heading's metrics */
    size_t column[COLUMN_COUNT];             /* FIELDS_MAX: not on the page */
    char id[32];                             /* ID of the current result; "": none */
};

static const char *field(const struct record *r, size_t index)
{
    return index < r->n ? r->field[index] : "";
}

static const char *in_column(const struct csv *c, enum column column)
{
    return field(&c->record, c->column[column]);
}

static bool is_raw(const struct csv *c)
{
    return c->column[METRIC] == FIELDS_MAX;
}

static int damaged(const struct csv *c, const char *what)
{
    return occ_fail(c->err, OCC_E_CORRUPT, "line %llu: %s", (unsigned long long)c->lines.number, what);
}

/* ---- records ---- */

/* Cuts the text into its fields, in place. */
static int split(const struct csv *c, struct record *r)
{
    char *in = r->text, end = ',';
    for (r->n = 0; end == ','; in++) {
        if (r->n == FIELDS_MAX)
            return damaged(c, "more columns than ncu prints");
        char *out = in;
        bool quoted = *in == '"';
        r->field[r->n++] = out;
        for (in += quoted; *in && (quoted ? in[0] != '"' || in[1] == '"' : !strchr(",\r\n", *in)); in++) {
            in += quoted && *in == '"';
            *out++ = *in;
        }
        if (quoted && *in == '\0')
            return damaged(c, "the line ends within quotes");
        in += quoted;
        end = *in;
        *out = '\0';
    }
    return end == '\0' || end == '\r' || end == '\n' ? 1 : damaged(c, "text behind a quoted value");
}

/* 1: a record; 0: no more. */
static int next_record(struct csv *c, struct record *r)
{
    size_t n = 0, quotes = 0;
    do {
        char *line = r->text + n;
        if (!occ_ncu_next_line(&c->lines, line, RECORD_MAX - n))
            return ferror(c->lines.file) ? occ_fail(c->err, OCC_E_IO, "cannot read the file")
                   : n > 0               ? damaged(c, "the file ends within quotes")
                                         : 0;
        if (n == 0 && line[0] != '"')
            continue;
        for (; *line; line++, n++)
            quotes += *line == '"';
        if (n >= RECORD_MAX - 1)
            return damaged(c, "longer than the lines that ncu prints");
    } while (n == 0 || quotes % 2 != 0);
    return split(c, r);
}

/* ---- numbers ---- */

/* The last separator is the decimal point, unless three digits follow it and it is the only kind: then it can
 * be either. */
static void learn_point(struct csv *c, const char *text)
{
    const char *last = NULL;
    if (text[strspn(text, "-0123456789.,")] != '\0')
        return;
    for (const char *at = text; (at = strpbrk(at, ".,")); at++)
        last = at;
    if (last && (strlen(last + 1) != 3 || strchr(text, *last == '.' ? ',' : '.')))
        c->point = *last;
}

static int set_value(struct csv *c, enum occ_ncu_metric_row row, const char *name, const char *unit,
                     const char *text)
{
    const struct occ_ncu_printed printed = {.text = text, .unit = unit, .point = c->point};
    return occ_ncu_set_printed(c->ncu, row, name, &printed);
}

/* ---- results ---- */

/* Columns with integers, and how many: "(32, 40, 1)", "8.6" */
static const struct {
    enum column column;
    enum occ_ncu_metric_row first;
    int n;
} integers[] = {{GRID, OCC_NCU_GRID_X, 3},     {BLOCK, OCC_NCU_BLOCK_X, 3}, {CC, OCC_NCU_DEV_MAJOR, 2},
                {CONTEXT, OCC_NCU_CONTEXT, 1}, {STREAM, OCC_NCU_STREAM, 1}, {DEVICE, OCC_NCU_DEVICE, 1}};

static void begin_result(struct csv *c)
{
    (void)snprintf(c->id, sizeof c->id, "%s", in_column(c, ID));
    occ_ncu_set_name(c->ncu, in_column(c, KERNEL), strlen(in_column(c, KERNEL)));
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        const char *at = in_column(c, integers[i].column);
        for (int k = 0; k < integers[i].n && *(at += strcspn(at, "0123456789")); k++) {
            char *end;
            c->ncu->value[(int)integers[i].first + k] = (double)strtoul(at, &end, 10);
            at = end;
        }
    }
}

static int end_result(struct csv *c)
{
    bool has_result = c->id[0] != '\0';
    c->id[0] = '\0';
    return has_result ? occ_ncu_end_result(c->ncu) : 0;
}

static int read_values(struct csv *c)
{
    int status = 0;
    if (is_raw(c) ? c->record.n != c->heading.n : c->record.n <= c->column[VALUE])
        return damaged(c, "fewer values than the heading has columns");
    if (is_raw(c) || strcmp(c->id, in_column(c, ID)) != 0) {
        status = end_result(c);
        begin_result(c);
    }
    if (!is_raw(c) && status == 0)
        return set_value(c, occ_ncu_find(in_column(c, METRIC), true), NULL, in_column(c, UNIT),
                         in_column(c, VALUE));
    for (size_t i = 0; i < c->record.n && status == 0; i++)
        status = set_value(c, c->row[i], c->heading.field[i], field(&c->units, i), c->record.field[i]);
    return status;
}

/* ---- the file ---- */

static int read_heading(struct csv *c)
{
    const struct record read = c->record;
    c->record = c->heading;
    c->heading = read;
    for (int k = 0; k < COLUMN_COUNT; k++)
        c->column[k] = FIELDS_MAX;
    for (size_t i = 0; i < c->heading.n; i++) {
        c->row[i] = occ_ncu_find(c->heading.field[i], false);
        for (int k = 0; k < COLUMN_COUNT; k++)
            if (strcmp(c->heading.field[i], headings[k]) == 0)
                c->column[k] = i;
    }
    if (c->column[KERNEL] == FIELDS_MAX || (!is_raw(c) && c->column[VALUE] == FIELDS_MAX))
        return damaged(c, "no column of kernel names or of values");
    int status = is_raw(c) ? next_record(c, &c->units) : 0;
    return status < 0 ? status : 0;
}

/* Reads a record. The first pass only finds the decimal point. */
static int read_record(struct csv *c, bool second)
{
    if (strcmp(field(&c->record, 0), headings[ID]) == 0)
        return read_heading(c);
    if (c->heading.n == 0)
        return 0; /* the program's output */
    for (size_t i = 0; i < c->record.n && !second; i++)
        if (i == c->column[VALUE] || (is_raw(c) && c->row[i] != OCC_NCU_COUNT))
            learn_point(c, c->record.field[i]);
    return second ? read_values(c) : 0;
}

static int read_stream(struct csv *c, const char *prefix, bool second)
{
    int more = 0, status = 0;
    c->lines.prefix = prefix;
    c->heading.n = 0;
    if (!occ_ncu_first_line(&c->lines))
        return occ_fail_errno(c->err, errno, "cannot read the file");
    while (status == 0 && (more = next_record(c, &c->record)) == 1)
        status = read_record(c, second);
    status = status == 0 && more < 0 ? more : status;
    if (status == 0 && c->heading.n == 0)
        status = damaged(
            c, "no heading (\"ID\", ...) as ncu --csv prints it, and no kernel as ncu prints it without");
    return status == 0 && second ? end_result(c) : status;
}

static int read_pass(struct csv *c, const struct occ_ncu_streams *streams, bool second)
{
    int status = 0;
    for (size_t i = 0; i < streams->n && status == 0; i++)
        status = read_stream(c, streams->prefix[i], second);
    return status;
}

static void free_csv(struct csv **c)
{
    if (!*c)
        return;
    free((*c)->heading.text);
    free((*c)->units.text);
    free((*c)->record.text);
    free((*c)->ncu);
    free(*c);
}

int occ_ncu_read_csv(FILE *file, const struct occ_ncu_streams *streams, struct occ_import_sink *sink,
                     struct occ_error *err)
{
    _cleanup_(free_csv) struct csv *c = calloc(1, sizeof *c);
    if (!c || !(c->ncu = calloc(1, sizeof *c->ncu)) || !(c->heading.text = malloc(RECORD_MAX)) ||
        !(c->units.text = malloc(RECORD_MAX)) || !(c->record.text = malloc(RECORD_MAX)))
        return occ_no_memory(err);
    c->lines.file = file;
    c->err = err;
    c->point = '.';
    occ_ncu_begin(c->ncu, sink, err);
    c->ncu->recording.rank = streams->rank;
    int status = read_pass(c, streams, false);
    if (status == 0)
        status = read_pass(c, streams, true);
    if (status == 0)
        occ_ncu_end(c->ncu);
    return status;
}
