/*
 * The calculator's batch: reads lines into one buffer, splits and computes each in place, gathers the output in
 * another buffer. No allocation and no stdio for a good row: what the model needs is a fraction of a row's time.
 *
 * One thread.
 */
#include "calc_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "calc_target.h"
#include "support/cleanup.h"
#include "support/text.h"

enum {
    OUT_FLUSH_BYTES = 1 << 17,
    OUT_RESULT_BYTES = 4096, /* more than all results of a row */
    CACHE_SLOTS = 64,
    CACHE_KEY_BYTES = 24,
};

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

enum input {
#define X(name, column, required) IN_##name,
    INPUTS(X)
#undef X
        INPUT_COUNT
};

static const char *const input_names[] = {
#define X(name, column, required) column,
    INPUTS(X)
#undef X
        NULL};

static const bool input_required[] = {
#define X(name, column, required) required,
    INPUTS(X)
#undef X
};

static const char *const result_names[] = {
    "blocks_per_sm", "warps_per_sm",   "theoretical",      "limit_warps",       "limit_blocks",
    "limit_regs",    "limit_smem",     "limit_barriers",   "limiters",          "waves",
    "full_waves",    "partial_blocks", "expected_elapsed", "expected_achieved", "error"};

enum { RESULT_COUNT = sizeof result_names / sizeof *result_names };

static const struct calc_words words = {.threads = "threads",
                                        .registers = "regs",
                                        .static_smem = "static_smem",
                                        .dynamic_smem = "dynamic_smem",
                                        .max_dynamic_smem = "max_dynamic_smem",
                                        .smem_config = "smem_config",
                                        .grid = "grid",
                                        .cluster = "cluster",
                                        .barriers = "barriers",
                                        .carveout = "carveout"};

/* A field as it stands in the line, and without quotes and blanks around it. */
struct field {
    const char *raw, *text;
    size_t raw_bytes, bytes;
};

/* Devices that were asked for, by what stands in the row. */
struct cached {
    char key[CACHE_KEY_BYTES];
    size_t bytes; /* 0: free */
    struct occ_device device;
};

struct batch {
    calc_batch_reader *reader;
    void *from;
    FILE *out, *talk;
    char *in;          /* CALC_BATCH_LINE_BYTES */
    size_t start, end; /* what is read and not yet done */
    char *gathered;    /* output */
    size_t n_gathered;
    uint64_t line;
    size_t columns;            /* of the heading; 0: not read yet */
    size_t place[INPUT_COUNT]; /* field of an input; SIZE_MAX: not there */
    struct field fields[CALC_BATCH_COLUMNS + 1];
    size_t n_fields;
    struct cached cache[CACHE_SLOTS];
    struct calc_batch_totals totals;
};

/* ---- output ---- */

static void flush(struct batch *b)
{
    (void)fwrite(b->gathered, 1, b->n_gathered, b->out);
    b->n_gathered = 0;
}

static void put(struct batch *b, const char *text, size_t bytes)
{
    memcpy(b->gathered + b->n_gathered, text, bytes);
    b->n_gathered += bytes;
}

static void put_char(struct batch *b, char c)
{
    b->gathered[b->n_gathered++] = c;
}

static void put_number(struct batch *b, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(b, digits + at, sizeof digits - at);
}

/* As "%.6f": `scaled` is rounded, what its rounding lost decides the ties. */
static void put_real(struct batch *b, double real)
{
    double scaled = real * 1e6, lost = fma(real, 1e6, -scaled);
    if (!(scaled < 4e15)) {
        char text[64];
        put(b, text, (size_t)snprintf(text, sizeof text, "%.6f", real));
        return;
    }
    uint64_t whole = (uint64_t)scaled;
    double rest = scaled - (double)whole - 0.5;
    whole += rest > 0 || (rest >= 0 && (lost > 0 || (lost >= 0 && whole % 2 == 1)));
    put_number(b, whole / 1000000);
    char digits[7] = ".000000";
    uint64_t fraction = whole % 1000000;
    for (size_t i = 6; i > 0; i--, fraction /= 10)
        digits[i] = (char)('0' + fraction % 10);
    put(b, digits, sizeof digits);
}

static void put_quoted(struct batch *b, const char *text)
{
    put_char(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            put_char(b, '"');
        put_char(b, *text);
    }
    put_char(b, '"');
}

