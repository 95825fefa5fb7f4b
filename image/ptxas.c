/*
 * Reader of `ptxas -v`, line by line: "Compiling entry function" opens a kernel, "Function properties for"
 * names the function of the following stack and spills (functions that are not the open kernel are skipped),
 * "Used N registers" closes the kernel. Parallel builds may interleave the output of several compilers: a
 * "Used" line without an open kernel is an error, because its kernel is unknown.
 *
 * Pure apart from malloc; any thread.
 */
#include "ptxas.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fail.h"

#define MAX_SPILL_BYTES (16u << 20) /* above a stack's size: repeated spills of a register all count */

struct reader {
    struct occ_ptxas *report;
    size_t capacity;
    struct occ_ptxas_kernel *open; /* before its "Used" line; NULL: none */
    bool properties_of_open;       /* the next "bytes stack frame" line belongs to it */
    uint32_t line;
    char text[OCC_PTXAS_MAX_LINE + 1]; /* of the line; ends at its first NUL */
    struct occ_image_error *err;
};

#define broken(reader, ...) occ_image_fail((reader)->err, OCC_IMAGE_E_INVALID, __VA_ARGS__)

/* ---- text ---- */

/* Removes blanks at both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        text[--n] = '\0';
    return text;
}

/* Reads the digits at the start of *text. Returns false without digits, or for a number above `max`. */
static bool take_number(const char **text, uint64_t max, uint32_t *ret)
{
    size_t n = strspn(*text, "0123456789");
    uint64_t value = strtoull(*text, NULL, 10); /* too large: ULLONG_MAX */
    if (n == 0 || value > max)
        return false;
    *text += n;
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
    {NULL, 0, 0, false},
};

static const struct figure property_figures[] = {
    {"bytes stack frame", OCC_IMAGE_MAX_STACK_BYTES, FIELD(stack_bytes), false},
    {"bytes spill stores", MAX_SPILL_BYTES, FIELD(spill_store_bytes), false},
    {"bytes spill loads", MAX_SPILL_BYTES, FIELD(spill_load_bytes), false},
    {NULL, 0, 0, false},
};

/* "48+16 bytes smem": the hardware allocates the sum. */
static bool take_sum(const char **text, uint32_t max, uint32_t *ret)
{
    uint32_t sum, more;
    if (!take_number(text, max, &sum))
        return false;
    for (; **text == '+'; sum += more) {
        ++*text;
        if (!take_number(text, max - sum, &more))
            return false;
    }
    *ret = sum;
    return true;
}

/* Stores the part's number in its field. Parts without a field, such as "364 bytes cmem[0]", are skipped. */
static int use_part(struct reader *reader, const struct figure *figure, const char *part)
{
    size_t length = strlen(part);
    for (; figure->unit; figure++) {
        size_t unit = strlen(figure->unit);
        const char *number = part;
        uint32_t value;
        if (length <= unit || strcmp(part + length - unit, figure->unit) != 0)
            continue;
        if (figure->used_before && strncasecmp(number, "used ", 5) == 0)
            number += 5;
        if (!take_sum(&number, figure->max, &value) || strlen(number) != unit + 1)
            return broken(reader, "line %u: \"%.60s\" is not a number of %s up to %u", reader->line, part,
                          figure->unit, figure->max);
        memcpy((char *)reader->open + figure->offset, &value, sizeof value);
        reader->open->has_barriers |= figure->offset == FIELD(barriers);
        reader->open->has_stack |= figure->offset == FIELD(stack_bytes);
    }
    return 0;
}

