/* One file into the history: what kind is it, was it imported before, read it, pour it. One thread. */
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
#include "sink_store.h"
#include "support/cleanup.h"

#define READ_BYTES (256u * 1024u)
#define HASH_CHARS 33

typedef int reader(const char *path, const struct occ_device *gpu, const char *gpu_name,
                   struct occ_import_sink *sink, struct occ_error *err);

/* By their first bytes, in this order. */
static const struct format {
    const char *source; /* NULL: cannot be read, `hint` says why */
    const char *magic;
    size_t size;
    reader *read;
    const char *hint;
} formats[] = {
    {"nsys", "SQLite format 3", 16, occ_import_read_nsys, NULL},
    {"kineto", "\x1f\x8b", 2, occ_import_read_kineto, NULL},
    {"kineto", "{", 1, occ_import_read_kineto, NULL},
    {"kineto", "[", 1, occ_import_read_kineto, NULL},
    {NULL, "PK\x03\x04", 4, NULL, "a zip archive; unpack it first"},
    {NULL, "\x28\xb5\x2f\xfd", 4, NULL, "compressed with zstd; unpack it first"},
};

const char *occ_import_skip_word(enum occ_import_skip why)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        OCC_IMPORT_SKIPS(X)
#undef X
    };
    return words[why];
}

static int open_recording(const char *path, int *ret_fd, struct stat *ret_status, struct occ_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO must not hold us up */
    if (fd < 0 || fstat(fd, ret_status) != 0) {
        int failed = occ_fail_errno(err, errno, "%s", path);
        if (fd >= 0)
            (void)close(fd);
        return failed;
    }
    if (!S_ISREG(ret_status->st_mode)) {
        (void)close(fd);
        return occ_fail(err, OCC_E_INVALID, "%s: not a regular file", path);
    }
    *ret_fd = fd;
    return 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The readers open the file by its name: what they read must be what was hashed. */
static int check_unchanged(const struct stat *before, const char *path, struct occ_error *err)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return occ_fail_errno(err, errno, "%s", path);
    if (now.st_dev != before->st_dev || now.st_ino != before->st_ino || now.st_size != before->st_size ||
        !is_same_time(&now.st_mtim, &before->st_mtim) || !is_same_time(&now.st_ctim, &before->st_ctim))
        return occ_fail(err, OCC_E_INVALID, "%s: it changed while it was read", path);
    return 0;
}

/* Hashes the file; its beginning, without blanks before it, goes to `head`. */
static int hash_file(int fd, const char *path, char head[64], size_t *ret_head, char hash[HASH_CHARS],
                     struct occ_error *err)
{
    _cleanup_(occ_freep) char *buffer = malloc(READ_BYTES);
    XXH3_state_t *state = XXH3_createState();
    ssize_t n = 0;
    bool first = true;
    if (!buffer || !state) {
        (void)XXH3_freeState(state);
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    (void)XXH3_128bits_reset(state);
    *ret_head = 0;
    while ((n = read(fd, buffer, READ_BYTES)) > 0) {
        (void)XXH3_128bits_update(state, buffer, (size_t)n);
        size_t blanks = 0;
        while (first && blanks < (size_t)n && strchr(" \t\r\n", buffer[blanks]) && buffer[blanks])
            blanks++;
        if (first) {
            *ret_head = (size_t)n - blanks < 64 ? (size_t)n - blanks : 64;
            memcpy(head, buffer + blanks, *ret_head);
        }
        first = false;
    }
    int why = errno;
    XXH128_hash_t value = XXH3_128bits_digest(state);
    (void)XXH3_freeState(state);
    if (n < 0)
        return occ_fail_errno(err, why, "%s", path);
    (void)snprintf(hash, HASH_CHARS, "%016llx%016llx", (unsigned long long)value.high64,
                   (unsigned long long)value.low64);
    return 0;
}

static int find_format(const char *path, const char *head, size_t n, const struct format **ret_format,
                       struct occ_error *err)
{
    if (n == 0)
        return occ_fail(err, OCC_E_INVALID, "%s: the file is empty", path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (n < formats[i].size || memcmp(head, formats[i].magic, formats[i].size) != 0)
            continue;
        if (!formats[i].source)
            return occ_fail(err, OCC_E_INVALID, "%s: %s", path, formats[i].hint);
        *ret_format = &formats[i];
        return 0;
    }
    size_t length = strlen(path);
    if (length > 9 && strcmp(path + length - 9, ".nsys-rep") == 0)
        return occ_fail(err, OCC_E_INVALID,
                        "%s: a report of Nsight Systems; export it first: nsys export --type sqlite %s", path,
                        path);
    return occ_fail(
        err, OCC_E_INVALID,
        "%s: byte 0: neither an SQLite export of Nsight Systems nor Chrome-trace JSON (plain or gzip)", path);
}

static int find_gpu(const char *name, struct occ_device *device, struct occ_error *err)
{
    if (!name || occ_device_from_name(name, device) == OCC_OK)
        return 0;
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is no GPU that 'occq gpus' lists", name);
}

static int read_and_pour(struct occ_store *store, const char *path, const struct stat *before,
                         const struct format *format, const char *hash,
                         const struct occ_import_options *options, struct occ_import_result *ret_result,
                         struct occ_error *err)
{
    struct occ_device gpu = {0};
    struct occ_import_sink *sink = NULL;
    int status = find_gpu(options->gpu, &gpu, err);
    if (status == 0)
        status = occ_import_sink_new(options, &sink, err);
    if (status == 0)
        status = format->read(path, options->gpu ? &gpu : NULL, options->gpu, sink, err);
    if (status == 0)
        status = check_unchanged(before, path, err);
    if (status == 0) {
        status = occ_import_sink_pour(sink, store, path, hash, ret_result, err);
        if (status != 0)
            (void)occ_error_prefix(err, "%s", path);
    }
    occ_import_sink_free(sink);
    ret_result->source = format->source;
    return status;
}

int occ_import_file(struct occ_store *store, const char *path, const struct occ_import_options *options,
                    struct occ_import_result *ret_result, struct occ_error *err)
{
    _cleanup_(occ_closep) int fd = -1;
    char head[64], hash[HASH_CHARS];
    size_t n = 0;
    struct stat before;
    const struct format *format = NULL;
    struct occ_import_result result = {0};
    struct occ_error own = OCC_ERROR_INIT; /* below, codes travel with their messages */
    err = err ? err : &own;
    int status = open_recording(path, &fd, &before, err);
    if (status == 0)
        status = hash_file(fd, path, head, &n, hash, err);
    if (status == 0)
        status = find_format(path, head, n, &format, err);
    if (status != 0)
        return status;
    if (!options->again) {
        status = occ_store_find_import(store, hash, &result.run, err);
        result.known = status == 0;
        result.source = format->source;
    }
    if (options->again || status == OCC_E_NOT_FOUND)
        status = read_and_pour(store, path, &before, format, hash, options, &result, err);
    if (status == 0)
        *ret_result = result;
    return status;
}
