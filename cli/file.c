/* See file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "command.h"
#include "support/cleanup.h"

enum { BUFFER_BYTES = 1 << 20, ZSTD_LEVEL = 3 };

/* ---- gzip ---- */

static ssize_t gzip_write(void *file, const char *bytes, size_t n)
{
    return gzwrite(file, bytes, (unsigned)n);
}

static int gzip_close(void *file)
{
    return gzclose(file) == Z_OK ? 0 : EOF;
}

/* ---- zstd ---- */

struct zstd_file {
    FILE *out;
    ZSTD_CStream *stream;
    char buffer[1 << 17];
};

static bool zstd_put(struct zstd_file *file, ZSTD_inBuffer *in, ZSTD_EndDirective end)
{
    size_t left = 1;
    while (left && (in->pos < in->size || end == ZSTD_e_end)) {
        ZSTD_outBuffer out = {file->buffer, sizeof file->buffer, 0};
        left = ZSTD_compressStream2(file->stream, &out, in, end);
        if (ZSTD_isError(left) || fwrite(file->buffer, 1, out.pos, file->out) != out.pos)
            return false;
        left += end == ZSTD_e_continue;
    }
    return true;
}

static ssize_t zstd_write(void *cookie, const char *bytes, size_t n)
{
    return zstd_put(cookie, &(ZSTD_inBuffer){bytes, n, 0}, ZSTD_e_continue) ? (ssize_t)n : 0;
}

static int zstd_close(void *cookie)
{
    struct zstd_file *file = cookie;
    bool good = zstd_put(file, &(ZSTD_inBuffer){NULL, 0, 0}, ZSTD_e_end);
    int status = fclose(file->out) == 0 && good ? 0 : EOF;
    (void)ZSTD_freeCStream(file->stream);
    free(file);
    return status;
}

/* ---- files ---- */

/* Takes ownership of `fd`, also on failure. Returns NULL with errno on failure. */
static FILE *open_zstd(int fd)
{
    struct zstd_file *file = calloc(1, sizeof *file);
    FILE *out = NULL;
    if (file && (file->stream = ZSTD_createCStream()) && (file->out = fdopen(fd, "w"))) {
        (void)ZSTD_CCtx_setParameter(file->stream, ZSTD_c_compressionLevel, ZSTD_LEVEL);
        out = fopencookie(file, "w", (cookie_io_functions_t){.write = zstd_write, .close = zstd_close});
        if (out)
            return out;
        (void)fclose(file->out);
    } else
        (void)close(fd);
    if (file)
        (void)ZSTD_freeCStream(file->stream);
    free(file);
    return NULL;
}

static FILE *open_gzip(int fd)
{
    gzFile file = gzdopen(fd, "wb1");
    FILE *out =
        file ? fopencookie(file, "w", (cookie_io_functions_t){.write = gzip_write, .close = gzip_close})
             : NULL;
    if (!file)
        (void)close(fd);
    else if (!out)
        (void)gzclose(file);
    return out;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

bool cli_file_ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    n -= ends_in(path, ".gz") ? strlen(".gz") : ends_in(path, ".zst") ? strlen(".zst") : 0;
    return n > m && strncmp(path + n - m, end, m) == 0;
}

static int check_compression(const char *path, struct occ_error *err)
{
    static const char *const others[] = {".bz2", ".xz", ".lz4", ".zip", ".br"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_in(path, others[i]))
            return occ_fail(err, OCC_E_INVALID, "%s: only .gz and .zst are compressed", path);
    return 0;
}

static FILE *open_stream(int fd, const char *path)
{
    return ends_in(path, ".gz") ? open_gzip(fd) : ends_in(path, ".zst") ? open_zstd(fd) : fdopen(fd, "w");
}

/* Creates an unnamed file in the directory of `path`, which disappears if the program ends early. Its mode is
 * the mode of the replaced file, or of a new file. Creates a named temporary file beside `path` if the file
 * system does not support unnamed files. */
static int make_temporary(struct cli_file *output, const struct stat *before)
{
    char directory[PATH_MAX];
    mode_t mask = umask(0);
    (void)umask(mask);
    mode_t mode = before ? before->st_mode & 07777 : 0666 & ~mask;
    (void)snprintf(directory, sizeof directory, "%s", output->path);
    char *slash = strrchr(directory, '/');
    (void)snprintf(slash ? slash + 1 : directory, 2, ".");
    if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0)
        output->temporary = NULL;
    int fd = output->temporary ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode) : -1;
    output->is_named = fd < 0;
    if (fd < 0 && output->temporary)
        fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd >= 0)
        (void)fchmod(fd, mode);
    return fd;
}

int cli_file_open(const char *path, struct cli_file *ret_output, struct occ_error *err)
{
    struct stat st;
    *ret_output = (struct cli_file){.fd = -1, .out = path ? NULL : stdout};
    if (!path) {
        (void)setvbuf(stdout, NULL, _IOFBF, BUFFER_BYTES);
        return 0;
    }
    if (strcmp(path, "-") == 0) /* stdout has other text if the file is a second output */
        return occ_fail(err, OCC_E_INVALID,
                        "'-' is not a file: /dev/stdout is standard output, ./- a file of that name");
    if (check_compression(path, err) != 0 || cli_check_output(path, err) != 0)
        return err->code;
    bool exists = stat(path, &st) == 0, is_special = exists && !S_ISREG(st.st_mode);
    char *target = exists ? realpath(path, NULL) : NULL; /* the target of a symbolic link */
    ret_output->path = target ? target : strdup(path);
    int fd = !ret_output->path ? -1
             : is_special      ? open(path, O_WRONLY | O_CLOEXEC)
                               : make_temporary(ret_output, exists ? &st : NULL);
    if (fd >= 0 && ret_output->temporary)
        ret_output->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
        ret_output->out = open_stream(fd, path);
    if (!ret_output->out) {
        (void)occ_fail(err, OCC_E_IO, "cannot write %s: %s", path, strerror(errno));
        cli_file_abandon(ret_output);
        return err->code;
    }
    (void)setvbuf(ret_output->out, NULL, _IOFBF, BUFFER_BYTES);
    return 0;
}

/* Gives an unnamed file its temporary name. */
static bool give_name(struct cli_file *output)
{
    char link[64];
    if (output->is_named)
        return true;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", output->fd);
    int fd = mkostemp(output->temporary, O_CLOEXEC); /* finds an unused name */
    if (fd < 0 || close(fd) != 0 || unlink(output->temporary) != 0)
        return false;
    output->is_named = linkat(AT_FDCWD, link, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0;
    return output->is_named;
}

int cli_file_finish(struct cli_file *output, struct occ_error *err)
{
    if (!output->path)
        return 0; /* the caller's program checks stdout at its end */
    bool good = !ferror(output->out);
    good = fclose(output->out) == 0 && good;
    output->out = NULL;
    if (good && output->temporary)
        good = give_name(output) && rename(output->temporary, output->path) == 0;
    if (!good)
        (void)occ_fail(err, OCC_E_IO, "cannot write %s: %s", output->path, strerror(errno));
    else
        output->is_named = false;
    cli_file_abandon(output);
    return good ? 0 : err->code;
}

void cli_file_abandon(struct cli_file *output)
{
    if (output->out && output->path)
        (void)fclose(output->out);
    if (output->temporary && output->is_named)
        (void)unlink(output->temporary);
    occ_close_fd(&output->fd);
    free(output->temporary);
    free(output->path);
    *output = (struct cli_file){.fd = -1};
}
