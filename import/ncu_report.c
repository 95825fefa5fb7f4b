/*
 * Reports of Nsight Compute (.ncu-rep): a container of Protocol Buffers messages.
 *
 *   file    "NVR\0", message {1: version}, block ...
 *   block   message {1: number of sources, 2: of results, 3: session facts, 4: string table, 5: bytes of the
 *           payload, 6: process, 7: number of range results}, then the payload: that many messages
 *
 * Each message follows its length, 32 bits, little-endian. The string table, names of metrics, is one for the
 * whole file, and parts of it can come after their use: the first pass reads blocks without payloads, the
 * second the results. (Source: public reports of 2021 ... 2025; fields that are not read here are skipped.)
 *
 * One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncu.h"
#include "ncu_wire.h"
#include "readers.h"
#include "support/array.h"
#include "support/cleanup.h"

/* Larger than in any report; they bound the memory of the whole import. */
#define MESSAGE_MAX (64u << 20)
#define STRINGS_MAX (1u << 18)
#define VERSION_MAX 7u
#define MAGIC       0x0052564eu /* "NVR" and a zero, as a length */

/* Paths: the field in the message, then in that field's message, and so on. */
#define BLOCK_SOURCES  "\1"
#define BLOCK_RESULTS  "\2"
#define BLOCK_HOST     "\3\3\5"
#define BLOCK_FACT     "\3\10\1"
#define BLOCK_FACT_IS  "\3\10\2"
#define BLOCK_STRINGS  "\4"
#define BLOCK_PAYLOAD  "\5"
#define BLOCK_PID      "\6\1"
#define BLOCK_EXE      "\6\3"
#define RESULT_METRIC  13
#define RESULT_CREATED "\16"
#define METRIC_NAME    "\1"
#define METRIC_STRING  "\2\1"
#define METRIC_VALUE   "\2"

/* Fields of a result, used where its metrics lack the value: the mangled name, else the demangled name, else
 * the function's name; and numbers. */
static const char *const result_names[] = {"\5", "\7", "\6"};
static const struct {
    const char *path;
    enum occ_ncu_metric_row row;
} result_numbers[] = {
    {"\12\1", OCC_NCU_GRID_X},  {"\12\2", OCC_NCU_GRID_Y},  {"\12\3", OCC_NCU_GRID_Z},
    {"\13\1", OCC_NCU_BLOCK_X}, {"\13\2", OCC_NCU_BLOCK_Y}, {"\13\3", OCC_NCU_BLOCK_Z},
    {"\26", OCC_NCU_CONTEXT},   {"\27", OCC_NCU_STREAM},
};

/* ---- the container ---- */

struct string {
    enum occ_ncu_metric_row row;
    char *name; /* NULL: not read */
};

struct reader {
    FILE *file;
    uint64_t size, at; /* bytes of the file; bytes read */
    struct occ_ncu *ncu;
    struct occ_error *err;
    unsigned char *buffer;
    size_t allocated;
    struct string *strings;
    size_t n_strings, strings_allocated;
};

static int damaged(const struct reader *r, const char *what)
{
    return occ_fail(r->err, OCC_E_CORRUPT, "byte %llu: %s", (unsigned long long)r->at, what);
}

static int read_bytes(struct reader *r, void *data, size_t n)
{
    if (n > r->size - r->at)
        return damaged(r, "the report is cut off");
    if (n > 0 && fread(data, n, 1, r->file) != 1)
        return occ_fail(r->err, OCC_E_IO, "cannot read the report");
    r->at += n;
    return 0;
}

static int read_length(struct reader *r, uint32_t *ret_length)
{
    unsigned char b[4];
    int status = read_bytes(r, b, sizeof b);
    if (status != 0)
        return status;
    *ret_length = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return 0;
}

static int skip_bytes(struct reader *r, uint64_t n)
{
    if (n > r->size - r->at)
        return damaged(r, "the report is cut off");
    if (fseeko(r->file, (off_t)n, SEEK_CUR) != 0)
        return occ_fail_errno(r->err, errno, "cannot read the report");
    r->at += n;
    return 0;
}

/* The message is valid until the next call. */
static int read_body(struct reader *r, uint32_t n, struct occ_wire *ret_message)
{
    if (n > r->size - r->at)
        return damaged(r, "the report is cut off");
    if (n > MESSAGE_MAX)
        return occ_fail(r->err, OCC_E_FULL, "byte %llu: a message of %u MiB; at most %u can be read",
                        (unsigned long long)r->at, n >> 20, MESSAGE_MAX >> 20);
    if (!occ_grow((void **)&r->buffer, &r->allocated, n, (size_t)MESSAGE_MAX + 1, 1))
        return occ_no_memory(r->err);
    *ret_message = (struct occ_wire){.at = r->buffer, .end = r->buffer + n};
    int status = read_bytes(r, r->buffer, n);
    return status == 0 && !occ_wire_is_whole(*ret_message) ? damaged(r, "a damaged message") : status;
}

