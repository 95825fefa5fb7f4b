/* The calculator's batch; see calc_batch.h. One thread. */
#include "calc_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "calc_target.h"
#include "cli/options.h"
#include "support/cleanup.h"
#include "support/text.h"

/* Columns that are read. X(NAME, column, required) */
#define INPUTS(X)                                                                                            \
    X(GPU, "gpu", false)                                                                                     \
    X(CC, "cc", false)                                                                                       \
    X(SMS, "sms", false)                                                                                     \
    X(THREADS, "threads", true)                                                                              \
    X(REGS, "regs", true)                                                                                    \
    X(STATIC_SMEM, "static_smem", true)                                                                      \
    X(DYNAMIC_SMEM, "dynamic_smem", true)                                                                    \
    X(GRID, "grid", false)                                                                                   \
    X(CARVEOUT, "carveout", false)                                                                           \
    X(SMEM_CONFIG, "smem_config", false)                                                                     \
    X(MAX_DYNAMIC_SMEM, "max_dynamic_smem", false)                                                           \
    X(BARRIERS, "barriers", false)                                                                           \
    X(CLUSTER, "cluster", false)

#define INPUT_INDEX(name, column, required) IN_##name,
enum input { INPUTS(INPUT_INDEX) INPUT_COUNT };

#define INPUT_NAME(name, column, required)     column,
#define INPUT_REQUIRED(name, column, required) required,
static const char *const input_names[] = {INPUTS(INPUT_NAME) NULL};
static const bool input_required[] = {INPUTS(INPUT_REQUIRED)};

static const char *const result_names[] = {
    "blocks_per_sm",   "warps_per_sm",        "theoretical",      "limit_warps",       "limit_blocks",
    "limit_registers", "limit_shared_memory", "limit_barriers",   "limiters",          "waves",
    "full_waves",      "partial_blocks",      "expected_elapsed", "expected_achieved", "error"};

enum { RESULT_COUNT = sizeof result_names / sizeof *result_names };

static const struct calc_labels labels = {.threads = "threads",
                                          .registers = "regs",
                                          .static_smem = "static_smem",
                                          .dynamic_smem = "dynamic_smem",
                                          .max_dynamic_smem = "max_dynamic_smem",
                                          .smem_config = "smem_config",
                                          .grid = "grid",
                                          .cluster = "cluster",
                                          .barriers = "barriers",
                                          .carveout = "carveout"};

/* A field as it stands in the line, and without quotes and the blanks around it. */
struct field {
    const char *raw, *text;
    int raw_bytes, bytes;
};

struct batch {
    FILE *out, *talk;
    uint64_t line;
    size_t columns;            /* of the heading; 0: not read yet */
    size_t place[INPUT_COUNT]; /* field of an input; SIZE_MAX: there is none */
    struct field fields[CALC_BATCH_COLUMNS];
    size_t n_fields;
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

/* Past the closing quote of the field at `at`; NULL: there is none. */
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

/* ---- heading ---- */

static size_t find_name(const char *const *list, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(list[i], name) != 0)
        i++;
    return i;
}