/* The row's fields as they came; always as many as the heading has. */
static void put_fields(struct batch *b)
{
    for (size_t i = 0; i < b->columns; i++) {
        if (i > 0)
            put_char(b, ',');
        if (i < b->n_fields)
            put(b, b->fields[i].raw, b->fields[i].raw_bytes);
    }
}

static void put_limit(struct batch *b, uint32_t limit)
{
    put_char(b, ',');
    if (limit != OCC_NO_LIMIT)
        put_number(b, limit);
}

static void put_waves(struct batch *b, const struct occ_result *r)
{
    put_real(b, r->waves);
    put_char(b, ',');
    put_number(b, r->full_waves);
    put_char(b, ',');
    put_number(b, r->partial_blocks);
    put_char(b, ',');
    put_real(b, r->expected_elapsed);
    put_char(b, ',');
    put_real(b, r->expected_achieved);
}

/* Without a grid nothing is known about waves. */
static void put_results(struct batch *b, const struct occ_result *r, bool grid_known)
{
    char limiters[64];
    put_char(b, ',');
    put_number(b, r->blocks_per_sm);
    put_char(b, ',');
    put_number(b, r->warps_per_sm);
    put_char(b, ',');
    put_real(b, r->theoretical);
    put_limit(b, r->limit[OCC_LIMIT_WARPS]);
    put_limit(b, r->limit[OCC_LIMIT_BLOCKS]);
    put_limit(b, r->limit[OCC_LIMIT_REGISTERS]);
    put_limit(b, r->limit[OCC_LIMIT_SMEM]);
    put_limit(b, r->limit[OCC_LIMIT_BARRIERS]);
    put_char(b, ',');
    (void)occ_limiters_text(r->limiters, limiters, sizeof limiters);
    put(b, limiters, strlen(limiters));
    put_char(b, ',');
    if (grid_known)
        put_waves(b, r);
    else
        put(b, ",,,,", 4);
    put(b, ",\n", 2);
}

static void put_refusal(struct batch *b, struct occ_error *why)
{
    occ_text_sanitise(why->message);
    for (size_t i = 0; i < RESULT_COUNT; i++)
        put_char(b, ',');
    put_quoted(b, why->message);
    put_char(b, '\n');
    (void)fprintf(b->talk, "occq calc: line %" PRIu64 ": %s\n", b->line, why->message);
    b->totals.bad_rows++;
}

/* ---- splitting ---- */

static void set_field(struct field *field, const char *begin, const char *end, bool quoted)
{
    field->raw = begin;
    field->raw_bytes = (size_t)(end - begin);
    if (quoted) {
        begin++;
        end--;
    }
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    field->text = begin;
    field->bytes = (size_t)(end - begin);
}

/* The end of the field at `at`, after its closing quote; NULL: there is none. */
static const char *quoted_end(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at != '"')
            continue;
        if (at + 1 == end || at[1] != '"')
            return at + 1;
        at++;
    }
    return NULL;
}

/* The end of an unquoted field; NULL: a quote stands in it. */
static const char *plain_end(const char *at, const char *end)
{
    while (at < end && *at != ',') {
        if (*at == '"')
            return NULL;
        at++;
    }
    return at;
}

static int split(struct batch *b, const char *at, const char *end, struct occ_error *err)
{
    for (b->n_fields = 0;; at++) {
        bool quoted = at < end && *at == '"';
        const char *stop = quoted ? quoted_end(at, end) : plain_end(at, end);
        if (!stop || (stop < end && *stop != ','))
            return occ_fail(err, OCC_E_INVALID, "field %zu: %s", b->n_fields + 1,
                            !quoted ? "a quote inside a field without quotes"
                            : stop  ? "text after the closing quote"
                                    : "the quote is not closed");
        if (b->n_fields == CALC_BATCH_COLUMNS)
            return occ_fail(err, OCC_E_INVALID, "more than %d fields", CALC_BATCH_COLUMNS);
        set_field(&b->fields[b->n_fields++], at, stop, quoted);
        if (stop == end)
            return 0;
        at = stop;
    }
}

/* ---- heading ---- */

static size_t find_word(const char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0)
            return i;
    return n;
}

