/*
 * Fuzzes recordings that are packed with gzip or zstd or written by PowerShell (UTF-16): valid bytes are
 * unpacked to the original, and any other bytes give a plain file or an error.
 *
 * Input: first byte: the packing (low 2 bits: none, gzip, zstd, UTF-16), then the number of input bytes
 * (times 3) that are patches {u16 offset, u8 value} of the packed bytes. The rest is the content.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "fuzz_bytes.h"
#include "import/readers.h"
#include "import/sink_state.h"
#include "import/spool.h"

#define PACKED_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static size_t pack_plain(struct fuzz_bytes from, uint8_t *to)
{
    if (from.n > 0)
        memcpy(to, from.data, from.n);
    return from.n;
}

static size_t pack_gzip(struct fuzz_bytes from, uint8_t *to)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)from.data,
                  .avail_in = (uInt)from.n,
                  .next_out = to,
                  .avail_out = PACKED_MAX};
    must(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    (void)deflateEnd(&z);
    return PACKED_MAX - z.avail_out;
}

static size_t pack_zstd(struct fuzz_bytes from, uint8_t *to)
{
    size_t n = ZSTD_compress(to, PACKED_MAX, from.data, from.n, 3);
    must(!ZSTD_isError(n));
    return n;
}

static size_t pack_utf16(struct fuzz_bytes from, uint8_t *to)
{
    memcpy(to, "\xff\xfe", 2);
    for (size_t i = 0; i < from.n; i++) {
        to[2 + 2 * i] = from.data[i] & 0x7f;
        to[3 + 2 * i] = 0;
    }
    return 2 + 2 * from.n;
}

static size_t (*const packers[])(struct fuzz_bytes, uint8_t *) = {pack_plain, pack_gzip, pack_zstd,
                                                                  pack_utf16};
enum { PLAIN, GZIP, ZSTD, UTF16 };

static int make_file(const uint8_t *data, size_t n, char path[64])
{
    int fd = memfd_create("recording", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check_content(const struct occ_spooled *spooled, struct fuzz_bytes wanted, uint8_t mask)
{
    static uint8_t content[PACKED_MAX];
    FILE *file = fopen(spooled->path, "rbe");
    must(file != NULL);
    size_t n = fread(content, 1, sizeof content, file);
    (void)fclose(file);
    must(n == wanted.n);
    for (size_t i = 0; i < n; i++)
        must(content[i] == (wanted.data[i] & mask));
}

static void read_json(const char *path)
{
    static const struct occ_import_options options = {.gpu = "a100"};
    struct occ_import_sink *sink = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_import_sink_new(&options, &sink, NULL) == 0)
        (void)occ_import_read_kineto(path, sink, &err);
    occ_import_sink_free(sink);
}

/* Unpacks a file. JSON in gzip stays packed, since its reader streams it. Plain bytes may look packed by
 * chance. */
static void unpack(const char *path, int packing, bool is_sound, struct fuzz_bytes content)
{
    struct occ_spooled spooled = {.fd = -1};
    struct occ_error err = OCC_ERROR_INIT;
    int status = occ_spool(path, &spooled, &err);
    must(!is_sound || packing == PLAIN || status == 0);
    if (status == 0 && is_sound && packing != PLAIN && spooled.fd >= 0)
        check_content(&spooled, content, packing == UTF16 ? 0x7f : 0xff);
    if (status == 0 && spooled.fd < 0)
        read_json(path);
    occ_spooled_close(&spooled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t packed[PACKED_MAX];
    char path[64];
    struct fuzz_bytes input = {data, size};
    uint8_t control = fuzz_byte(&input);
    size_t n_patches = control >> 2;
    if (size > PACKED_MAX / 4 || input.n < 3 * n_patches)
        return 0;
    struct fuzz_bytes content = {input.data + 3 * n_patches, input.n - 3 * n_patches};
    size_t n = packers[control & 3](content, packed);
    for (size_t i = 0; i < n_patches && n > 0; i++, input.data += 3)
        packed[(input.data[0] | (size_t)input.data[1] << 8) % n] = input.data[2];
    int fd = make_file(packed, n, path);
    unpack(path, control & 3, n_patches == 0, content);
    (void)close(fd);
    return 0;
}
