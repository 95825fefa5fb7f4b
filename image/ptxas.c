/*
 * Reader of `ptxas -v`, line by line: "Compiling entry function" opens a kernel, "Function properties for"
 * names the function whose stack and spills follow (those of other functions are skipped), "Used N registers"
 * closes the kernel. Parallel builds may interleave the output of several compilers: a "Used" line without an
 * open kernel is an error, because its kernel is unknown.
 *
 * Pure apart from malloc; any thread.
 */
#include "ptxas.h"

#include "bytes.h"
#include "fail.h"

#include <stdlib.h>

#define MAX_SPILL_BYTES (16u << 20) /* above a stack's size: repeated spills of a register all count */

struct reader {
    struct occ_ptxas *report;
    size_t capacity;
    struct occ_ptxas_kernel *open; /* before its "Used" line; NULL: none */
    bool properties_of_open;       /* the next "bytes stack frame" line belongs to it */
    uint32_t line;
    struct occ_image_error *err;
};

#define broken(reader, ...) occ_image_fail((reader)->err, OCC_IMAGE_E_INVALID, __VA_ARGS__)

/* ---- text ---- */

/* The text after the first `word`; at NULL: none. */
static struct span behind(struct span text, const char *word)
{
    size_t length = strlen(word);
    const uint8_t *at = memmem(text.at, text.size, word, length);
    if (!at)
        return (struct span){NULL, 0};
    return span_from(text, (size_t)(at - text.at) + length);
}

