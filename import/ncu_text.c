/*
 * The output of ncu without --csv, among the program's own output. A result is a heading and tables:
 *
 *   scale(float *) (768, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
 *     Section: Launch Statistics
 *     -------------------- --------------- ------------
 *     Metric Name              Metric Unit Metric Value
 *     -------------------- --------------- ------------
 *     Block Size                                    256
 *     Registers Per Thread register/thread           32
 *     -------------------- --------------- ------------
 *
 * Versions before 2023 print a date in place of the grid, neither device nor compute capability, and no names
 * above the columns. The page "raw" has metrics in place of labels.
 *
 * The reader takes a row apart by its label and its words, since copies lose the columns' alignment. Numbers
 * have the form of the locale C, in which ncu separates thousands with commas or not at all. Most versions do
 * not print the number of SMs: the first pass computes it from the waves.
 *
 * One thread.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ncu.h"
#include "ncu_lines.h"
#include "support/cleanup.h"

#define LINE_BYTES      (1u << 20) /* a longer line is read as several lines */
#define DEVICES_MAX     64u
#define SMS_MAX         4096.0
#define WAVES_STEP      0.01 /* ncu prints two decimals, or no decimals for an integer */
#define WAVES_TOLERANCE 1e-9 /* rounding of a quotient of doubles */

/* ", Context 1, Stream 7, Device 0, CC 8.9" */
static const struct {
    const char *name;
    enum occ_ncu_metric_row row;
    int n; /* number of integers */
} facts[] = {{"Context", OCC_NCU_CONTEXT, 1},
             {"Stream", OCC_NCU_STREAM, 1},
             {"Device", OCC_NCU_DEVICE, 1},
             {"CC", OCC_NCU_DEV_MAJOR, 2}};

/* The known range of a GPU's number of SMs. */
struct sms {
    double device, low, high;
};

struct text {
    struct occ_ncu_lines lines;
    char *line; /* the line without blanks at its ends */
    struct occ_ncu *ncu;
    struct occ_error *err;
    bool is_second;  /* second pass */
    bool has_result; /* a heading was read */
    bool awaits, in_table, has_rows;
    struct sms sms[DEVICES_MAX];
    size_t n_sms;
};

/* ---- lines ---- */

static bool next_line(struct text *t)
{
    char *line = occ_ncu_next_line(&t->lines, t->line, LINE_BYTES);
    if (!line)
        return false;
    size_t blanks = strspn(line, " \t"), n = strlen(line);
    while (n > blanks && isspace((unsigned char)line[n - 1]))
        n--;
    memmove(line, line + blanks, n - blanks);
    line[n - blanks] = '\0';
    return true;
}

/* ---- headings ---- */

static void set_facts(struct occ_ncu *n, const char *text)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        size_t length = strlen(facts[i].name);
        const char *at = strstr(text, facts[i].name);
        if (!at || at[length] != ' ')
            continue;
        char *end = (char *)(uintptr_t)(at + length + 1);
        for (int k = 0; k < facts[i].n && isdigit((unsigned char)*end); k++, end += *end == '.')
            n->value[(int)facts[i].row + k] = (double)strtoul(end, &end, 10);
    }
}

static void begin_result(struct text *t, const struct occ_ncu_heading *h)
{
    t->has_result = t->awaits = true;
    occ_ncu_set_name(t->ncu, h->name, h->name_bytes);
    set_facts(t->ncu, h->facts);
    for (int i = 0; i < 6 && h->has_sizes; i++)
        t->ncu->value[(i < 3 ? OCC_NCU_GRID_X : OCC_NCU_BLOCK_X - 3) + i] = h->size[i];
}

/* ---- the number of SMs ---- */

static struct sms *find_sms(struct text *t, bool adds)
{
    double device = t->ncu->value[OCC_NCU_DEVICE];
    device = isnan(device) ? 0 : device;
    for (size_t i = 0; i < t->n_sms; i++)
        if (t->sms[i].device == device)
            return &t->sms[i];
    if (!adds || t->n_sms == DEVICES_MAX)
        return NULL;
    t->sms[t->n_sms] = (struct sms){.device = device, .low = 1, .high = SMS_MAX};
    return &t->sms[t->n_sms++];
}

