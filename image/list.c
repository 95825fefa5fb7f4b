/* Lists the entries of a file, told apart by its first bytes; loads one; formats the list. Pure apart from
 * malloc; any thread. */
#include "elf_file.h"
#include "entries.h"
#include "fail.h"

#include <stdio.h>
#include <stdlib.h>

/* PTX starts with a directive or a comment. */
static bool looks_like_ptx(struct span all)
{
    static const char *const starts[] = {"//", ".version"};
    size_t at = 0;
    while (at < all.size && strchr(" \t\r\n", all.at[at]) && all.at[at])
        at++;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t length = strlen(starts[i]);
        if (inside(all, at, length) && memcmp(all.at + at, starts[i], length) == 0)
            return true;
    }
    return false;
}

static int refuse(struct span all, struct occ_image_error *err)
{
    if (looks_like_ptx(all))
        return occ_image_fail(
            err, OCC_IMAGE_E_NO_BINARY,
            "PTX text: ptxas decides the registers (use a cubin, or the output of ptxas -v)");
    return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                          all.size < 4 ? "%zu bytes: too short for a cubin, a fat binary or an ELF file"
                                       : "%zu bytes: neither a cubin, a fat binary nor an ELF file",
                          all.size);
}

static int list_bytes(struct occ_image_list *list, struct occ_image_error *err)
{
    struct span all = list->all;
    if (all.size >= 4 && u32_at(all.at) == OCC_IMAGE_FATBIN_MAGIC) {
        int code = occ_image_fatbins_list(list, 0, all.size, err);
        if (!code && !list->count)
            return occ_image_fail(err, OCC_IMAGE_E_NO_BINARY, "a fat binary without entries");
        return code;
    }
    if (occ_image_is_archive(all))
        return occ_image_archive_list(list, err);
    if (all.size < SELFMAG || memcmp(all.at, ELFMAG, SELFMAG) != 0)
        return refuse(all, err);
    return occ_image_elf_list(list, err);
}

int occ_image_list_new(const void *bytes, size_t size, struct occ_image_list **ret_list,
                       struct occ_image_error *err)
{
    if (!bytes || size > OCC_IMAGE_MAX_FILE_BYTES)
        return bytes ? occ_image_fail(err, OCC_IMAGE_E_FULL, "%zu bytes: more than the %llu that are read",
                                      size, (unsigned long long)OCC_IMAGE_MAX_FILE_BYTES)
                     : occ_image_fail(err, OCC_IMAGE_E_INVALID, "no bytes");
    struct occ_image_list *list = calloc(1, sizeof *list);
    if (!list)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    list->all = (struct span){bytes, size};
    int code = list_bytes(list, err);
    if (code)
        occ_image_list_free(list);
    else
        *ret_list = list;
    return code;
}

static const char *sm_prefix(enum occ_image_kind kind)
{
    return kind == OCC_IMAGE_KIND_CUBIN ? "sm" : kind == OCC_IMAGE_KIND_PTX ? "compute" : "other";
}

int occ_image_load(const struct occ_image_list *list, size_t index, struct occ_image **ret_image,
                   struct occ_image_error *err)
{
    if (index >= list->count)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "entry %zu of %zu", index, list->count);
    const struct found *found = &list->found[index];
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct occ_image *image = NULL;
    int code = found->entry.kind == OCC_IMAGE_KIND_CUBIN
                   ? occ_image_unpack(found, &bytes, &size, err)
                   : occ_image_fail(err, OCC_IMAGE_E_NO_BINARY, "not a cubin");
    if (!code)
        code = occ_image_cubin_read(bytes, size, &image, err);
    if (!code && image->sm != found->entry.sm) {
        code = occ_image_fail(err, OCC_IMAGE_E_INVALID, "the cubin in it is for sm_%u", image->sm);
        occ_image_free(image);
    }
    if (code)
        occ_image_prefix(err, "entry %zu (%s_%u) at byte %llu: ", index, sm_prefix(found->entry.kind),
                         found->entry.sm, (unsigned long long)found->entry.offset);
    else
        *ret_image = image;
    return code;
}

/* ---- the list as text ---- */

static bool comes_before(const struct occ_image_entry *a, const struct occ_image_entry *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->sm != b->sm ? a->sm < b->sm : a->suffix < b->suffix;
}

/* The first entry in sort order after `last` (NULL: of all); NULL: none. */
static const struct occ_image_entry *next_in_order(const struct occ_image_list *list,
                                                   const struct occ_image_entry *last)
{
    const struct occ_image_entry *best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct occ_image_entry *entry = &list->found[i].entry;
        if ((!last || comes_before(last, entry)) && (!best || comes_before(entry, best)))
            best = entry;
    }
    return best;
}

const char *occ_image_list_text(const struct occ_image_list *list, char *buffer, size_t size)
{
    size_t used = 0;
    if (size)
        buffer[0] = 0;
    const struct occ_image_entry *entry = next_in_order(list, NULL);
    for (; entry && used < size; entry = next_in_order(list, entry)) {
        const char suffix[2] = {entry->suffix, 0};
        int length = snprintf(buffer + used, size - used, "%s%s_%u%s", used ? ", " : "",
                              sm_prefix(entry->kind), entry->sm, suffix);
        used += length > 0 ? (size_t)length : size;
    }
    return buffer;
}

/* ---- devices ---- */

bool occ_image_runs_on(uint32_t sm, char suffix, uint32_t device_sm)
{
    if (suffix == 'a')
        return sm == device_sm;
    return sm / 10 == device_sm / 10 && sm <= device_sm;
}
