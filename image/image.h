/*
 * What compiled CUDA code says about its kernels: the resources that decide occupancy, parameters, global variables.
 *
 * Reads, told apart by their first bytes:
 *   cubins                     ELF, machine 190, ABI versions 8 (CUDA 13) and, to sm_89, 7 (before);
 *   fat binaries               several in a row too; entries uncompressed, zstd or LZ4; PTX entries are listed;
 *   host ELF files             executables, shared libraries and object files with such fat binaries inside
 *                              (sections .nv_fatbin and __nv_relfatbin).
 *
 * The bytes are hostile until checked: every length is checked before it is used, sizes and counts have the limits
 * below, and what does not hold is an error that says what is wrong and at which byte of which part. An image copies
 * what it needs: the caller's bytes may go away.
 *
 *   int f(..., struct occ_image_error *err);   0 or a negative OCC_IMAGE_E_*; `err` may be NULL, and is left alone on
 *                                              success; ret_ parameters are untouched on failure.
 *
 * Depends on libzstd only. Pure apart from malloc: no I/O, no logging, no global state; any thread.
 */
#ifndef OCC_IMAGE_IMAGE_H
#define OCC_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_IMAGE_MAX_BYTES      (UINT64_C(1) << 29) /* of a cubin, also when decompressed */
#define OCC_IMAGE_MAX_FILE_BYTES (UINT64_C(1) << 34) /* of what is given in one call */
#define OCC_IMAGE_MAX_RATIO      4096                /* decompressed to compressed bytes of an entry */
#define OCC_IMAGE_MAX_ENTRIES    (1u << 20)          /* images in one file */
#define OCC_IMAGE_MAX_KERNELS    65536               /* in one cubin */

enum occ_image_code {
    OCC_IMAGE_OK = 0,
    OCC_IMAGE_E_INVALID = -1,   /* not an image, or one that is damaged or lies */
    OCC_IMAGE_E_NO_BINARY = -2, /* an image, but nothing compiled in it, or not for the wanted capability */
    OCC_IMAGE_E_NO_MEMORY = -3,
    OCC_IMAGE_E_VERSION = -4, /* an ELF ABI or a compression that this reader does not know */
    OCC_IMAGE_E_FULL = -5,    /* over one of the limits above */
};

struct occ_image_error {
    int code;          /* OCC_IMAGE_E_* */
    char message[256]; /* for a user, without a trailing dot or newline */
};

struct occ_image_parameter {
    uint16_t offset, bytes;
};

struct occ_image_kernel {
    const char *name;           /* mangled, never empty; lives as long as its image */
    uint32_t registers;         /* per thread; 0: the image does not say */
    uint32_t static_smem_bytes; /* without the system's reserve of sm_90 and later */
    uint32_t local_bytes;       /* stack frame per thread */
    uint32_t barriers;          /* named barriers of a block, 0 ... 16 */
    uint32_t max_threads;       /* of __launch_bounds__; 0: none */
    uint32_t cluster[3];        /* __cluster_dims__; 0, 0, 0: none */
    uint32_t parameter_bytes;
    uint32_t parameter_count;
    const struct occ_image_parameter *parameters; /* by index */
};

struct occ_image_global {
    const char *name;
    uint64_t bytes;
    const uint8_t *initial; /* NULL: zero */
};

/* One cubin. */
struct occ_image {
    uint32_t sm;          /* 75, 90, 121 */
    uint32_t abi_version; /* 7 or 8 */
    bool relocatable;     /* nvcc -dc: not linked yet, the linker may still raise registers and stack */
    uint32_t kernel_count, global_count;
    uint32_t constant_bytes; /* of user constants */
    struct occ_image_kernel *kernels;
    struct occ_image_global *globals;
    uint8_t *bytes; /* the ELF file, the image's own copy */
};

/* ---- files with any number of images ---- */

enum occ_image_kind {
    OCC_IMAGE_KIND_CUBIN, /* can be loaded below */
    OCC_IMAGE_KIND_PTX,   /* text for a later compiler: no resources are known */
    OCC_IMAGE_KIND_OTHER, /* something this reader has no name for */
};

struct occ_image_entry {
    enum occ_image_kind kind;
    uint32_t sm; /* of a PTX entry: the virtual architecture */
    char suffix; /* 'a' of sm_90a (that device only), 'f' of sm_100f (its family); 0: none, or a bare cubin */
    bool compressed; /* zstd or LZ4 */
    uint64_t offset; /* of its fat binary's entry (or the cubin) in the given bytes, for messages */
    uint64_t bytes;  /* decompressed, as claimed */
};

/* Lists what the bytes contain, in their order. Borrows `bytes`, which must outlive it. */
struct occ_image_list;

/* OCC_IMAGE_E_NO_BINARY: a sound host ELF file without any fat binary. A list that comes back has at least one
 * entry; there may be PTX alone in it. Decompresses nothing. */
int occ_image_list_new(const void *bytes, size_t size, struct occ_image_list **ret_list,
                       struct occ_image_error *err);

/* NULL is fine. */
void occ_image_list_free(struct occ_image_list *list);

size_t occ_image_list_count(const struct occ_image_list *list);

/* NULL: `index` is not below the count. */
const struct occ_image_entry *occ_image_list_entry(const struct occ_image_list *list, size_t index);

/* Reads one entry, decompressing it. OCC_IMAGE_E_NO_BINARY: it is not a cubin. */
int occ_image_load(const struct occ_image_list *list, size_t index, struct occ_image **ret_image,
                   struct occ_image_error *err);

/* "sm_75, sm_80, compute_90": every architecture once, ascending, cubins before PTX. Cut to `size`, always ended;
 * returns `buffer`. */
const char *occ_image_list_text(const struct occ_image_list *list, char *buffer, size_t size);

/* ---- one image ---- */

/* true: a cubin for `image_sm` runs on a device of capability `device_sm` (same major version, minor not above). */
bool occ_image_runs_on(uint32_t image_sm, uint32_t device_sm);

/* The same of an entry: one with suffix 'a' runs on exactly its own capability. false for what is not a cubin. */
bool occ_image_entry_runs_on(const struct occ_image_entry *entry, uint32_t device_sm);

/* The best entry of a file for a device of capability `sm` (75, 90, 121): of those that run there the highest, of
 * several the last. OCC_IMAGE_E_NO_BINARY names what there is instead. */
int occ_image_read(const void *bytes, size_t size, uint32_t sm, struct occ_image **ret_image,
                   struct occ_image_error *err);

/* NULL is fine. */
void occ_image_free(struct occ_image *image);

/* NULL: no such kernel. */
const struct occ_image_kernel *occ_image_kernel(const struct occ_image *image, const char *name);

#endif
