/*
 * The calculator's batch; see calc.h. A row's fields become the options of one call: "--regs=71". One
 * thread.
 */
#include "calc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/csv.h"
#include "support/cleanup.h"
#include "support/text.h"

/* Input columns, with the option and the unit of each. */
static const struct input {
    const char *column, *option, *unit;
    bool required;
} inputs[] = {
    {"gpu", "gpu", "", false},
    {"cc", "cc", "", false},
    {"sms", "sms", "", false},
    {"threads", "threads", "", true},
    {"regs", "regs", "", true},
    {"static_smem", "smem", "", true},
    {"dynamic_smem", "dynamic-smem", "", true},
    {"grid", "grid", "", false},
    {"carveout", "carveout", "", false},
    {"smem_config", "carveout", "B", false},
    {"max_dynamic_smem", "max-dynamic-smem", "", false},
    {"barriers", "barriers", "", false},
    {"cluster", "cluster", "", false},
};

enum {
    INPUTS = sizeof inputs / sizeof *inputs,
    GPU = 0,
    CC,
    SMS,
    CARVEOUT = 8,
    OPTION_BYTES = 96,
    VALUE_MAX_BYTES = 64
};

static const char *const results[] = {"blocks_per_sm",
                                      "warps_per_sm",
                                      "theoretical",
                                      "limit_warps",
                                      "limit_blocks",
                                      "limit_registers",
                                      "limit_shared_memory",
                                      "limit_barriers",
                                      "limiters",
                                      "waves",
                                      "full_waves",
                                      "partial_blocks",
                                      "expected_elapsed_low",
                                      "expected_elapsed_high",
                                      "expected_achieved_low",
                                      "expected_achieved_high",
                                      "error"};

enum { RESULTS = sizeof results / sizeof *results };

/* A field: the raw bytes of the line, and its text without quotes and surrounding blanks. */
struct field {
    const char *raw, *text;
    int raw_bytes, bytes;
};

struct batch {
    FILE *out, *talk;
    uint64_t line;
    size_t columns;          /* in the heading; 0: not read yet */
    size_t field_of[INPUTS]; /* index of an input's field; SIZE_MAX: none */
    struct field fields[CALC_BATCH_COLUMNS];
    size_t n_fields;
    char gpu[CALC_NAME_BYTES]; /* name of `target`; "": `target` has no name */
    struct calc_target target;
    struct calc_batch_totals totals;
};

/* ---- splitting ---- */

static void add_field(struct batch *b, const char *begin, const char *end)
{
    struct field *field = &b->fields[b->n_fields++];
    field->raw = begin;
    field->raw_bytes = (int)(end - begin);
    if (*begin == '"') {
        begin++;
        end--;
    }
    begin += strspn(begin, " \t");
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    field->text = begin;
    field->bytes = begin < end ? (int)(end - begin) : 0;
}

/* Returns the byte after the closing quote of the field at `at`; NULL: no closing quote. */
static const char *skip_quoted(const char *at)
{
    do
        at = strchr(at + 1, '"');
    while (at && at[1] == '"' && at++);
    return at ? at + 1 : NULL;
}

static int split(struct batch *b, const char *at, struct occ_error *err)
{
    for (b->n_fields = 0;; at++) {
        bool quoted = *at == '"';
        const char *end = quoted ? skip_quoted(at) : at + strcspn(at, ",\"");
        if (!end || (*end && *end != ','))
            return occ_fail(err, OCC_E_INVALID, "field %zu: %s", b->n_fields + 1,
                            !quoted ? "a quote inside a field without quotes"
                            : end   ? "text after the closing quote"
                                    : "the quote is not closed");
        if (b->n_fields == CALC_BATCH_COLUMNS)
            return occ_fail(err, OCC_E_INVALID, "more than %d fields", CALC_BATCH_COLUMNS);
        add_field(b, at, end);
        if (!*end)
            return 0;
        at = end;
    }
}

static void put_bytes(const struct batch *b, const char *begin, const char *end)
{
    (void)fwrite(begin, 1, (size_t)(end - begin), b->out);
}

/* Writes the row's fields unchanged, always as many as the heading has. Formulas get an apostrophe. */
static void put_fields(const struct batch *b)
{
    size_t n = b->n_fields < b->columns ? b->n_fields : b->columns;
    const char *written = b->fields[0].raw;
    for (size_t i = 0; i < n; i++) {
        const struct field *field = &b->fields[i];
        int quote = *field->raw == '"' ? 1 : 0;
        if (cli_csv_is_formula(field->raw + quote, (size_t)(field->raw_bytes - 2 * quote))) {
            put_bytes(b, written, field->raw + quote);
            (void)fputc('\'', b->out);
            written = field->raw + quote;
        }
    }
    if (n > 0)
        put_bytes(b, written, b->fields[n - 1].raw + b->fields[n - 1].raw_bytes);
    for (size_t i = n > 0 ? n : 1; i < b->columns; i++)
        (void)fputc(',', b->out);
}

/* ---- heading ---- */

