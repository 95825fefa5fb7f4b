/* Imports one file: detects the format, checks if the file was imported before, reads it and loads the
 * history. One thread. */
#include "import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "readers.h"
#include "sink_state.h"
#include "spool.h"
#include "support/cleanup.h"

#define READ_BYTES (256u * 1024u)
#define HASH_CHARS 33
#define HEAD_BYTES 64u

/* Reads a report of Nsight Compute (by its first byte) or the output of ncu, with or without --csv. */
static int read_ncu(const char *path, struct occ_import_sink *sink, struct occ_error *err)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "rbe");
    if (!file)
        return occ_fail_errno(err, errno, "%s", path);
    bool is_report = ungetc(getc(file), file) == 'N';
    int status = is_report ? occ_ncu_read_report(file, sink, err) : occ_ncu_read_print(file, sink, err);
    return status == 0 ? 0 : occ_error_prefix(err, "%s", path);
}

static int check_ncu_report(const char *path, struct occ_error *err)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "rbe");
    if (!file)
        return occ_fail_errno(err, errno, "%s", path);
    return occ_ncu_check_report(file, err) == 0 ? 0 : occ_error_prefix(err, "%s", path);
}

/* True if the output of ncu follows other output. */
static bool has_ncu_print(const char *path)
{
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "rbe");
    return file && occ_ncu_has_print(file);
}

/* Formats, recognized by their first bytes in this order. */
static const struct format {
    const char *source; /* NULL: not readable; `hint` tells the user the remedy */
    const char *magic;
    size_t size;
    int (*read)(const char *path, struct occ_import_sink *sink, struct occ_error *err);
    /* Checks the beginning before the whole file is hashed; NULL: no check. */
    int (*check)(const char *path, struct occ_error *err);
    const char *hint;
} formats[] = {
    {"nsys", "SQLite format 3", 16, occ_import_read_nsys, NULL, NULL},
    {"ncu", "NVR", 4, read_ncu, check_ncu_report, NULL},
    {"ncu", "\"ID\",\"", 6, read_ncu, NULL, NULL},
    {"ncu", "==PROF==", 8, read_ncu, NULL, NULL},
    {"ncu", "==WARNING==", 11, read_ncu, NULL, NULL},
    /* spool.c has unpacked all other compressed files */
    {"kineto", "\x1f\x8b", 2, occ_import_read_kineto, NULL, NULL},
    {"kineto", "{", 1, occ_import_read_kineto, NULL, NULL},
    {"kineto", "[", 1, occ_import_read_kineto, NULL, NULL},
    {NULL, "PK\x03\x04", 4, NULL, NULL, "a zip archive; unpack it first"},
};
static const struct format ncu_print = {"ncu", "", 0, read_ncu, NULL, NULL};

struct recording {
    const char *path;        /* the path as given by the user */
    struct occ_spooled file; /* the file to read */
    struct stat status;      /* status before reading */
    const struct format *format;
    char hash[HASH_CHARS];
};

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Checks that the file is still the hashed one, because readers open it by name. */
static int check_unchanged(const struct stat *before, const char *path, struct occ_error *err)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return occ_fail_errno(err, errno, "%s", path);
    if (now.st_dev != before->st_dev || now.st_ino != before->st_ino || now.st_size != before->st_size ||
        !is_same_time(&now.st_mtim, &before->st_mtim) || !is_same_time(&now.st_ctim, &before->st_ctim))
        return occ_fail(err, OCC_E_INVALID, "%s: the file changed while it was read", path);
    return 0;
}

static void free_state(XXH3_state_t **state)
{
    (void)XXH3_freeState(*state);
}

/* The file's beginning, without a byte order mark and blanks before it. */
static int read_head(int fd, const char *path, char head[HEAD_BYTES], size_t *ret_head, struct occ_error *err)
{
    _cleanup_(occ_freep) char *buffer = malloc(READ_BYTES + 1);
    if (!buffer)
        return occ_no_memory(err);
    ssize_t n = pread(fd, buffer, READ_BYTES, 0);
    if (n < 0)
        return occ_fail_errno(err, errno, "%s", path);
    buffer[n] = '\0';
    size_t blanks = occ_spool_blanks(buffer), left = (size_t)n - blanks;
    *ret_head = left < HEAD_BYTES ? left : HEAD_BYTES;
    memcpy(head, buffer + blanks, *ret_head);
    return 0;
}

static int hash_file(int fd, const char *path, char hash[HASH_CHARS], struct occ_error *err)
{
    _cleanup_(occ_freep) char *buffer = malloc(READ_BYTES);
    _cleanup_(free_state) XXH3_state_t *state = XXH3_createState();
    ssize_t n = 0;
    if (!buffer || !state)
        return occ_no_memory(err);
    (void)XXH3_128bits_reset(state);
    while ((n = read(fd, buffer, READ_BYTES)) > 0)
        (void)XXH3_128bits_update(state, buffer, (size_t)n);
    if (n < 0)
        return occ_fail_errno(err, errno, "%s", path);
    XXH128_hash_t value = XXH3_128bits_digest(state);
    (void)snprintf(hash, HASH_CHARS, "%016llx%016llx", (unsigned long long)value.high64,
                   (unsigned long long)value.low64);
    return 0;
}