static int read_message(struct reader *r, struct occ_wire *ret_message)
{
    uint32_t n = 0;
    int status = read_length(r, &n);
    return status == 0 ? read_body(r, n, ret_message) : status;
}

/* ---- the first pass: strings and facts ---- */

static int add_string(struct reader *r, const struct occ_wire *m)
{
    struct string string = {.row = OCC_NCU_COUNT};
    char name[256] = "";
    if (!occ_grow((void **)&r->strings, &r->strings_allocated, r->n_strings, STRINGS_MAX, sizeof string))
        return occ_fail(r->err, OCC_E_FULL, "more than %u names of metrics", STRINGS_MAX);
    if (m->number < sizeof name) {
        memcpy(name, m->bytes, (size_t)m->number);
        string.row = occ_ncu_find(name, false);
    }
    if (string.row != OCC_NCU_COUNT && !(string.name = strdup(name)))
        return occ_no_memory(r->err);
    r->strings[r->n_strings++] = string;
    return 0;
}

static int add_strings(struct reader *r, struct occ_wire strings)
{
    int status = 0;
    while (status == 0 && occ_wire_next(&strings))
        if (strings.type == OCC_WIRE_BYTES)
            status = add_string(r, &strings);
    return status == 0 && strings.at != strings.end ? damaged(r, "a damaged string table") : status;
}

static void read_facts(struct reader *r, const struct occ_wire *block)
{
    struct occ_import_recording *recording = &r->ncu->recording;
    uint64_t pid = occ_wire_number(block, BLOCK_PID);
    char fact[64] = "";
    recording->pid = pid > 0 && pid <= INT32_MAX ? (int32_t)pid : recording->pid;
    occ_wire_text(block, BLOCK_HOST, recording->hostname, sizeof recording->hostname);
    occ_wire_text(block, BLOCK_EXE, recording->exe, sizeof recording->exe);
    occ_wire_text(block, BLOCK_FACT, fact, sizeof fact);
    if (strcmp(fact, "Nsight Compute Target") == 0)
        occ_wire_text(block, BLOCK_FACT_IS, recording->tool_version, sizeof recording->tool_version);
}

/* ---- the second pass: results ---- */

static int read_metric(struct reader *r, const struct occ_wire *metric)
{
    struct occ_wire value;
    uint64_t name = occ_wire_number(metric, METRIC_NAME);
    if (!occ_wire_is_whole(*metric) || name >= r->n_strings)
        return damaged(r, "a damaged metric, or a metric without a name in the report");
    const struct string *string = &r->strings[name];
    if (!string->name)
        return 0;
    if (string->row == OCC_NCU_DEV_NAME)
        occ_wire_text(metric, METRIC_STRING, r->ncu->gpu, sizeof r->ncu->gpu);
    bool found = occ_wire_find(*metric, METRIC_VALUE, &value);
    value = found ? occ_wire_part(&value) : value;
    return found && occ_wire_next(&value)
               ? occ_ncu_set(r->ncu, string->row, string->name, occ_wire_real(&value))
               : 0;
}

static int read_result(struct reader *r, const struct occ_wire *result)
{
    struct occ_wire m = *result, field;
    int status = 0;
    while (status == 0 && occ_wire_next(&m)) {
        struct occ_wire metric = occ_wire_part(&m);
        status = m.field == RESULT_METRIC ? read_metric(r, &metric) : 0;
    }
    for (size_t i = 0; i < sizeof result_numbers / sizeof *result_numbers; i++)
        if (occ_wire_find(*result, result_numbers[i].path, &field))
            r->ncu->value[result_numbers[i].row] = occ_wire_real(&field);
    for (size_t i = 0; i < 3 && r->ncu->name_bytes == 0; i++)
        if (occ_wire_find(*result, result_names[i], &field) && field.type == OCC_WIRE_BYTES)
            occ_ncu_set_name(r->ncu, field.bytes, (size_t)field.number);
    uint64_t created_s = occ_wire_number(result, RESULT_CREATED);
    r->ncu->created_s = created_s <= INT64_MAX ? (int64_t)created_s : 0;
    return status == 0 ? occ_ncu_end_result(r->ncu) : status;
}

