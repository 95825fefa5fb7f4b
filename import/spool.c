/* See spool.h. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "support/cleanup.h"

static const char *temporary_directory(void)
{
    const char *given = secure_getenv("TMPDIR");
    return given && given[0] == '/' ? given : "/tmp";
}

/* A new file in TMPDIR, open for reading and writing; `suffix` ends its name. A descriptor, or negative. */
static int create_file(char path[OCC_SPOOL_PATH_BYTES], const char *suffix, struct occ_error *err)
{
    int n = snprintf(path, OCC_SPOOL_PATH_BYTES, "%s/occq-import-XXXXXX%s", temporary_directory(), suffix);
    int fd = n < OCC_SPOOL_PATH_BYTES ? mkostemps(path, (int)strlen(suffix), O_CLOEXEC) : -1;
    return fd >= 0 ? fd : occ_fail_errno(err, errno, "cannot create a temporary file in TMPDIR");
}

int occ_spool_unnamed(struct occ_error *err)
{
    char path[OCC_SPOOL_PATH_BYTES];
    int fd = open(temporary_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (fd = create_file(path, "", err)) >= 0) /* not on this file system */
        (void)unlink(path);
    return fd;
}

int occ_spool_link(const char *path, char name[OCC_SPOOL_PATH_BYTES], struct occ_error *err)
{
    int fd = create_file(name, "", err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    (void)unlink(name);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0
               ? 0
               : occ_fail_errno(err, errno, "cannot name a temporary file in TMPDIR");
}

static int write_all(int fd, const char *data, size_t n, uint64_t *total, struct occ_error *err)
{
    *total += n;
    if (*total > OCC_SPOOL_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "more than %" PRIu64 " bytes", OCC_SPOOL_MAX_BYTES);
    while (n > 0) {
        ssize_t written = write(fd, data, n);
        if (written < 0 && errno != EINTR)
            return occ_fail_errno(err, errno, "cannot write a temporary file");
        data += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static void free_stream(ZSTD_DStream **stream)
{
    (void)ZSTD_freeDStream(*stream);
}

/* *left: of a frame; 0: it is complete. */
static int decompress(ZSTD_DStream *stream, ZSTD_inBuffer input, int out, uint64_t *total, size_t *left,
                      struct occ_error *err)
{
    static char to[131072];
    int status = 0;
    while (input.pos < input.size && status == 0) {
        ZSTD_outBuffer output = {to, sizeof to, 0};
        *left = ZSTD_decompressStream(stream, &output, &input);
        if (ZSTD_isError(*left))
            return occ_fail(err, OCC_E_CORRUPT, "damaged: %s", ZSTD_getErrorName(*left));
        status = write_all(out, to, output.pos, total, err);
    }
    return status;
}

/* As many bytes as there are, at most `size`; negative: an error. */
static ssize_t read_full(int fd, char *data, size_t size)
{
    size_t n = 0;
    ssize_t got = 1;
    while (n < size && got != 0) {
        got = read(fd, data + n, size - n);
        if (got < 0 && errno != EINTR)
            return got;
        n += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)n;
}

static bool is_zstd(const char *head, size_t n)
{
    return n >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0;
}

/* What zstd compressed comes out plain. */
static int copy(int in, int out, struct occ_error *err)
{
    static char data[65536];
    _cleanup_(free_stream) ZSTD_DStream *stream = NULL;
    uint64_t total = 0;
    size_t left = 0;
    ssize_t n = read_full(in, data, sizeof data);
    int status = 0;
    if (n > 0 && is_zstd(data, (size_t)n) && !(stream = ZSTD_createDStream()))
        return occ_no_memory(err);
    for (; n > 0 && status == 0; n = read_full(in, data, sizeof data))
        status = stream ? decompress(stream, (ZSTD_inBuffer){data, (size_t)n, 0}, out, &total, &left, err)
                        : write_all(out, data, (size_t)n, &total, err);
    if (status != 0)
        return status;
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read");
    return left == 0 ? 0 : occ_fail(err, OCC_E_CORRUPT, "it ends inside a zstd frame");
}

/* Nsight Systems' own program, if it is installed; no shell sees the path. */
static int export_nsys(const char *path, const char *to, struct occ_error *err)
{
    char *argv[] = {"nsys",
                    "export",
                    "--type",
                    "sqlite",
                    "--force-overwrite",
                    "true",
                    "--output",
                    (char *)(uintptr_t)to,
                    (char *)(uintptr_t)path,
                    NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int wait_status = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    while (!failed && waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
        ;
    if (failed)
        return occ_fail(err, OCC_E_INVALID,
                        "a report of Nsight Systems, and 'nsys' is not installed here; where it is: nsys "
                        "export --type sqlite");
    return wait_status == 0 ? 0 : occ_fail(err, OCC_E_INVALID, "'nsys export' failed");
}

static bool is_nsys_report(const char *path)
{
    size_t length = strlen(path);
    return length > 9 && strcmp(path + length - 9, ".nsys-rep") == 0;
}

/* A file for what is copied: without a name, so that nothing is left if we are killed, where the file system
 * has such files. */
static int create(struct occ_spooled *spooled, bool is_report, struct occ_error *err)
{
    int fd = is_report ? -1 : open(temporary_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    spooled->has_name = fd < 0;
    if (fd < 0)
        fd = create_file(spooled->path, is_report ? ".sqlite" : "", err);
    else
        (void)snprintf(spooled->path, sizeof spooled->path, OCC_SPOOL_UNNAMED "%d", fd);
    return spooled->fd = fd;
}

void occ_spooled_close(struct occ_spooled *spooled)
{
    if (spooled->fd >= 0)
        (void)close(spooled->fd);
    if (spooled->fd >= 0 && spooled->has_name)
        (void)unlink(spooled->path);
}

int occ_spool(const char *path, struct occ_spooled *spooled, struct occ_error *err)
{
    _cleanup_(occ_closep) int own = -1;
    char head[4];
    struct stat status;
    spooled->fd = -1;
    if (strcmp(path, "-") != 0 && (own = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) < 0)
        return occ_fail_errno(err, errno, "%s", path);
    int in = own >= 0 ? own : STDIN_FILENO;
    if (fstat(in, &status) != 0)
        return occ_fail_errno(err, errno, "%s", path);
    bool is_file = S_ISREG(status.st_mode), is_report = is_file && is_nsys_report(path);
    bool is_packed = is_file && pread(in, head, sizeof head, 0) == sizeof head && is_zstd(head, sizeof head);
    if (!is_file && !S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "%s: neither a file nor a pipe", path);
    if (own >= 0 && is_file && !is_report && !is_packed)
        return snprintf(spooled->path, sizeof spooled->path, "%s", path) < OCC_SPOOL_PATH_BYTES
                   ? 0
                   : occ_fail(err, OCC_E_INVALID, "a path of more than %d bytes", OCC_SPOOL_PATH_BYTES);
    int out = create(spooled, is_report, err);
    if (out < 0)
        return out;
    int failed = is_report ? export_nsys(path, spooled->path, err) : copy(in, out, err);
    return failed == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