static int read_column(struct batch *b, size_t index, struct occ_error *err)
{
    char name[64];
    const char *known[INPUTS + 1] = {NULL};
    (void)snprintf(name, sizeof name, "%.*s", b->fields[index].bytes, b->fields[index].text);
    occ_text_sanitise(name);
    for (size_t i = 0; i < INPUTS; i++) {
        known[i] = inputs[i].column;
        if (strcmp(known[i], name) != 0)
            continue;
        if (b->field_of[i] != SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is there twice", name);
        b->field_of[i] = index;
        return 0;
    }
    for (size_t i = 0; i < RESULTS; i++)
        if (strcmp(results[i], name) == 0)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is the name of a result", name);
    const char *nearest = strlen(name) > 2 ? occ_text_nearest(name, known) : NULL;
    if (nearest)
        return occ_fail(err, OCC_E_INVALID, "unknown column '%s'; did you mean '%s'?", name, nearest);
    (void)fprintf(b->talk, "occq calc: unknown column '%s' is only copied\n", name);
    return 0;
}

static int check_columns(const struct batch *b, struct occ_error *err)
{
    if (b->field_of[GPU] == SIZE_MAX && b->field_of[CC] == SIZE_MAX)
        return occ_fail(err, OCC_E_INVALID, "column 'gpu' (or 'cc' with 'sms') is missing");
    if (b->field_of[CC] != SIZE_MAX && b->field_of[SMS] == SIZE_MAX)
        return occ_fail(err, OCC_E_INVALID,
                        "column 'sms' is missing: 'cc' alone does not determine the number of SMs");
    for (size_t i = 0; i < INPUTS; i++)
        if (inputs[i].required && b->field_of[i] == SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is missing", inputs[i].column);
    return 0;
}

static int read_heading(struct batch *b, const char *line, struct occ_error *err)
{
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0) /* UTF-8 byte order mark, written by spreadsheets */
        line += 3;
    for (size_t i = 0; i < INPUTS; i++)
        b->field_of[i] = SIZE_MAX;
    int status = split(b, line, err);
    for (size_t i = 0; i < b->n_fields && status == 0; i++)
        status = read_column(b, i, err);
    if (status == 0)
        status = check_columns(b, err);
    if (status != 0)
        return occ_error_prefix(err, "line %" PRIu64, b->line);
    b->columns = b->n_fields;
    put_fields(b);
    for (size_t i = 0; i < RESULTS; i++)
        (void)fprintf(b->out, ",%s", results[i]);
    (void)fputc('\n', b->out);
    return 0;
}

/* ---- rows ---- */

/* False if the field is empty, or another field overrides it. */
static bool is_used(const struct batch *b, size_t input)
{
    const struct field *field = b->field_of[input] == SIZE_MAX ? NULL : &b->fields[b->field_of[input]];
    if (!field || field->bytes == 0)
        return false;
    if (input == CARVEOUT) /* -1: the driver's default, like in CUDA */
        return field->bytes != 2 || memcmp(field->text, "-1", 2) != 0;
    return (input != CC && input != SMS) || !is_used(b, GPU);
}

/* Parses the row as options, which point into `texts`. */
static int read_args(const struct batch *b, char texts[INPUTS][OPTION_BYTES], struct calc_args *args,
                     struct occ_error *err)
{
    static const struct cli_command command = {.options = calc_options};
    char *argv[INPUTS + 1];
    size_t n = 0;
    if (b->n_fields != b->columns)
        return occ_fail(err, OCC_E_INVALID, "%zu fields, the heading has %zu", b->n_fields, b->columns);
    for (size_t i = 0; i < INPUTS; i++) {
        if (inputs[i].required && !is_used(b, i))
            return occ_fail(err, OCC_E_INVALID, "%s: is missing", inputs[i].column);
        if (!is_used(b, i))
            continue;
        const struct field *field = &b->fields[b->field_of[i]];
        size_t bytes = field->bytes < VALUE_MAX_BYTES ? (size_t)field->bytes : VALUE_MAX_BYTES;
        char *end = stpcpy(stpcpy(stpcpy(texts[n], "--"), inputs[i].option), "=");
        (void)strcpy(mempcpy(end, field->text, bytes), inputs[i].unit);
        argv[n] = texts[n];
        n++;
    }
    argv[n] = NULL;
    return cli_parse(&command, argv, &args->common, err);
}

static char *put_count(char *at, uint64_t value)
{
    *at++ = ',';
    return occ_put_number(at, value, 1);
}

/* Appends ",0.437500", rounded like printf. */
static char *put_millionths(char *at, double value)
{
    uint64_t whole = (uint64_t)value, millionths = (uint64_t)llrintl((value - (double)whole) * 1e6L);
    at = put_count(at, whole + millionths / 1000000);
    *at++ = '.';
    return occ_put_number(at, millionths % 1000000, 6);
}

static void put_results(FILE *out, const struct occ_result *r, bool has_grid)
{
    static const enum occ_limit limits[] = {OCC_LIMIT_WARPS, OCC_LIMIT_BLOCKS, OCC_LIMIT_REGISTERS,
                                            OCC_LIMIT_SMEM,
                                            OCC_LIMIT_BARRIERS}; /* in the order of `results` */
    char row[RESULTS * 32], limiters[64], *at = put_count(row, r->blocks_per_sm);
    at = put_millionths(put_count(at, r->warps_per_sm), r->theoretical);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        at = r->limit[limits[i]] == OCC_NO_LIMIT ? stpcpy(at, ",") : put_count(at, r->limit[limits[i]]);
    at = stpcpy(stpcpy(at, ","), occ_limiters_text(r->limiters, limiters, sizeof limiters));
    if (has_grid) {
        at = put_millionths(at, r->waves);
        at = put_count(put_count(at, r->full_waves), r->partial_blocks);
        at = put_millionths(put_millionths(at, r->expected_elapsed_low), r->expected_elapsed_high);
        at = put_millionths(put_millionths(at, r->expected_achieved_low), r->expected_achieved_high);
    }
    at = stpcpy(at, has_grid ? ",\n" : ",,,,,,,,\n");
    (void)fwrite(row, 1, (size_t)(at - row), out);
}

/* Replaces the options in a message by column names. */
static void name_columns(char message[OCC_ERROR_MESSAGE_BYTES])
{
    char from[32], rest[OCC_ERROR_MESSAGE_BYTES];
    for (size_t i = 0; i < INPUTS; i++) {
        size_t length = (size_t)snprintf(from, sizeof from, "--%s", inputs[i].option);
        for (char *at = message; (at = strstr(at, from)); at++) {
            if (isalpha((unsigned char)at[length]) || at[length] == '-')
                continue;
            (void)snprintf(rest, sizeof rest, "%s", at + length);
            (void)snprintf(at, (size_t)(message + OCC_ERROR_MESSAGE_BYTES - at), "%s%s", inputs[i].column,
                           rest);
        }
    }
}

static void put_refusal(struct batch *b, struct occ_error *why)
{
    occ_text_sanitise(why->message);
    name_columns(why->message);
    for (size_t i = 0; i < RESULTS; i++)
        (void)fputc(',', b->out);
    cli_csv_text(b->out, why->message);
    (void)fputc('\n', b->out);
    (void)fprintf(b->talk, "occq calc: line %" PRIu64 ": %s\n", b->line, why->message);
    b->totals.bad_rows++;
}

/* Finds the row's target; reuses the last row's target, since rows of one GPU usually follow each other. */
static int find_target(struct batch *b, const struct calc_args *args, struct occ_error *err)
{
    if (args->gpu && strcmp(args->gpu, b->gpu) == 0)
        return 0;
    int status = calc_args_target(args, &b->target, err);
    bool is_known = status == 0 && args->gpu && strlen(args->gpu) < sizeof b->gpu;
    (void)snprintf(b->gpu, sizeof b->gpu, "%s", is_known ? args->gpu : "");
    return status;
}

static void do_row(struct batch *b, const char *line, bool has_nul)
{
    char texts[INPUTS][OPTION_BYTES];
    struct occ_error why = OCC_ERROR_INIT;
    struct calc_args args = {.sms = 0};
    struct calc_kernel kernel;
    struct calc_case c;
    b->totals.rows++;
    int status = split(b, line, &why);
    if (status == 0 && has_nul)
        status = occ_fail(&why, OCC_E_INVALID, "a NUL byte in the line");
    if (status == 0)
        status = read_args(b, texts, &args, &why);
    put_fields(b);
    if (status == 0 && find_target(b, &args, &why) == 0 && calc_args_kernel(&args, &kernel, &why) == 0 &&
        calc_args_case(&args, &b->target, &kernel, &c, &why) == 0)
        put_results(b->out, &c.result, c.has_grid);
    else
        put_refusal(b, &why);
}

static int do_line(struct batch *b, char *line, size_t bytes, struct occ_error *err)
{
    b->line++;
    if (bytes > CALC_BATCH_LINE_BYTES)
        return occ_fail(err, OCC_E_INVALID, "line %" PRIu64 ": longer than %u bytes", b->line,
                        CALC_BATCH_LINE_BYTES);
    for (const char *end = "\n\r"; *end; end++)
        if (bytes > 0 && line[bytes - 1] == *end)
            line[--bytes] = '\0';
    if (bytes == 0)
        return 0;
    if (b->columns == 0)
        return read_heading(b, line, err);
    do_row(b, line, strlen(line) != bytes);
    return 0;
}

int calc_batch(FILE *in, FILE *out, FILE *talk, struct calc_batch_totals *ret_totals, struct occ_error *err)
{
    struct batch b = {.out = out, .talk = talk};
    _cleanup_(occ_freep) char *line = NULL;
    size_t room = 0;
    int status = 0;
    ssize_t bytes = 0;
    errno = 0;
    while (status == 0 && !ferror(out) && (bytes = getline(&line, &room, in)) >= 0)
        status = do_line(&b, line, (size_t)bytes, err);
    *ret_totals = b.totals;
    if (status == 0 && bytes < 0 && !feof(in))
        return occ_fail_errno(err, errno, "cannot read the rows");
    if (status == 0 && bytes < 0 && b.columns == 0)
        return occ_fail(err, OCC_E_INVALID, "the heading line is missing");
    return status;
}