static int read_payload(struct reader *r, uint64_t sources, uint64_t results, uint64_t end)
{
    int status = 0;
    for (uint64_t i = 0; status == 0 && r->at < end; i++) {
        struct occ_wire m;
        uint32_t length = 0;
        bool is_result = i >= sources && i - sources < results;
        if (!is_result) {
            status = read_length(r, &length);
            status = status == 0 ? skip_bytes(r, length) : status;
        } else if ((status = read_message(r, &m)) == 0) {
            status = read_result(r, &m);
        }
        if (i >= sources && !is_result) /* a result for a range of kernels or a graph is not a launch */
            occ_import_sink_skip(r->ncu->sink, OCC_IMPORT_SKIP_NO_CONFIGURATION);
    }
    return status == 0 && r->at != end ? damaged(r, "a block that does not end where it should") : status;
}

/* ---- both ---- */

/* Reads a block's header. A block is never empty. If another report follows, its magic would be read as a
 * block's length. */
static int read_block_header(struct reader *r, struct occ_wire *ret_message)
{
    uint32_t n = 0;
    int status = read_length(r, &n);
    if (status != 0)
        return status;
    if (n == 0)
        return damaged(r, "zeros follow the report");
    if (n == MAGIC)
        return damaged(r, "another report follows; import each by itself");
    return read_body(r, n, ret_message);
}

static int read_block(struct reader *r, bool results)
{
    struct occ_wire m, strings;
    int status = read_block_header(r, &m);
    if (status != 0)
        return status;
    uint64_t payload = occ_wire_number(&m, BLOCK_PAYLOAD);
    occ_import_sink_progress(r->ncu->sink, r->at, r->size);
    if (results)
        return read_payload(r, occ_wire_number(&m, BLOCK_SOURCES), occ_wire_number(&m, BLOCK_RESULTS),
                            r->at + payload);
    read_facts(r, &m);
    if (occ_wire_find(m, BLOCK_STRINGS, &strings))
        status = add_strings(r, occ_wire_part(&strings));
    return status == 0 ? skip_bytes(r, payload) : status;
}

static int read_version(struct reader *r)
{
    struct occ_wire m;
    uint32_t magic = 0;
    int status = read_length(r, &magic);
    if (status == 0)
        status = read_message(r, &m);
    if (status != 0)
        return status;
    uint64_t version = occ_wire_number(&m, "\1");
    if (version <= VERSION_MAX)
        return magic == MAGIC && version > 0 ? 0 : damaged(r, "not a report of Nsight Compute");
    return occ_fail(r->err, OCC_E_VERSION,
                    "a report of version %llu, and this occq knows %u; import what 'ncu --import FILE --page "
                    "raw --csv' prints",
                    (unsigned long long)version, VERSION_MAX);
}

static int read_pass(struct reader *r, bool results)
{
    r->at = 0;
    if (fseeko(r->file, 0, SEEK_SET) != 0)
        return occ_fail_errno(r->err, errno, "cannot read the report");
    int status = read_version(r);
    while (status == 0 && r->at < r->size)
        status = read_block(r, results);
    return status;
}

static void free_reader(struct reader *r)
{
    for (size_t i = 0; i < r->n_strings; i++)
        free(r->strings[i].name);
    free(r->strings);
    free(r->buffer);
    free(r->ncu);
}

static int find_size(struct reader *r)
{
    off_t size = fseeko(r->file, 0, SEEK_END) == 0 ? ftello(r->file) : -1;
    if (size < 0 || fseeko(r->file, 0, SEEK_SET) != 0)
        return occ_fail_errno(r->err, errno, "cannot read the report");
    r->size = (uint64_t)size;
    return 0;
}

int occ_ncu_check_report(FILE *file, struct occ_error *err)
{
    _cleanup_(free_reader) struct reader r = {.file = file, .err = err};
    struct occ_wire m;
    int status = find_size(&r);
    if (status == 0)
        status = read_version(&r);
    return status == 0 && r.at < r.size ? read_block_header(&r, &m) : status;
}

int occ_ncu_read_report(FILE *file, struct occ_import_sink *sink, struct occ_error *err)
{
    _cleanup_(free_reader) struct reader r = {.file = file, .err = err, .ncu = calloc(1, sizeof *r.ncu)};
    if (!r.ncu)
        return occ_no_memory(err);
    int status = find_size(&r);
    if (status != 0)
        return status;
    occ_ncu_begin(r.ncu, sink, err);
    for (int pass = 0; pass < 2 && status == 0; pass++)
        status = read_pass(&r, pass == 1);
    if (status == 0)
        occ_ncu_end(r.ncu);
    return status;
}
