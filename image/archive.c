/*
 * Object files in static archives: "!<arch>\n", then members {name[16], date[12], uid[6], gid[6], mode[8],
 * decimal size[10], "`\n"} with their bytes, padded to an even size. Members that are no ELF files (tables of
 * symbols and names, other files) are skipped. Offsets of entries are offsets in the archive.
 *
 * Pure apart from malloc; any thread.
 */
#include "elf_file.h"
#include "entries.h"
#include "fail.h"

#define MAGIC        "!<arch>\n"
#define THIN_MAGIC   "!<thin>\n"
#define MAGIC_BYTES  8
#define HEADER_BYTES 60
#define SIZE_AT      48
#define SIZE_DIGITS  10
#define END_AT       58

static bool starts_with(struct span all, const char *magic)
{
    return all.size >= MAGIC_BYTES && memcmp(all.at, magic, MAGIC_BYTES) == 0;
}

bool occ_image_is_archive(struct span all)
{
    return starts_with(all, MAGIC) || starts_with(all, THIN_MAGIC);
}

/* Digits, then blanks. */
static bool read_size(const uint8_t *text, uint64_t *ret_size)
{
    int i = 0;
    for (*ret_size = 0; i < SIZE_DIGITS && text[i] >= '0' && text[i] <= '9'; i++)
        *ret_size = 10 * *ret_size + (text[i] - '0');
    bool has_digits = i > 0;
    while (i < SIZE_DIGITS && text[i] == ' ')
        i++;
    return has_digits && i == SIZE_DIGITS;
}

/* Reads the header at *offset, and moves *offset behind the member. */
static int next_member(struct span all, size_t *offset, struct span *ret_member, struct occ_image_error *err)
{
    size_t at = *offset;
    uint64_t size;
    if (!inside(all, at, HEADER_BYTES))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the archive ends in the header at byte %zu", at);
    const uint8_t *h = all.at + at;
    if (memcmp(h + END_AT, "`\n", 2) != 0 || !read_size(h + SIZE_AT, &size))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "byte %zu: no header of an archive's member", at);
    if (!inside(all, at + HEADER_BYTES, size))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the archive's member at byte %zu claims %llu bytes, %zu are there",
                              at, (unsigned long long)size, all.size - at - HEADER_BYTES);
    *ret_member = (struct span){h + HEADER_BYTES, (size_t)size};
    *offset = at + HEADER_BYTES + (size_t)size + (size & 1);
    return 0;
}

/* Appends the entries of a member; a member without CUDA code has none. */
static int list_member(struct occ_image_list *list, struct span member, struct occ_image_error *err)
{
    struct occ_image_error why = {0};
    struct span all = list->all;
    size_t first = list->count;
    if (member.size < SELFMAG || memcmp(member.at, ELFMAG, SELFMAG) != 0)
        return 0;
    list->all = member;
    int code = occ_image_elf_list(list, &why);
    list->all = all;
    for (size_t i = first; i < list->count; i++)
        list->found[i].entry.offset += (uint64_t)(member.at - all.at);
    if (code == 0 || code == OCC_IMAGE_E_NO_BINARY)
        return 0;
    (void)occ_image_fail(err, code, "%s", why.message);
    occ_image_prefix(err, "member at byte %zu: ", (size_t)(member.at - all.at));
    return code;
}

int occ_image_archive_list(struct occ_image_list *list, struct occ_image_error *err)
{
    struct span all = list->all;
    int code = 0;
    if (starts_with(all, THIN_MAGIC))
        return occ_image_fail(err, OCC_IMAGE_E_VERSION, "a thin archive: its object files are other files");
    for (size_t offset = MAGIC_BYTES; !code && offset < all.size;) {
        struct span member;
        code = next_member(all, &offset, &member, err);
        if (!code)
            code = list_member(list, member, err);
    }
    if (!code && !list->count)
        code = occ_image_fail(err, OCC_IMAGE_E_NO_BINARY, "a static archive without CUDA code");
    return code;
}