static bool starts_with(struct span text, const char *word)
{
    size_t length = strlen(word);
    return text.size >= length && memcmp(text.at, word, length) == 0;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits at the start of `text`. false: none, or a number above `max`. */
static bool take_number(struct span *text, uint64_t max, uint32_t *ret)
{
    uint64_t value = 0;
    size_t at = 0;
    for (; at < text->size && is_digit(text->at[at]); at++) {
        value = value * 10 + (uint64_t)(text->at[at] - '0');
        if (value > max)
            return false;
    }
    if (at == 0)
        return false;
    *text = span_from(*text, at);
    *ret = (uint32_t)value;
    return true;
}

/* ---- values: "N unit" between commas ---- */

struct figure {
    const char *unit;
    uint32_t max;
    size_t offset;    /* in struct occ_ptxas_kernel */
    bool used_before; /* newer toolkits: "used 3 barriers" */
};

#define FIELD(name) offsetof(struct occ_ptxas_kernel, name)

static const struct figure used_figures[] = {
    {"registers", OCC_IMAGE_MAX_REGISTERS, FIELD(registers), true},
    {"barriers", OCC_IMAGE_MAX_BARRIERS, FIELD(barriers), true},
    {"bytes smem", OCC_IMAGE_MAX_SMEM_BYTES, FIELD(static_smem_bytes), false},
};

static const struct figure property_figures[] = {
    {"bytes stack frame", OCC_IMAGE_MAX_STACK_BYTES, FIELD(stack_bytes), false},
    {"bytes spill stores", MAX_SPILL_BYTES, FIELD(spill_store_bytes), false},
    {"bytes spill loads", MAX_SPILL_BYTES, FIELD(spill_load_bytes), false},
};

static struct span trimmed(struct span text)
{
    while (text.size && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = span_from(text, 1);
    while (text.size && strchr(" \t\r", text.at[text.size - 1]) && text.at[text.size - 1])
        text.size--;
    return text;
}

/* The part up to the next comma, and advances *rest behind it. */
static struct span next_part(struct span *rest)
{
    const uint8_t *comma = memchr(rest->at, ',', rest->size);
    size_t length = comma ? (size_t)(comma - rest->at) : rest->size;
    struct span part = {rest->at, length};
    *rest = span_from(*rest, length + (comma != NULL));
    return trimmed(part);
}

static bool ends_with(struct span text, const char *word)
{
    size_t length = strlen(word);
    return text.size > length && memcmp(text.at + text.size - length, word, length) == 0;
}

/* "48+16 bytes smem": the hardware allocates the sum. */
static bool take_sum(struct span *text, uint32_t max, uint32_t *ret)
{
    uint32_t sum, more;
    if (!take_number(text, max, &sum))
        return false;
    while (text->size && text->at[0] == '+') {
        *text = span_from(*text, 1);
        if (!take_number(text, max - sum, &more))
            return false;
        sum += more;
    }
    *ret = sum;
    return true;
}

/* Stores the part's number in its field. Parts without a field, such as "364 bytes cmem[0]", are skipped. */
static int use_part(struct reader *reader, const struct figure *figures, size_t count, struct span part)
{
    for (size_t i = 0; i < count; i++) {
        const struct figure *figure = &figures[i];
        struct span number = part;
        uint32_t value;
        if (!ends_with(part, figure->unit))
            continue;
        if (figure->used_before && (starts_with(number, "used ") || starts_with(number, "Used ")))
            number = span_from(number, 5);
        if (!take_sum(&number, figure->max, &value) || number.size != strlen(figure->unit) + 1)
            return broken(reader, "line %u: \"%.*s\" is not a number of %s up to %u", reader->line,
                          (int)(part.size < 60 ? part.size : 60), (const char *)part.at, figure->unit,
                          figure->max);
        memcpy((char *)reader->open + figure->offset, &value, sizeof value);
        reader->open->has_barriers |= figure->offset == FIELD(barriers);
        reader->open->has_stack |= figure->offset == FIELD(stack_bytes);
    }
    return 0;
}

static int use_parts(struct reader *reader, const struct figure *figures, size_t count, struct span text)
{
    int code = 0;
    while (!code && text.size)
        code = use_part(reader, figures, count, next_part(&text));
    return code;
}

/* ---- lines ---- */

static int make_room(struct reader *reader)
{
    struct occ_ptxas *report = reader->report;
    if (report->count == OCC_PTXAS_MAX_KERNELS)
        return occ_image_fail(reader->err, OCC_IMAGE_E_FULL, "line %u: more than %u kernels", reader->line,
                              OCC_PTXAS_MAX_KERNELS);
    if (report->count < reader->capacity)
        return 0;
    size_t capacity = reader->capacity ? 2 * reader->capacity : 16;
    struct occ_ptxas_kernel *more = realloc(report->kernels, capacity * sizeof *more);
    if (!more)
        return occ_image_fail(reader->err, OCC_IMAGE_E_NO_MEMORY, "no memory for %zu kernels", capacity);
    report->kernels = more;
    reader->capacity = capacity;
    return 0;
}

/* "name' for 'sm_90a'" */
static bool take_names(struct span text, struct span *ret_name, uint32_t *ret_sm, char *ret_suffix)
{
    const uint8_t *quote = memchr(text.at, '\'', text.size);
    if (!quote || quote == text.at || memchr(text.at, 0, (size_t)(quote - text.at)))
        return false;
    *ret_name = (struct span){text.at, (size_t)(quote - text.at)};
    struct span sm = span_from(text, ret_name->size);
    if (!starts_with(sm, "' for 'sm_"))
        return false;
    sm = span_from(sm, 10);
    *ret_suffix = 0;
    if (!take_number(&sm, 999, ret_sm))
        return false;
    if (sm.size && (sm.at[0] == 'a' || sm.at[0] == 'f')) {
        *ret_suffix = (char)sm.at[0];
        sm = span_from(sm, 1);
    }
    return sm.size && sm.at[0] == '\'';
}

static int missing_figures(struct reader *reader)
{
    return broken(reader, "line %u: kernel %.100s has no \"Used ... registers\" line", reader->open->line,
                  reader->open->name);
}

static int open_kernel(struct reader *reader, struct span text)
{
    struct span name;
    struct occ_ptxas_kernel kernel = {.line = reader->line};
    if (reader->open)
        return missing_figures(reader);
    if (!take_names(text, &name, &kernel.sm, &kernel.suffix))
        return broken(reader, "line %u: no \"'kernel' for 'sm_NN'\" after \"Compiling entry function\"",
                      reader->line);
    int code = make_room(reader);
    if (code)
        return code;
    kernel.name = strndup((const char *)name.at, name.size);
    if (!kernel.name)
        return occ_image_fail(reader->err, OCC_IMAGE_E_NO_MEMORY, "no memory for a name");
    reader->open = &reader->report->kernels[reader->report->count++];
    *reader->open = kernel;
    reader->properties_of_open = false;
    return 0;
}

static int use_properties_of(struct reader *reader, struct span text)
{
    text = trimmed(text);
    reader->properties_of_open = reader->open && text.size == strlen(reader->open->name) &&
                                 memcmp(text.at, reader->open->name, text.size) == 0;
    return 0;
}

static int use_properties(struct reader *reader, struct span line)
{
    if (!reader->properties_of_open)
        return 0;
    reader->properties_of_open = false;
    return use_parts(reader, property_figures, sizeof property_figures / sizeof *property_figures, line);
}

static int close_kernel(struct reader *reader, struct span text)
{
    if (!reader->open)
        return broken(reader, "line %u: registers without a kernel: \"Compiling entry function\" is missing",
                      reader->line);
    int code = use_parts(reader, used_figures, sizeof used_figures / sizeof *used_figures, text);
    if (!code && !reader->open->registers)
        code = broken(reader, "line %u: kernel %.100s has no registers", reader->line, reader->open->name);
    reader->open = NULL;
    reader->properties_of_open = false;
    return code;
}

static int use_line(struct reader *reader, struct span line)
{
    static const struct {
        const char *start;
        int (*use)(struct reader *, struct span);
    } kinds[] = {
        {"Compiling entry function '", open_kernel},
        {"Function properties for ", use_properties_of},
        {": Used ", close_kernel},
    };
    bool info = starts_with(line, "ptxas info");
    if (line.size > OCC_PTXAS_MAX_LINE)
        return info ? broken(reader, "line %u: %zu bytes, lines of ptxas have at most %d", reader->line,
                             line.size, OCC_PTXAS_MAX_LINE)
                    : 0;
    for (size_t i = 0; info && i < sizeof kinds / sizeof *kinds; i++) {
        struct span rest = behind(line, kinds[i].start);
        if (rest.at)
            return kinds[i].use(reader, rest);
    }
    return !info && behind(line, "bytes stack frame").at ? use_properties(reader, line) : 0;
}

static int use_text(struct reader *reader, struct span text)
{
    int code = 0;
    while (!code && text.size) {
        const uint8_t *newline = memchr(text.at, '\n', text.size);
        size_t length = newline ? (size_t)(newline - text.at) : text.size;
        reader->line++;
        code = use_line(reader, (struct span){text.at, length});
        text = span_from(text, length + (newline != NULL));
    }
    return !code && reader->open ? missing_figures(reader) : code;
}

int occ_ptxas_read(const char *text, size_t size, struct occ_ptxas **ret_report, struct occ_image_error *err)
{
    if (!text || size > OCC_PTXAS_MAX_BYTES)
        return occ_image_fail(err, text ? OCC_IMAGE_E_FULL : OCC_IMAGE_E_INVALID,
                              "a text of %zu bytes, the maximum is %llu", size,
                              (unsigned long long)OCC_PTXAS_MAX_BYTES);
    struct reader reader = {.report = calloc(1, sizeof *reader.report), .err = err};
    if (!reader.report)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    int code = use_text(&reader, (struct span){(const uint8_t *)text, size});
    if (code)
        occ_ptxas_free(reader.report);
    else
        *ret_report = reader.report;
    return code;
}

void occ_ptxas_free(struct occ_ptxas *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->count; i++)
        free((void *)(uintptr_t)report->kernels[i].name);
    free(report->kernels);
    free(report);
}