static int use_parts(struct reader *reader, const struct figure *figures, char *text)
{
    int code = 0;
    while (!code && text)
        code = use_part(reader, figures, trim(strsep(&text, ",")));
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

/* "name' for 'sm_90a'"; ends `text` after the name. */
static bool take_names(char *text, struct occ_ptxas_kernel *kernel)
{
    static const char between[] = "' for 'sm_";
    char *quote = strchr(text, '\'');
    if (!quote || quote == text || strncmp(quote, between, sizeof between - 1) != 0)
        return false;
    const char *sm = quote + sizeof between - 1;
    if (!take_number(&sm, 999, &kernel->sm))
        return false;
    if (*sm == 'a' || *sm == 'f')
        kernel->suffix = *sm++;
    *quote = '\0';
    return *sm == '\'';
}

static int missing_figures(struct reader *reader)
{
    return broken(reader, "line %u: kernel %.100s has no \"Used ... registers\" line", reader->open->line,
                  reader->open->name);
}

static int open_kernel(struct reader *reader, char *text)
{
    struct occ_ptxas_kernel kernel = {.line = reader->line};
    if (reader->open)
        return missing_figures(reader);
    if (!take_names(text, &kernel))
        return broken(reader, "line %u: no \"'kernel' for 'sm_NN'\" after \"Compiling entry function\"",
                      reader->line);
    int code = make_room(reader);
    if (code)
        return code;
    kernel.name = strdup(text);
    if (!kernel.name)
        return occ_image_fail(reader->err, OCC_IMAGE_E_NO_MEMORY, "no memory for a name");
    reader->open = &reader->report->kernels[reader->report->count++];
    *reader->open = kernel;
    reader->properties_of_open = false;
    return 0;
}

static int use_properties_of(struct reader *reader, char *text)
{
    reader->properties_of_open = reader->open && strcmp(trim(text), reader->open->name) == 0;
    return 0;
}

static int use_properties(struct reader *reader)
{
    if (!reader->properties_of_open)
        return 0;
    reader->properties_of_open = false;
    return use_parts(reader, property_figures, reader->text);
}

static int close_kernel(struct reader *reader, char *text)
{
    if (!reader->open)
        return broken(reader, "line %u: registers without a kernel: \"Compiling entry function\" is missing",
                      reader->line);
    int code = use_parts(reader, used_figures, text);
    if (!code && !reader->open->registers)
        code = broken(reader, "line %u: kernel %.100s has no registers", reader->line, reader->open->name);
    reader->open = NULL;
    reader->properties_of_open = false;
    return code;
}

static int use_line(struct reader *reader, const char *line, size_t size)
{
    static const struct {
        const char *start;
        int (*use)(struct reader *, char *);
    } kinds[] = {
        {"Compiling entry function '", open_kernel},
        {"Function properties for ", use_properties_of},
        {": Used ", close_kernel},
    };
    bool info = size >= 10 && memcmp(line, "ptxas info", 10) == 0;
    if (size > OCC_PTXAS_MAX_LINE)
        return info ? broken(reader, "line %u: %zu bytes, lines of ptxas have at most %d", reader->line, size,
                             OCC_PTXAS_MAX_LINE)
                    : 0;
    memcpy(reader->text, line, size);
    reader->text[size] = '\0';
    for (size_t i = 0; info && i < sizeof kinds / sizeof *kinds; i++) {
        char *start = strstr(reader->text, kinds[i].start);
        if (start)
            return kinds[i].use(reader, start + strlen(kinds[i].start));
    }
    return !info && strstr(reader->text, "bytes stack frame") ? use_properties(reader) : 0;
}

static int use_text(struct reader *reader, const char *text, size_t size)
{
    int code = 0;
    for (const char *end = text + size; !code && text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);
        reader->line++;
        code = use_line(reader, text, length);
        text += length + (newline != NULL);
    }
    return !code && reader->open ? missing_figures(reader) : code;
}

int occ_ptxas_read(const char *text, size_t size, struct occ_ptxas **ret_report, struct occ_image_error *err)
{
    if (!text || size > OCC_PTXAS_MAX_BYTES)
        return occ_image_fail(err, text ? OCC_IMAGE_E_FULL : OCC_IMAGE_E_INVALID,
                              "a text of %zu bytes, the maximum is %llu", size,
                              (unsigned long long)OCC_PTXAS_MAX_BYTES);
    struct occ_ptxas *report = calloc(1, sizeof *report);
    struct reader *reader = calloc(1, sizeof *reader);
    int code = report && reader ? 0 : occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    if (!code) {
        reader->report = report;
        reader->err = err;
        code = use_text(reader, text, size);
    }
    free(reader);
    if (code)
        occ_ptxas_free(report);
    else
        *ret_report = report;
    return code;
}

void occ_ptxas_free(struct occ_ptxas *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->count; i++)
        free(report->kernels[i].name);
    free(report->kernels);
    free(report);
}
