/* See spool.h. */
#include "spool.h"

#include <ctype.h>
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
#include <zlib.h>
#include <zstd.h>

#include "support/cleanup.h"

static const char *temporary_directory(void)
{
    const char *given = secure_getenv("TMPDIR");
    return given && given[0] == '/' ? given : "/tmp";
}

/* Creates a file in TMPDIR, open for reading and writing; `suffix` ends its name. Returns a descriptor, or a
 * negative code. */
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
    if (fd < 0 && (fd = create_file(path, "", err)) >= 0) /* this file system has no unnamed files */
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

/* ---- compressed recordings ---- */

/* Formats of compressed or encoded input. UTF-16 is the output of other tools as Windows PowerShell writes it
 * to a file. */
enum packing { PLAIN, PACKED_ZSTD, PACKED_GZIP, PACKED_UTF16 };

#define GZIP_WINDOW (MAX_WBITS + 16) /* window bits for a stream with the header of gzip */

struct unpacker {
    enum packing packing;
    ZSTD_DStream *zstd;
    z_stream gzip;
    struct {
        unsigned unit; /* bytes of an incomplete unit, or pair of units, from the previous input */
        unsigned n;    /* number of these bytes */
    } utf16;
    bool is_complete; /* the input ends at the end of a frame, a member or a character */
};

static void free_unpacker(struct unpacker *u)
{
    (void)ZSTD_freeDStream(u->zstd);
    if (u->packing == PACKED_GZIP)
        (void)inflateEnd(&u->gzip);
}

size_t occ_spool_blanks(const char *text)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf", blanks[] = " \t\r\n";
    size_t n = strspn(text, blanks), mark = strlen(byte_order_mark);
    n += strncmp(text + n, byte_order_mark, mark) == 0 ? mark : 0;
    return n + strspn(text + n, blanks);
}

/* False for lines of ncu's output and of launchers of ranks that begin with a bracket: "[5311] python@host",
 * "[rank0]: ", "[1,0]<stdout>:". */
bool occ_spool_is_json(const char *head, size_t n)
{
    return n > 0 && (head[0] == '{' || (head[0] == '[' && !(n > 1 && isalnum((unsigned char)head[1]))));
}

static bool is_gzip(const void *head, size_t n)
{
    return n >= 2 && memcmp(head, "\x1f\x8b", 2) == 0;
}

/* True for JSON in gzip, which needs no copy because the JSON reader streams gzip. Also true for a file that
 * is damaged at its beginning: the reader reports the position. */
static bool is_packed_json(const void *head, size_t n)
{
    char plain[4096];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)head,
                       .avail_in = (uInt)n,
                       .next_out = (Bytef *)plain,
                       .avail_out = sizeof plain - 1};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return true;
    int code = inflate(&stream, Z_NO_FLUSH);
    size_t size = sizeof plain - 1 - stream.avail_out;
    plain[size] = '\0';
    size_t blanks = occ_spool_blanks(plain);
    (void)inflateEnd(&stream);
    return (code != Z_OK && code != Z_STREAM_END) || blanks == size ||
           occ_spool_is_json(plain + blanks, size - blanks);
}

static enum packing packing_of(const void *head, size_t n)
{
    if (n >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0)
        return PACKED_ZSTD;
    if (n >= 2 && memcmp(head, "\xff\xfe", 2) == 0)
        return PACKED_UTF16;
    return is_gzip(head, n) && !is_packed_json(head, n) ? PACKED_GZIP : PLAIN;
}

static int begin_unpacking(struct unpacker *u, const void *head, size_t n, struct occ_error *err)
{
    enum packing packing = packing_of(head, n);
    *u = (struct unpacker){.is_complete = true};
    if (packing == PACKED_ZSTD && !(u->zstd = ZSTD_createDStream()))
        return occ_no_memory(err);
    if (packing == PACKED_GZIP && inflateInit2(&u->gzip, GZIP_WINDOW) != Z_OK)
        return occ_no_memory(err);
    u->packing = packing;
    return 0;
}

static int unpack_zstd(struct unpacker *u, const char *data, size_t n, int out, uint64_t *total,
                       struct occ_error *err)
{
    static char to[131072];
    ZSTD_inBuffer input = {data, n, 0};
    int status = 0;
    while (input.pos < input.size && status == 0) {
        ZSTD_outBuffer output = {to, sizeof to, 0};
        size_t left = ZSTD_decompressStream(u->zstd, &output, &input);
        if (ZSTD_isError(left))
            return occ_fail(err, OCC_E_CORRUPT, "damaged: %s", ZSTD_getErrorName(left));
        u->is_complete = left == 0;
        status = write_all(out, to, output.pos, total, err);
    }
    return status;
}

