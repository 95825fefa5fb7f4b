/* See output.h. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

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

/* Takes `fd` over, also when it fails. NULL: errno. */
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
    gzFile file = gzdopen(fd, "wb");
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

static FILE *open_stream(int fd, const char *path)
{
    return ends_in(path, ".gz") ? open_gzip(fd) : ends_in(path, ".zst") ? open_zstd(fd) : fdopen(fd, "w");
}

/* A new file beside `path`, with the rights that a new file gets. */
static int make_temporary(struct export_output *output)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0)
        output->temporary = NULL;
    int fd = output->temporary ? mkostemp(output->temporary, O_CLOEXEC) : -1;
    if (fd >= 0)
        (void)fchmod(fd, 0666 & ~mask);
    return fd;
}

int export_output_open(const char *path, struct export_output *ret_output, struct occ_error *err)
{
    struct stat st;
    *ret_output = (struct export_output){.path = path, .out = path ? NULL : stdout};
    if (!path) {
        (void)setvbuf(stdout, NULL, _IOFBF, BUFFER_BYTES);
        return 0;
    }
    bool is_special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int fd = is_special ? open(path, O_WRONLY | O_CLOEXEC) : make_temporary(ret_output);
    if (fd >= 0)
        ret_output->out = open_stream(fd, path);
    if (!ret_output->out) {
        (void)occ_fail(err, OCC_E_IO, "cannot write %s: %s", path, strerror(errno));
        export_output_abandon(ret_output);
        return err->code;
    }
    (void)setvbuf(ret_output->out, NULL, _IOFBF, BUFFER_BYTES);
    return 0;
}

int export_output_finish(struct export_output *output, struct occ_error *err)
{
    if (!output->path)
        return 0; /* the caller's program looks at stdout when it ends */
    bool good = !ferror(output->out);
    good = fclose(output->out) == 0 && good;
    output->out = NULL;
    if (good && output->temporary)
        good = rename(output->temporary, output->path) == 0;
    if (!good) {
        (void)occ_fail(err, OCC_E_IO, "cannot write %s: %s", output->path, strerror(errno));
        export_output_abandon(output);
        return err->code;
    }
    free(output->temporary);
    output->temporary = NULL;
    return 0;
}

void export_output_abandon(struct export_output *output)
{
    if (output->out && output->path)
        (void)fclose(output->out);
    output->out = NULL;
    if (output->temporary)
        (void)unlink(output->temporary);
    free(output->temporary);
    output->temporary = NULL;
}
