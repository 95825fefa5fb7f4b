/*
 * Fat binaries, as nvcc 11 to 13 write them.
 *
 * Header {u32 magic, u16 version, u16 header bytes, u64 bytes that follow}, then entries
 *   {u16 kind: 1 PTX, 2 ELF; u16; u32 header bytes; u64 padded bytes @8; u32 compressed bytes @16;
 *    u32 SM @28; u64 flags @40: 0x2000 LZ4, 0x8000 zstd, 0x100000 sm_NNa, 0x200000 sm_NNf;
 *    u64 decompressed bytes @56}.
 *
 * Pure apart from malloc; any thread.
 */
#include "entries.h"
#include "fail.h"
#include "lz4.h"

#include <stdlib.h>
#include <zstd.h>

#define FATBIN_VERSION     1
#define ENTRY_HEADER_BYTES 64
#define KIND_PTX           1
#define KIND_ELF           2
#define FLAG_SUFFIX_A      0x100000u
#define FLAG_SUFFIX_F      0x200000u
#define FLAG_LZ4           0x2000u
#define FLAG_ZSTD          0x8000u

static enum packing packing_of(uint64_t flags)
{
    return flags & FLAG_ZSTD ? PACKING_ZSTD : flags & FLAG_LZ4 ? PACKING_LZ4 : PACKING_NONE;
}

static char suffix_of(uint64_t flags)
{
    return flags & FLAG_SUFFIX_A ? 'a' : flags & FLAG_SUFFIX_F ? 'f' : 0;
}

static enum occ_image_kind kind_of(uint16_t kind)
{
    return kind == KIND_ELF   ? OCC_IMAGE_KIND_CUBIN
           : kind == KIND_PTX ? OCC_IMAGE_KIND_PTX
                              : OCC_IMAGE_KIND_OTHER;
}

/* Reads the entry at *offset and advances to the next one. `all` ends with the fat binary. */
static int read_entry(struct span all, size_t *offset, struct found *ret, struct occ_image_error *err)
{
    size_t at = *offset;
    if (!inside(all, at, ENTRY_HEADER_BYTES))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the fat binary ends inside the entry header at byte %zu", at);
    const uint8_t *h = all.at + at;
    uint32_t header = u32_at(h + 4), compressed = u32_at(h + 16);
    uint64_t padded = u64_at(h + 8);
    if (header < ENTRY_HEADER_BYTES || !inside(all, at, header) || !inside(all, at + header, padded))
        return occ_image_fail(
            err, OCC_IMAGE_E_INVALID,
            "fat binary entry at byte %zu: a header of %u and content of %llu bytes do not fit", at, header,
            (unsigned long long)padded);
    if (compressed > padded)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "fat binary entry at byte %zu: %u compressed in %llu bytes", at, compressed,
                              (unsigned long long)padded);
    *ret = (struct found){.packing = packing_of(u64_at(h + 40))};
    ret->payload = (struct span){h + header, compressed ? compressed : (size_t)padded};
    ret->entry = (struct occ_image_entry){
        .kind = kind_of(u16_at(h)),
        .sm = u32_at(h + 28),
        .suffix = suffix_of(u64_at(h + 40)),
        .compressed = ret->packing != PACKING_NONE,
        .offset = at,
        .bytes = ret->packing ? u64_at(h + 56) : ret->payload.size,
    };
    *offset = at + header + (size_t)padded;
    return 0;
}

/* Offset of the end of the fat binary at `offset`, and its header's size. */
static int read_header(struct span all, size_t offset, size_t *ret_header, size_t *ret_end,
                       struct occ_image_error *err)
{
    if (!inside(all, offset, OCC_IMAGE_FATBIN_HEADER))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the fat binary's header at byte %zu is incomplete", offset);
    const uint8_t *h = all.at + offset;
    uint16_t version = u16_at(h + 4), header = u16_at(h + 6);
    uint64_t content = u64_at(h + 8);
    if (version != FATBIN_VERSION)
        return occ_image_fail(err, OCC_IMAGE_E_VERSION, "fat binary at byte %zu: version %u, only %u is read",
                              offset, version, FATBIN_VERSION);
    if (header < OCC_IMAGE_FATBIN_HEADER || !inside(all, offset, header) ||
        !inside(all, offset + header, content))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the fat binary at byte %zu claims %u + %llu bytes, %zu are there",
                              offset, header, (unsigned long long)content, all.size - offset);
    *ret_header = header;
    *ret_end = offset + header + (size_t)content;
    return 0;
}

/* Appends the entries of the fat binary at *offset and advances behind it; it ends at `end` at the latest. */
static int list_fatbin(struct occ_image_list *list, size_t end, size_t *offset, struct occ_image_error *err)
{
    struct span all = {list->all.at, end};
    size_t header = 0, at;
    int code = read_header(all, *offset, &header, &all.size, err);
    if (code)
        return code;
    for (at = *offset + header; !code && at < all.size;) {
        struct found found;
        code = read_entry(all, &at, &found, err);
        if (!code)
            code = occ_image_list_add(list, &found, err);
    }
    *offset = at;
    return code;
}

int occ_image_fatbins_list(struct occ_image_list *list, size_t offset, size_t end,
                           struct occ_image_error *err)
{
    int code = 0;
    while (!code && end - offset >= 4) {
        uint32_t word = u32_at(list->all.at + offset);
        if (word == OCC_IMAGE_FATBIN_MAGIC)
            code = list_fatbin(list, end, &offset, err);
        else if (word == 0)
            offset += 4;
        else
            code = occ_image_fail(err, OCC_IMAGE_E_INVALID,
                                  "byte %zu: neither a fat binary nor padding (0x%08x)", offset, word);
    }
    return code;
}

/* ---- decompression ---- */

static int check_size(const struct found *found, struct occ_image_error *err)
{
    uint64_t size = found->entry.bytes;
    if (!size)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "an entry of 0 bytes");
    if (size > OCC_IMAGE_MAX_BYTES)
        return occ_image_fail(err, OCC_IMAGE_E_FULL, "claims %llu bytes, the maximum is %llu",
                              (unsigned long long)size, (unsigned long long)OCC_IMAGE_MAX_BYTES);
    if (size / OCC_IMAGE_MAX_RATIO > found->payload.size)
        return occ_image_fail(err, OCC_IMAGE_E_FULL, "claims %llu bytes out of %zu compressed ones",
                              (unsigned long long)size, found->payload.size);
    return 0;
}

static bool unpack_into(const struct found *found, uint8_t *bytes, size_t size)
{
    const struct span in = found->payload;
    switch (found->packing) {
    case PACKING_ZSTD:
        return ZSTD_decompress(bytes, size, in.at, in.size) == size;
    case PACKING_LZ4:
        return occ_image_lz4_decode(in.at, in.size, bytes, size);
    case PACKING_NONE:
        break;
    }
    memcpy(bytes, in.at, size);
    return true;
}

int occ_image_unpack(const struct found *found, uint8_t **ret_bytes, size_t *ret_size,
                     struct occ_image_error *err)
{
    int code = check_size(found, err);
    if (code)
        return code;
    size_t size = (size_t)found->entry.bytes;
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory for %zu bytes", size);
    if (!unpack_into(found, bytes, size)) {
        free(bytes);
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "damaged: its %s data do not decompress to %zu bytes",
                              found->packing == PACKING_ZSTD ? "zstd" : "LZ4", size);
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}