static int read_column(struct batch *b, size_t index, struct occ_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", b->fields[index].bytes, b->fields[index].text);
    occ_text_sanitise(name);
    size_t input = find_name(input_names, INPUT_COUNT, name);
    if (input < INPUT_COUNT) {
        if (b->place[input] != SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is there twice", name);
        b->place[input] = index;
        return 0;
    }
    if (find_name(result_names, RESULT_COUNT, name) < RESULT_COUNT)
        return occ_fail(err, OCC_E_INVALID, "column '%s' is the name of a result", name);
    const char *nearest = strlen(name) > 2 ? occ_text_nearest(name, input_names) : NULL;
    if (nearest)
        return occ_fail(err, OCC_E_INVALID, "unknown column '%s'; did you mean '%s'?", name, nearest);
    (void)fprintf(b->talk, "occq calc: unknown column '%s' is only copied\n", name);
    return 0;
}

static int check_columns(const struct batch *b, struct occ_error *err)
{
    bool has_gpu = b->place[IN_GPU] != SIZE_MAX, has_cc = b->place[IN_CC] != SIZE_MAX;
    if (!has_gpu && !has_cc)
        return occ_fail(err, OCC_E_INVALID, "column 'gpu' (or 'cc' with 'sms') is missing");
    if (has_cc && b->place[IN_SMS] == SIZE_MAX)
        return occ_fail(err, OCC_E_INVALID,
                        "column 'sms' is missing: 'cc' alone does not determine the number of SMs");
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (input_required[i] && b->place[i] == SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is missing", input_names[i]);
    return 0;
}

/* The row's fields as they came; always as many as the heading has. */
static void put_fields(const struct batch *b)
{
    size_t n = b->n_fields < b->columns ? b->n_fields : b->columns;
    const struct field *last = n > 0 ? &b->fields[n - 1] : NULL;
    if (last)
        (void)fwrite(b->fields[0].raw, 1, (size_t)(last->raw + last->raw_bytes - b->fields[0].raw), b->out);
    for (size_t i = n > 0 ? n : 1; i < b->columns; i++)
        (void)fputc(',', b->out);
}

static int read_heading(struct batch *b, const char *line, struct occ_error *err)
{
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0) /* UTF-8's byte order mark, as spreadsheets write it */
        line += 3;
    for (size_t i = 0; i < INPUT_COUNT; i++)
        b->place[i] = SIZE_MAX;
    int status = split(b, line, err);
    for (size_t i = 0; i < b->n_fields && status == 0; i++)
        status = read_column(b, i, err);
    if (status == 0)
        status = check_columns(b, err);
    if (status != 0)
        return occ_error_prefix(err, "line %" PRIu64, b->line);
    b->columns = b->n_fields;
    put_fields(b);
    for (size_t i = 0; i < RESULT_COUNT; i++)
        (void)fprintf(b->out, ",%s", result_names[i]);
    (void)fputc('\n', b->out);
    return 0;
}

/* ---- values of a row ---- */

enum { VALUE_BYTES = 64 };

static bool is_empty(const struct batch *b, enum input input)
{
    return b->place[input] == SIZE_MAX || b->fields[b->place[input]].bytes == 0;
}

/* The field's text, cut; "": it is empty or there is no such column. */
static const char *text_of(const struct batch *b, enum input input, char buffer[VALUE_BYTES])
{
    const struct field *field = is_empty(b, input) ? NULL : &b->fields[b->place[input]];
    size_t bytes = field ? (size_t)field->bytes : 0;
    bytes = bytes < VALUE_BYTES ? bytes : VALUE_BYTES - 1;
    if (field)
        memcpy(buffer, field->text, bytes);
    buffer[bytes] = '\0';
    return buffer;
}

/* An empty field leaves *ret_value alone, where it may be empty. */
static int read_number(const struct batch *b, enum input input, uint32_t max, uint32_t *ret_value,
                       struct occ_error *err)
{
    char text[VALUE_BYTES];
    uint64_t value = 0;
    if (is_empty(b, input))
        return input_required[input] ? occ_fail(err, OCC_E_INVALID, "%s: is missing", input_names[input]) : 0;
    if (occ_parse_u64(text_of(b, input, text), 0, max, &value, err) != 0)
        return occ_error_prefix(err, "%s", input_names[input]);
    *ret_value = (uint32_t)value;
    return 0;
}

/* "250" or "10x5x5". */
static int read_dimensions(const struct batch *b, enum input input, uint32_t dimensions[3],
                           struct occ_error *err)
{
    char text[VALUE_BYTES];
    if (is_empty(b, input) || cli_parse_size(text_of(b, input, text), dimensions, err) == 0)
        return 0;
    return occ_error_prefix(err, "%s", input_names[input]);
}

/* Percent; -1 is the driver's default, as CUDA has it. */
static int read_carveout(const struct batch *b, int32_t *ret_percent, struct occ_error *err)
{
    char text[VALUE_BYTES];
    uint32_t percent = 0;
    if (is_empty(b, IN_CARVEOUT) || strcmp(text_of(b, IN_CARVEOUT, text), "-1") == 0)
        return 0;
    if (read_number(b, IN_CARVEOUT, 100, &percent, err) != 0)
        return OCC_E_INVALID;
    *ret_percent = (int32_t)percent;
    return 0;
}

static int read_device(const struct batch *b, struct occ_device *ret_device, struct occ_error *err)
{
    enum input input = is_empty(b, IN_GPU) ? IN_CC : IN_GPU;
    char name[VALUE_BYTES];
    struct calc_target target;
    uint32_t sms = 0;
    if (is_empty(b, input))
        return occ_fail(err, OCC_E_INVALID, "%s: is missing", b->place[IN_GPU] == SIZE_MAX ? "cc" : "gpu");
    if (input == IN_CC && is_empty(b, IN_SMS))
        return occ_fail(err, OCC_E_INVALID, "sms: is missing");
    if (input == IN_CC && read_number(b, IN_SMS, UINT32_MAX, &sms, err) != 0)
        return OCC_E_INVALID;
    (void)text_of(b, input, name);
    if ((input == IN_GPU ? calc_target_named(name, &target, err)
                         : calc_target_capability(name, sms, &target, err)) != 0)
        return occ_error_prefix(err, "%s", input_names[input]);
    *ret_device = target.device;
    return 0;
}

static int read_launch(const struct batch *b, struct occ_launch *launch, struct occ_error *err)
{
    const struct {
        enum input input;
        uint32_t *value;
    } numbers[] = {{IN_THREADS, &launch->block[0]},
                   {IN_REGS, &launch->registers_per_thread},
                   {IN_STATIC_SMEM, &launch->static_smem_bytes},
                   {IN_DYNAMIC_SMEM, &launch->dynamic_smem_bytes},
                   {IN_SMEM_CONFIG, &launch->smem_config_bytes},
                   {IN_MAX_DYNAMIC_SMEM, &launch->max_dynamic_smem_bytes},
                   {IN_BARRIERS, &launch->barriers}};
    int status = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == 0; i++)
        status = read_number(b, numbers[i].input, UINT32_MAX, numbers[i].value, err);
    launch->max_dynamic_smem_known = !is_empty(b, IN_MAX_DYNAMIC_SMEM);
    status = status ? status : read_dimensions(b, IN_CLUSTER, launch->cluster, err);
    for (int axis = 0; axis < 3 && status == 0; axis++)
        launch->grid[axis] = launch->cluster[axis] ? launch->cluster[axis] : 1;
    status = status ? status : read_dimensions(b, IN_GRID, launch->grid, err);
    return status ? status : read_carveout(b, &launch->carveout_percent, err);
}