static double product(const struct occ_ncu *n, enum occ_ncu_metric_row x, enum occ_ncu_metric_row total)
{
    return isnan(n->value[x]) ? n->value[total] : n->value[x] * n->value[x + 1] * n->value[x + 2];
}

/* Narrows the number of SMs by waves = blocks / (SMs x blocks of a full SM). Not used with clusters, which
 * are spread over GPCs, nor in green contexts, which have fewer SMs. */
static void learn_sms(struct text *t)
{
    const struct occ_ncu *n = t->ncu;
    struct sms *sms = find_sms(t, true);
    double grid = product(n, OCC_NCU_GRID_X, OCC_NCU_GRID_SIZE), waves = n->value[OCC_NCU_WAVES];
    double warps = ceil(product(n, OCC_NCU_BLOCK_X, OCC_NCU_BLOCK_SIZE) / 32);
    double full = n->value[OCC_NCU_THEORETICAL_WARPS] / warps;
    bool is_whole = !(n->value[OCC_NCU_CLUSTERS] > 0) && !(n->value[OCC_NCU_GREEN] > 0);
    if (!sms || !is_whole || !(waves > 0) || !(grid > 0) || !(full >= 1))
        return;
    double most = grid / full / fmax(waves - WAVES_STEP / 2, WAVES_TOLERANCE);
    sms->low = fmax(sms->low, ceil(grid / full / (waves + WAVES_STEP / 2) * (1 - WAVES_TOLERANCE)));
    sms->high = fmin(sms->high, floor(most * (1 + WAVES_TOLERANCE)));
}

static void use_sms(struct text *t)
{
    const struct sms *sms = find_sms(t, false);
    struct occ_ncu *n = t->ncu;
    bool is_missing = isnan(n->value[OCC_NCU_DEV_SMS]) && isnan(n->value[OCC_NCU_SMS]);
    if (!is_missing || !sms || sms->low != sms->high)
        return;
    n->value[OCC_NCU_DEV_SMS] = sms->low;
    n->computes_sms = true;
}

static int end_result(struct text *t)
{
    bool has_result = t->has_result;
    t->has_result = t->awaits = t->in_table = false;
    if (!has_result)
        return 0;
    if (!t->is_second) {
        learn_sms(t);
        occ_ncu_drop_result(t->ncu);
        return 0;
    }
    use_sms(t);
    return occ_ncu_end_result(t->ncu);
}

/* ---- tables ---- */

/* "1,234.5", "1234.5", "2e+06": digits, with commas before groups of three or without. */
static bool is_number(const char *text)
{
    size_t first = strspn(text += *text == '-', "0123456789"), n = first;
    while (text[n] == ',' && first <= 3 && strspn(text + n + 1, "0123456789") == 3)
        n += 4;
    if (text[n] == '.')
        n += 1 + strspn(text + n + 1, "0123456789");
    if (first > 0 && (text[n] | 0x20) == 'e')
        n += 1 + strspn(text + n + 1, "+-0123456789");
    return first > 0 && text[n] == '\0';
}

static bool begins_number(const char *word)
{
    return word && isdigit((unsigned char)word[*word == '-']);
}

static int refuse_number(const struct text *t, const char *number)
{
    return occ_fail(
        t->err, OCC_E_INVALID,
        "line %llu: '%.40s' is a number in another locale; print the report with LC_ALL=C, or import the "
        "report itself",
        (unsigned long long)t->lines.number, number);
}

/* Reads the words after a label: the unit, if present, and the value. Copied output can have remarks after
 * the value. */
static int read_words(struct text *t, enum occ_ncu_metric_row row, const char *name, char *text)
{
    char *rest = NULL, *first = strtok_r(text, " \t", &rest);
    bool has_unit = first && !begins_number(first);
    const char *value = has_unit ? strtok_r(NULL, " \t", &rest) : first;
    const char *behind = value ? strtok_r(NULL, " \t", &rest) : NULL;
    if (!begins_number(value))
        return 0; /* "n/a" */
    if (!is_number(value) || begins_number(behind))
        return refuse_number(t, value);
    const struct occ_ncu_printed printed = {.text = value, .unit = has_unit ? first : "", .point = '.'};
    return occ_ncu_set_printed(t->ncu, row, name, &printed);
}