static int read_column(struct batch *b, size_t index, struct occ_error *err)
{
    char name[64];
    const struct field *field = &b->fields[index];
    (void)snprintf(name, sizeof name, "%.*s",
                   field->bytes < sizeof name ? (int)field->bytes : (int)sizeof name - 1, field->text);
    occ_text_sanitise(name);
    size_t input = find_word(input_names, INPUT_COUNT, name);
    if (input < INPUT_COUNT) {
        if (b->place[input] != SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is there twice", name);
        b->place[input] = index;
        return 0;
    }
    if (find_word(result_names, RESULT_COUNT, name) < RESULT_COUNT)
        return occ_fail(err, OCC_E_INVALID, "column '%s' is the name of a result", name);
    const char *near = strlen(name) > 2 ? occ_text_nearest(name, input_names) : NULL;
    if (near)
        return occ_fail(err, OCC_E_INVALID, "unknown column '%s'; did you mean '%s'?", name, near);
    (void)fprintf(b->talk, "occq calc: column '%s' is passed on, nothing reads it\n", name);
    return 0;
}

static int check_columns(const struct batch *b, struct occ_error *err)
{
    bool has_gpu = b->place[IN_GPU] != SIZE_MAX, has_cc = b->place[IN_CC] != SIZE_MAX;
    if (!has_gpu && !has_cc)
        return occ_fail(err, OCC_E_INVALID, "column 'gpu' (or 'cc' with 'sms') is missing");
    if (has_cc && b->place[IN_SMS] == SIZE_MAX)
        return occ_fail(err, OCC_E_INVALID, "column 'sms' is missing: 'cc' does not say how many SMs");
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (input_required[i] && b->place[i] == SIZE_MAX)
            return occ_fail(err, OCC_E_INVALID, "column '%s' is missing", input_names[i]);
    return 0;
}

static int read_heading(struct batch *b, const char *at, const char *end, struct occ_error *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8's byte order mark, as spreadsheets write it */
    if ((size_t)(end - at) >= sizeof mark - 1 && memcmp(at, mark, sizeof mark - 1) == 0)
        at += sizeof mark - 1;
    for (size_t i = 0; i < INPUT_COUNT; i++)
        b->place[i] = SIZE_MAX;
    int status = split(b, at, end, err);
    for (size_t i = 0; i < b->n_fields && status == 0; i++)
        status = read_column(b, i, err);
    if (status == 0)
        status = check_columns(b, err);
    if (status != 0)
        return occ_error_prefix(err, "line %" PRIu64, b->line);
    b->columns = b->n_fields;
    put_fields(b);
    for (size_t i = 0; i < RESULT_COUNT; i++) {
        put_char(b, ',');
        put(b, result_names[i], strlen(result_names[i]));
    }
    put_char(b, '\n');
    return 0;
}

/* ---- one row ---- */

static const struct field *field_of(const struct batch *b, enum input input)
{
    static const struct field none = {"", "", 0, 0};
    return b->place[input] == SIZE_MAX ? &none : &b->fields[b->place[input]];
}

static int fail_number(enum input input, const struct field *field, const char *why, struct occ_error *err)
{
    return occ_fail(err, OCC_E_INVALID, "%s: '%.*s' %s", input_names[input],
                    field->bytes < 64 ? (int)field->bytes : 64, field->text, why);
}

/* Reads digits; false: none, or over 32 bits. */
static bool take_digits(const char **at, const char *end, uint32_t *ret_value)
{
    uint64_t value = 0;
    const char *begin = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (uint64_t)(**at - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *ret_value = (uint32_t)value;
    return *at > begin;
}

/* An empty field leaves *ret_value alone, where it may be empty. */
static int read_number(const struct batch *b, enum input input, uint32_t *ret_value, struct occ_error *err)
{
    const struct field *field = field_of(b, input);
    const char *at = field->text, *end = at + field->bytes;
    if (field->bytes == 0)
        return input_required[input] ? occ_fail(err, OCC_E_INVALID, "%s: is missing", input_names[input]) : 0;
    if (!take_digits(&at, end, ret_value))
        return fail_number(input, field,
                           at < end && *at >= '0' && *at <= '9' ? "is too large" : "is not a whole number",
                           err);
    return at == end ? 0 : fail_number(input, field, "is not a whole number", err);
}

/* "250" or "10x5x5". */
static int read_dimensions(const struct batch *b, enum input input, uint32_t dimensions[3],
                           struct occ_error *err)
{
    const struct field *field = field_of(b, input);
    const char *at = field->text, *end = at + field->bytes;
    if (field->bytes == 0)
        return 0;
    for (int axis = 0; axis < 3; axis++) {
        if (!take_digits(&at, end, &dimensions[axis]))
            break;
        if (at == end)
            return 0;
        if (*at++ != 'x')
            break;
    }
    return fail_number(input, field, "is not a number of blocks (250, 10x5, 10x5x5)", err);
}

/* Percent; -1 is the driver's default, as CUDA has it. */
static int read_carveout(const struct batch *b, int32_t *ret_percent, struct occ_error *err)
{
    const struct field *field = field_of(b, IN_CARVEOUT);
    uint32_t percent = 0;
    if (field->bytes == 0 || (field->bytes == 2 && memcmp(field->text, "-1", 2) == 0))
        return 0;
    if (read_number(b, IN_CARVEOUT, &percent, err) != 0)
        return OCC_E_INVALID;
    if (percent > 100)
        return fail_number(IN_CARVEOUT, field, "is out of range (0 to 100 percent)", err);
    *ret_percent = (int32_t)percent;
    return 0;
}

static int find_device(const struct batch *b, const struct field *gpu, struct occ_device *ret_device,
                       struct occ_error *err)
{
    char word[CALC_NAME_BYTES];
    const struct field *field = gpu->bytes ? gpu : field_of(b, IN_CC);
    struct calc_target target;
    uint32_t sms = 0;
    int status;
    if (field->bytes == 0)
        return occ_fail(err, OCC_E_INVALID, "%s: is missing",
                        input_names[b->place[IN_GPU] == SIZE_MAX ? IN_CC : IN_GPU]);
    (void)snprintf(word, sizeof word, "%.*s",
                   field->bytes < sizeof word ? (int)field->bytes : (int)sizeof word - 1, field->text);
    if (gpu->bytes) {
        status = calc_target_named(word, &target, err);
    } else {
        if (field_of(b, IN_SMS)->bytes == 0)
            return occ_fail(err, OCC_E_INVALID, "sms: is missing");
        if (read_number(b, IN_SMS, &sms, err) != 0)
            return OCC_E_INVALID;
        status = calc_target_capability(word, sms, &target, err);
    }
    if (status != 0)
        return occ_error_prefix(err, "%s", gpu->bytes ? "gpu" : "cc");
    *ret_device = target.device;
    return 0;
}

/* Devices by name go through the cache; with SMs of their own they are found quickly anyway. */
static int read_device(struct batch *b, const struct occ_device **ret_device, struct occ_device *own,
                       struct occ_error *err)
{
    const struct field *gpu = field_of(b, IN_GPU);
    *ret_device = own;
    if (gpu->bytes == 0 || gpu->bytes > CACHE_KEY_BYTES)
        return find_device(b, gpu, own, err);
    uint32_t hash = 0;
    for (size_t i = 0; i < gpu->bytes; i++)
        hash = hash * 31 + (unsigned char)gpu->text[i];
    struct cached *slot = &b->cache[(hash ^ hash >> 7) % CACHE_SLOTS];
    if (slot->bytes != gpu->bytes || memcmp(slot->key, gpu->text, gpu->bytes) != 0) {
        if (find_device(b, gpu, &slot->device, err) != 0)
            return OCC_E_INVALID;
        memcpy(slot->key, gpu->text, gpu->bytes);
        slot->bytes = gpu->bytes;
    }
    *ret_device = &slot->device;
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
        status = read_number(b, numbers[i].input, numbers[i].value, err);
    launch->max_dynamic_smem_known = field_of(b, IN_MAX_DYNAMIC_SMEM)->bytes > 0;
    status = status ? status : read_dimensions(b, IN_CLUSTER, launch->cluster, err);
    for (int axis = 0; axis < 3 && status == 0; axis++)
        launch->grid[axis] = launch->cluster[axis] ? launch->cluster[axis] : 1;
    if (status == 0 && field_of(b, IN_GRID)->bytes)
        launch->grid[1] = launch->grid[2] = 1;
    status = status ? status : read_dimensions(b, IN_GRID, launch->grid, err);
    return status ? status : read_carveout(b, &launch->carveout_percent, err);
}

static int compute(struct batch *b, struct occ_result *result, struct occ_error *err)
{
    const struct occ_device *device;
    struct occ_device own;
    struct occ_launch launch = {.block = {0, 1, 1}, .cluster = {1, 1, 1}, .carveout_percent = -1};
    if (b->n_fields != b->columns)
        return occ_fail(err, OCC_E_INVALID, "%zu fields, the heading has %zu", b->n_fields, b->columns);
    if (read_device(b, &device, &own, err) != 0 || read_launch(b, &launch, err) != 0 ||
        calc_check(device, &launch, &words, err) != 0)
        return OCC_E_INVALID;
    enum occ_status status = occ_analyse(device, &launch, result);
    return status == OCC_OK ? 0 : calc_refuse(status, device, &launch, &words, err);
}

static void do_row(struct batch *b, const char *at, const char *end)
{
    struct occ_error why = OCC_ERROR_INIT;
    struct occ_result result;
    b->totals.rows++;
    int status = split(b, at, end, &why);
    if (status == 0)
        status = compute(b, &result, &why);
    put_fields(b);
    if (status == 0)
        put_results(b, &result, field_of(b, IN_GRID)->bytes > 0);
    else
        put_refusal(b, &why);
    if (b->n_gathered > OUT_FLUSH_BYTES)
        flush(b);
}

/* ---- lines ---- */

static int do_line(struct batch *b, const char *at, const char *end, struct occ_error *err)
{
    b->line++;
    if (end > at && end[-1] == '\r')
        end--;
    if (at == end)
        return 0;
    if (b->columns == 0)
        return read_heading(b, at, end, err);
    do_row(b, at, end);
    return 0;
}

/* Whole lines; at the end of the input also what is left. */
static int do_lines(struct batch *b, bool last, struct occ_error *err)
{
    int status = 0;
    while (b->start < b->end && status == 0) {
        const char *at = b->in + b->start;
        const char *end = memchr(at, '\n', b->end - b->start);
        if (!end && !last)
            return 0;
        b->start = end ? (size_t)(end + 1 - b->in) : b->end;
        status = do_line(b, at, end ? end : b->in + b->end, err);
    }
    return status;
}

/* Output goes out before we wait for more input: a pipe's reader sees what can be known. */
static int refill(struct batch *b, bool *ret_last, struct occ_error *err)
{
    ssize_t got;
    memmove(b->in, b->in + b->start, b->end - b->start);
    b->end -= b->start;
    b->start = 0;
    if (b->end == CALC_BATCH_LINE_BYTES)
        return occ_fail(err, OCC_E_INVALID, "line %" PRIu64 ": longer than %u bytes", b->line + 1,
                        CALC_BATCH_LINE_BYTES);
    flush(b);
    (void)fflush(b->out);
    do
        got = b->reader(b->from, b->in + b->end, CALC_BATCH_LINE_BYTES - b->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return occ_fail_errno(err, errno, "cannot read the rows");
    b->end += (size_t)got;
    *ret_last = got == 0;
    return 0;
}

static int do_input(struct batch *b, struct occ_error *err)
{
    bool last = false;
    int status = 0;
    while (status == 0 && !last && !ferror(b->out)) {
        status = refill(b, &last, err);
        if (status == 0)
            status = do_lines(b, last, err);
    }
    flush(b);
    if (status == 0 && last && b->columns == 0)
        return occ_fail(err, OCC_E_INVALID, "the heading line is missing");
    return status;
}

int calc_batch(calc_batch_reader *reader, void *from, FILE *out, FILE *talk,
               struct calc_batch_totals *ret_totals, struct occ_error *err)
{
    _cleanup_(occ_freep) struct batch *b = calloc(1, sizeof *b);
    _cleanup_(occ_freep) char *in = malloc(CALC_BATCH_LINE_BYTES);
    _cleanup_(occ_freep) char *gathered =
        malloc(OUT_FLUSH_BYTES + CALC_BATCH_LINE_BYTES + CALC_BATCH_COLUMNS + OUT_RESULT_BYTES);
    if (!b || !in || !gathered)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    b->reader = reader;
    b->from = from;
    b->out = out;
    b->talk = talk;
    b->in = in;
    b->gathered = gathered;
    int status = do_input(b, err);
    *ret_totals = b->totals;
    return status;
}