static int unpack_gzip(struct unpacker *u, const char *data, size_t n, int out, uint64_t *total,
                       struct occ_error *err)
{
    static char to[131072];
    z_stream *z = &u->gzip;
    int status = 0;
    z->next_in = (Bytef *)(uintptr_t)data;
    z->avail_in = (uInt)n;
    z->avail_out = 0;
    while (status == 0 && (z->avail_in > 0 || z->avail_out == 0)) {
        if (u->is_complete && (z->avail_in == 0 || z->next_in[0] != 0x1f))
            return 0; /* another member may begin in the next bytes */
        z->next_out = (Bytef *)to;
        z->avail_out = sizeof to;
        int code = inflate(z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return occ_fail(err, OCC_E_CORRUPT, "damaged: %s", z->msg ? z->msg : zError(code));
        u->is_complete = code == Z_STREAM_END;
        status = write_all(out, to, sizeof to - z->avail_out, total, err);
        if (u->is_complete)
            (void)inflateReset(z);
    }
    return status;
}

static size_t put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(first[n] | c);
    return n;
}

static bool is_high_surrogate(unsigned unit)
{
    return (unit & 0xfc00) == 0xd800;
}

/* Converts little-endian UTF-16 without the byte order mark. An unpaired surrogate becomes an arbitrary
 * character. */
static int unpack_utf16(struct unpacker *u, const char *data, size_t n, int out, uint64_t *total,
                        struct occ_error *err)
{
    static char to[4 * 65536];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        u->utf16.unit |= (unsigned)(unsigned char)data[i] << 8 * u->utf16.n++;
        unsigned unit = u->utf16.unit & 0xffff;
        u->is_complete = u->utf16.n == 4 || (u->utf16.n == 2 && !is_high_surrogate(unit));
        if (!u->is_complete)
            continue;
        if (u->utf16.n == 4)
            unit = 0x10000 + ((unit & 0x3ff) << 10 | (u->utf16.unit >> 16 & 0x3ff));
        if (unit != 0xfeff)
            used += put_utf8(to + used, unit);
        u->utf16.unit = u->utf16.n = 0;
    }
    return write_all(out, to, used, total, err);
}

/* Reads up to `size` bytes, fewer only at the end; negative: an error. */
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

static int unpack(struct unpacker *u, const char *data, size_t n, int out, uint64_t *total,
                  struct occ_error *err)
{
    switch (u->packing) {
    case PACKED_ZSTD:
        return unpack_zstd(u, data, n, out, total, err);
    case PACKED_GZIP:
        return unpack_gzip(u, data, n, out, total, err);
    case PACKED_UTF16:
        return unpack_utf16(u, data, n, out, total, err);
    case PLAIN:
        break;
    }
    return write_all(out, data, n, total, err);
}

/* Compressed input comes out plain, but JSON that gzip compressed. */
static int copy(int in, int out, struct occ_error *err)
{
    static const char *const units[] = {
        [PACKED_ZSTD] = "zstd frame", [PACKED_GZIP] = "gzip member", [PACKED_UTF16] = "character of UTF-16"};
    static char data[65536];
    _cleanup_(free_unpacker) struct unpacker u = {.is_complete = true};
    uint64_t total = 0;
    ssize_t n = read_full(in, data, sizeof data);
    int status = n > 0 ? begin_unpacking(&u, data, (size_t)n, err) : 0;
    for (; n > 0 && status == 0; n = read_full(in, data, sizeof data))
        status = unpack(&u, data, (size_t)n, out, &total, err);
    if (status != 0)
        return status;
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read");
    return u.is_complete ? 0 : occ_fail(err, OCC_E_CORRUPT, "it ends inside a %s", units[u.packing]);
}

/* ---- reports of Nsight Systems ---- */

/* Runs Nsight Systems' own program, if installed; no shell sees the path. */
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

/* Creates the file for a copy: without a name, if the file system supports unnamed files, so that no file
 * remains if this process is killed. */
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
    char head[4096];
    struct stat status;
    spooled->fd = -1;
    if (strcmp(path, "-") != 0 && (own = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) < 0)
        return occ_fail_errno(err, errno, "%s", path);
    int in = own >= 0 ? own : STDIN_FILENO;
    if (fstat(in, &status) != 0)
        return occ_fail_errno(err, errno, "%s", path);
    bool is_file = S_ISREG(status.st_mode), is_report = is_file && is_nsys_report(path);
    ssize_t n = is_file ? pread(in, head, sizeof head, 0) : 0;
    bool is_packed = n > 0 && packing_of(head, (size_t)n) != PLAIN;
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