static int read_row(struct text *t)
{
    size_t n = 0;
    const char *name = NULL;
    enum occ_ncu_metric_row row = occ_ncu_find_label(t->line, &n);
    t->has_rows = true;
    if (row == OCC_NCU_COUNT) { /* the name of a metric has no blanks */
        name = t->line;
        n = strcspn(t->line, " \t");
        if (t->line[n] == '\0')
            return 0;
        t->line[n++] = '\0';
        row = occ_ncu_find(name, false);
    }
    if (row == OCC_NCU_DEV_NAME)
        (void)snprintf(t->ncu->gpu, sizeof t->ncu->gpu, "%s", t->line + n + strspn(t->line + n, " \t"));
    return row == OCC_NCU_COUNT || row == OCC_NCU_DEV_NAME ? 0 : read_words(t, row, name, t->line + n);
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* A line of dashes begins a table, separates the names of its columns from its rows, and ends it. */
static void end_or_begin_table(struct text *t)
{
    bool is_end = t->in_table && t->has_rows;
    if (!t->in_table)
        t->has_rows = false;
    t->in_table = (t->in_table || t->awaits) && !is_end;
    t->awaits = false;
}

static int read_line(struct text *t)
{
    struct occ_ncu_heading h;
    int status = 0;
    if (occ_ncu_parse_heading(t->line, &h)) {
        status = end_result(t);
        begin_result(t, &h);
    } else if (!t->has_result) {
        return 0; /* the program's output */
    } else if (begins(t->line, "Section: ")) {
        t->awaits = true;
        t->in_table = false;
    } else if (begins(t->line, "---") && t->line[strspn(t->line, "- ")] == '\0') {
        end_or_begin_table(t);
    } else if (t->line[0] == '\0') {
        t->in_table = false;
    } else if (t->in_table && !begins(t->line, "Metric Name")) {
        status = read_row(t);
    }
    return status;
}

/* ---- the file ---- */

static int read_stream(struct text *t, const char *prefix)
{
    int status = 0;
    t->lines.prefix = prefix;
    t->has_result = false;
    if (!occ_ncu_first_line(&t->lines))
        return occ_fail_errno(t->err, errno, "cannot read the file");
    while (status == 0 && next_line(t))
        status = read_line(t);
    if (status == 0 && ferror(t->lines.file))
        status = occ_fail(t->err, OCC_E_IO, "cannot read the file");
    return status == 0 ? end_result(t) : status;
}

/* The first pass finds the number of SMs, the second reads the results. */
static int read_passes(struct text *t, const struct occ_ncu_streams *streams)
{
    int status = 0;
    for (size_t i = 0; i < streams->n && status == 0; i++)
        status = read_stream(t, streams->prefix[i]);
    t->is_second = true;
    for (size_t i = 0; i < streams->n && status == 0; i++)
        status = read_stream(t, streams->prefix[i]);
    return status;
}

static int check_devices(const struct text *t)
{
    if (!occ_import_sink_is_empty(t->ncu->sink) ||
        occ_import_sink_skipped(t->ncu->sink, OCC_IMPORT_SKIP_NO_DEVICE) == 0)
        return 0;
    bool has_sms = t->n_sms == 1 && t->sms->low == t->sms->high;
    return occ_fail(t->err, OCC_E_INVALID, "ncu printed %s: name the GPU with --gpu NAME",
                    has_sms ? "no compute capability"
                            : "neither the GPU's number of SMs nor enough to compute it");
}

static void free_text(struct text *t)
{
    free(t->line);
    free(t->ncu);
}

int occ_ncu_read_text(FILE *file, const struct occ_ncu_streams *streams, struct occ_import_sink *sink,
                      struct occ_error *err)
{
    _cleanup_(free_text) struct text t = {.lines.file = file, .err = err};
    if (!(t.line = malloc(LINE_BYTES)) || !(t.ncu = calloc(1, sizeof *t.ncu)))
        return occ_no_memory(err);
    occ_ncu_begin(t.ncu, sink, err);
    t.ncu->recording.rank = streams->rank;
    int status = read_passes(&t, streams);
    if (status == 0)
        status = check_devices(&t);
    if (status == 0)
        occ_ncu_end(t.ncu);
    return status;
}