/* ---- rows ---- */

/* Without a grid waves are not known. */
static void put_results(FILE *out, const struct occ_result *r, bool has_grid)
{
    static const enum occ_limit limits[] = {OCC_LIMIT_WARPS, OCC_LIMIT_BLOCKS, OCC_LIMIT_REGISTERS,
                                            OCC_LIMIT_SMEM,
                                            OCC_LIMIT_BARRIERS}; /* in the order of result_names */
    char limiters[64];
    (void)fprintf(out, ",%u,%u,%.6f", r->blocks_per_sm, r->warps_per_sm, r->theoretical);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (r->limit[limits[i]] == OCC_NO_LIMIT)
            (void)fputc(',', out);
        else
            (void)fprintf(out, ",%u", r->limit[limits[i]]);
    (void)fprintf(out, ",%s,", occ_limiters_text(r->limiters, limiters, sizeof limiters));
    if (has_grid)
        (void)fprintf(out, "%.6f,%" PRIu64 ",%" PRIu64 ",%.6f,%.6f,\n", r->waves, r->full_waves,
                      r->partial_blocks, r->expected_elapsed, r->expected_achieved);
    else
        (void)fputs(",,,,,\n", out);
}

static void put_refusal(struct batch *b, struct occ_error *why)
{
    occ_text_sanitise(why->message);
    for (size_t i = 0; i < RESULT_COUNT; i++)
        (void)fputc(',', b->out);
    (void)fputc('"', b->out);
    for (const char *at = why->message; *at; at++)
        (void)fprintf(b->out, *at == '"' ? "\"\"" : "%c", *at);
    (void)fputs("\"\n", b->out);
    (void)fprintf(b->talk, "occq calc: line %" PRIu64 ": %s\n", b->line, why->message);
    b->totals.bad_rows++;
}

static int compute(const struct batch *b, struct occ_result *result, struct occ_error *err)
{
    struct occ_device device;
    struct occ_launch launch = {.block = {0, 1, 1}, .cluster = {1, 1, 1}, .carveout_percent = -1};
    if (b->n_fields != b->columns)
        return occ_fail(err, OCC_E_INVALID, "%zu fields, the heading has %zu", b->n_fields, b->columns);
    if (read_device(b, &device, err) != 0 || read_launch(b, &launch, err) != 0 ||
        calc_check(&device, &launch, &labels, err) != 0)
        return OCC_E_INVALID;
    enum occ_status status = occ_analyse(&device, &launch, result);
    return status == OCC_OK ? 0 : calc_refuse(status, &device, &launch, &labels, err);
}

static void do_row(struct batch *b, const char *line, bool has_nul)
{
    struct occ_error why = OCC_ERROR_INIT;
    struct occ_result result;
    b->totals.rows++;
    int status = split(b, line, &why);
    if (status == 0 && has_nul)
        status = occ_fail(&why, OCC_E_INVALID, "a NUL byte in the line");
    if (status == 0)
        status = compute(b, &result, &why);
    put_fields(b);
    if (status == 0)
        put_results(b->out, &result, !is_empty(b, IN_GRID));
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
