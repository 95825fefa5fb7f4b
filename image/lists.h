/* What the parts of this module give each other: finding entries (fatbin.c, host.c) and reading one (cubin.c). */
#ifndef OCC_IMAGE_LISTS_H
#define OCC_IMAGE_LISTS_H

#include "bytes.h"
#include "image.h"

#define OCC_IMAGE_FATBIN_MAGIC  0xba55ed50u
#define OCC_IMAGE_FATBIN_HEADER 16 /* bytes, at least */

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

/* Appends one. */
int occ_image_list_add(struct occ_image_list *list, const struct found *found, struct occ_image_error *err);

/* Appends the entries of the fat binary at `offset` of `all`, which may reach to `end` at most; steps behind it. */
int occ_image_fatbin_list(struct occ_image_list *list, size_t end, size_t *offset,
                          struct occ_image_error *err);

/* Fat binaries one behind the other from `offset` to `end`, with zeros between them. */
int occ_image_fatbins_list(struct occ_image_list *list, size_t offset, size_t end,
                           struct occ_image_error *err);

/* Appends the entries of all fat binaries in a host ELF file. */
int occ_image_host_list(struct occ_image_list *list, struct occ_image_error *err);

/* An entry's own bytes, decompressed, to be freed. */
int occ_image_unpack(const struct found *found, uint8_t **ret_bytes, size_t *ret_size,
                     struct occ_image_error *err);

/* Only the header: SM and ABI. */
int occ_image_cubin_sm(struct span bytes, uint32_t *ret_sm, struct occ_image_error *err);

/* `bytes` (of malloc) become the image's, or are freed on failure. */
int occ_image_cubin_read(uint8_t *bytes, size_t size, struct occ_image **ret_image,
                         struct occ_image_error *err);

#endif
