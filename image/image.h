/*
 * Reads the resources of kernels in compiled CUDA code that determine occupancy.
 *
 * Formats, distinguished by their first bytes:
 *   cubins           ELF, machine 190, ABI versions 8 (CUDA 13) and, up to sm_89, 7 (before);
 *   fat binaries     one or several in a row; entries uncompressed, zstd or LZ4; PTX entries are listed;
 *   host ELF files   executables, shared libraries and object files that contain fat binaries
 *                    (sections .nv_fatbin and __nv_relfatbin);
 *   static archives  of such object files, and of cubins.
 *
 * Input is untrusted: every length is checked before use, sizes and counts have the maxima below, and
 * messages name the error and its byte offset. An image has its own copies: the caller may free the file's
 * bytes.
 *
 *   int f(..., struct occ_image_error *err);   0 or a negative OCC_IMAGE_E_*; `err` may be NULL, and is
 *                                              untouched on success; ret_ parameters on failure.
 *
 * Depends on libzstd only. Pure apart from malloc: no I/O, no logging, no global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_IMAGE_MAX_BYTES      (UINT64_C(1) << 29) /* of a decompressed cubin */
#define OCC_IMAGE_MAX_FILE_BYTES (UINT64_C(1) << 34) /* of one file */
#define OCC_IMAGE_MAX_RATIO      4096                /* decompressed to compressed bytes of an entry */
#define OCC_IMAGE_MAX_ENTRIES    (1u << 20)          /* images in one file */
#define OCC_IMAGE_MAX_KERNELS    65536               /* in one cubin */

/* Maxima of a kernel, larger than any device's; a larger value is an error. */
#define OCC_IMAGE_MAX_REGISTERS   255
#define OCC_IMAGE_MAX_BARRIERS    16
#define OCC_IMAGE_MAX_SMEM_BYTES  (256u << 10)
#define OCC_IMAGE_MAX_STACK_BYTES (512u << 10)

enum occ_image_code {
    OCC_IMAGE_OK = 0,
    OCC_IMAGE_E_INVALID = -1,   /* not an image, or a damaged one */
    OCC_IMAGE_E_NO_BINARY = -2, /* contains no cubin */
    OCC_IMAGE_E_NO_MEMORY = -3,
    OCC_IMAGE_E_VERSION = -4, /* unknown ELF ABI, fat binary version or compression */
    OCC_IMAGE_E_FULL = -5,    /* above one of the maxima */
};

struct occ_image_error {
    int code;          /* OCC_IMAGE_E_* */
    char message[256]; /* for a user, without a trailing dot or newline */
};

struct occ_image_kernel {
    const char *name;           /* mangled, never empty; lives as long as its image */
    uint32_t registers;         /* per thread; 0: unknown */
    uint32_t static_smem_bytes; /* without the system's reserve of sm_90 and later */
    uint32_t local_bytes;       /* stack frame per thread */
    uint32_t barriers;          /* named barriers of a block, 0 ... 16 */
    uint32_t max_threads;       /* of __launch_bounds__; 0: none */
    uint32_t cluster[3];        /* __cluster_dims__; 0, 0, 0: none */
};

/* A cubin. */
struct occ_image {
    uint32_t sm;          /* 75, 90, 121 */
    uint32_t abi_version; /* 7 or 8 */
    bool relocatable;     /* nvcc -dc: not linked yet, the linker may raise registers and stack */
    uint32_t kernel_count;
    struct occ_image_kernel *kernels;
    uint8_t *bytes; /* copy of the ELF file */
    size_t size;    /* size of `bytes` */
};

/* ---- files with any number of images ---- */

enum occ_image_kind {
    OCC_IMAGE_KIND_CUBIN, /* occ_image_load() reads it */
    OCC_IMAGE_KIND_PTX,   /* text for a compiler: resources are unknown */
    OCC_IMAGE_KIND_OTHER, /* unknown to this reader */
};

struct occ_image_entry {
    enum occ_image_kind kind;
    uint32_t sm; /* of a PTX entry: the virtual architecture */
    char suffix; /* 'a' of sm_90a (that device only), 'f' of sm_100f (its family); 0: none, or a bare cubin */
    bool compressed; /* zstd or LZ4 */
    uint64_t offset; /* of the fat binary's entry (or the cubin) in the file, for messages */
    uint64_t bytes;  /* decompressed size according to the file */
};

/* The entries of a file, in its order. Borrows `bytes`, which must outlive the list. */
struct occ_image_list;

/* Lists the entries of a file: at least one, possibly PTX only. Decompresses nothing. Returns
 * OCC_IMAGE_E_NO_BINARY for a valid host ELF file without a fat binary, and for PTX text. */
int occ_image_list_new(const void *bytes, size_t size, struct occ_image_list **ret_list,
                       struct occ_image_error *err);

/* NULL is fine. */
void occ_image_list_free(struct occ_image_list *list);

size_t occ_image_list_count(const struct occ_image_list *list);

/* NULL: index out of range. */
const struct occ_image_entry *occ_image_list_entry(const struct occ_image_list *list, size_t index);

/* Decompresses and reads one entry. OCC_IMAGE_E_NO_BINARY: it is not a cubin. */
int occ_image_load(const struct occ_image_list *list, size_t index, struct occ_image **ret_image,
                   struct occ_image_error *err);

/* "sm_75, sm_80, compute_90": every architecture once, ascending, cubins before PTX. Truncated to `size`,
 * always terminated; returns `buffer`. */
const char *occ_image_list_text(const struct occ_image_list *list, char *buffer, size_t size);

/* ---- one image ---- */

/* True if a cubin for sm_NN with this suffix ('a', 'f', 0: none) runs on a device of capability `device_sm`:
 * it needs the same major version and no higher minor version; with 'a' exactly the same capability. */
bool occ_image_runs_on(uint32_t sm, char suffix, uint32_t device_sm);

/* NULL is fine. */
void occ_image_free(struct occ_image *image);