static const struct format *format_of(const char *path, const char *head, size_t n)
{
    bool is_bracket = head[0] == '[' && !occ_spool_is_json(head, n);
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !is_bracket; i++)
        if (n >= formats[i].size && memcmp(head, formats[i].magic, formats[i].size) == 0)
            return &formats[i];
    return has_ncu_print(path) ? &ncu_print : NULL;
}

static int find_format(const struct recording *r, const char *head, size_t n,
                       const struct format **ret_format, struct occ_error *err)
{
    if (n == 0)
        return occ_fail(err, OCC_E_INVALID, "%s: the file is empty", r->path);
    const struct format *format = format_of(r->file.path, head, n);
    if (!format)
        return occ_fail(
            err, OCC_E_INVALID,
            "%s: byte 0: neither an SQLite export of Nsight Systems, nor a report of Nsight Compute or "
            "what ncu prints, nor Chrome-trace JSON (plain, gzip or zstd)",
            r->path);
    if (!format->source)
        return occ_fail(err, OCC_E_INVALID, "%s: %s", r->path, format->hint);
    *ret_format = format;
    return 0;
}

static int read_and_load(const struct recording *r, struct occ_store *store,
                         const struct occ_import_options *options, struct occ_import_result *ret_result,
                         struct occ_error *err)
{
    const struct occ_import_source source = {.tool = r->format->source, .path = r->path, .hash = r->hash};
    struct occ_import_sink *sink = NULL;
    bool repaired = false;
    int status = occ_import_sink_new(options, &sink, err);
    if (status == 0)
        status = r->format->read(r->file.path, sink, err);
    if (status == OCC_E_INVALID && r->format->read == occ_import_read_kineto) {
        occ_import_sink_free(sink);
        sink = NULL;
        repaired = true;
        status = occ_import_sink_new(options, &sink, err);
        if (status == 0)
            status = occ_import_repair_kineto(r->file.path, sink, err);
    }
    if (status == 0 && r->file.fd < 0)
        status = check_unchanged(&r->status, r->file.path, err);
    if (status == 0 && occ_import_check_launches(sink, err) != 0)
        status = occ_error_prefix(err, "%s", r->path);
    if (status == 0 && !store)
        status = options->open(options->context, &store, err);
    if (status == 0 && occ_import_load(sink, store, &source, ret_result, err) != 0)
        status = occ_error_prefix(err, "%s", r->path);
    ret_result->repaired = repaired;
    occ_import_sink_free(sink);
    return status;
}

static int open_and_hash(struct recording *r, struct occ_error *err)
{
    /* O_NONBLOCK: never wait for a FIFO */
    _cleanup_(occ_closep) int fd = open(r->file.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char head[HEAD_BYTES];
    size_t n = 0;
    if (fd < 0 || fstat(fd, &r->status) != 0)
        return occ_fail_errno(err, errno, "%s", r->path);
    if (!S_ISREG(r->status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "%s: not a regular file", r->path);
    int status = read_head(fd, r->path, head, &n, err);
    if (status == 0)
        status = find_format(r, head, n, &r->format, err);
    if (status == 0 && r->format->check)
        status = r->format->check(r->file.path, err);
    return status == 0 ? hash_file(fd, r->path, r->hash, err) : status;
}

static int import_spooled(struct recording *r, struct occ_store *store,
                          const struct occ_import_options *options, struct occ_import_result *ret_result,
                          struct occ_error *err)
{
    struct occ_import_result result = {0};
    int status = open_and_hash(r, err);
    if (status != 0)
        return status;
    status =
        options->again || !store ? OCC_E_NOT_FOUND : occ_store_find_import(store, r->hash, &result.run, err);
    result.known = status == 0;
    result.source = r->format->source;
    if (status == OCC_E_NOT_FOUND)
        status = read_and_load(r, store, options, &result, err);
    if (status == 0 && result.known && store && options->label)
        status = occ_store_label_run(store, result.run, options->label, &result.relabelled, err);
    if (status == 0)
        *ret_result = result;
    return status;
}

/* Replaces the path of the spooled file at the beginning of a reader's message with the original path. */
static void name_original(const struct recording *r, struct occ_error *err)
{
    char rest[OCC_ERROR_MESSAGE_BYTES];
    size_t length = strlen(r->file.path);
    if (strncmp(err->message, r->file.path, length) != 0)
        return;
    (void)snprintf(rest, sizeof rest, "%s", err->message + length);
    (void)snprintf(err->message, sizeof err->message, "%s%s", r->path, rest);
}

int occ_import_file(struct occ_store *store, const char *path, const struct occ_import_options *options,
                    struct occ_import_result *ret_result, struct occ_error *err)
{
    struct recording r = {.path = path};
    struct occ_error own = OCC_ERROR_INIT; /* occ_error_prefix() requires an error */
    err = err ? err : &own;
    int status = occ_spool(path, &r.file, err);
    if (status == 0)
        status = import_spooled(&r, store, options, ret_result, err);
    if (status != 0 && r.file.fd >= 0)
        name_original(&r, err);
    occ_spooled_close(&r.file);
    return status;
}
