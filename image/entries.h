/* Entries of a file: how fatbin.c and host.c find them, entries.c stores them, fatbin.c unpacks one and
 * cubin.c reads it. Internal to image/. */
#pragma once

#include "bytes.h"
#include "image.h"

#define OCC_IMAGE_FATBIN_MAGIC  0xba55ed50u
#define OCC_IMAGE_FATBIN_HEADER 16 /* minimum size in bytes */

enum packing { PACKING_NONE, PACKING_LZ4, PACKING_ZSTD };

struct found {
    struct occ_image_entry entry;
    enum packing packing;
    struct span payload; /* as stored */
};

struct occ_image_list {
    struct span all;
    struct found *found;
    size_t count, capacity;
};

/* Appends one entry. */
int occ_image_list_add(struct occ_image_list *list, const struct found *found, struct occ_image_error *err);

/* Appends the entries of all fat binaries between `offset` and `end`, with zeros as padding between them. */
int occ_image_fatbins_list(struct occ_image_list *list, size_t offset, size_t end,
                           struct occ_image_error *err);

/* Appends the entries of an ELF file: a cubin, or a host file with fat binaries. */
int occ_image_elf_list(struct occ_image_list *list, struct occ_image_error *err);

/* True for static archives, also for thin ones, whose members are elsewhere. */
bool occ_image_is_archive(struct span all);

/* Appends the entries of all object files in a static archive. */
int occ_image_archive_list(struct occ_image_list *list, struct occ_image_error *err);

/* The decompressed bytes of an entry; the caller frees them. */
int occ_image_unpack(const struct found *found, uint8_t **ret_bytes, size_t *ret_size,
                     struct occ_image_error *err);

/* The SM version of a cubin, from its header alone. */
int occ_image_cubin_sm(struct span bytes, uint32_t *ret_sm, struct occ_image_error *err);

/* Takes ownership of `bytes` (malloc'ed): the image's, or freed on failure. */
int occ_image_cubin_read(uint8_t *bytes, size_t size, struct occ_image **ret_image,
                         struct occ_image_error *err);
