/*
 * See loaded_image.h. A program's own memory is trusted like in a real driver: without a size the headers'
 * lengths are used unchecked. Pure apart from malloc and the log; any thread.
 */
#include "loaded_image.h"

#include "env.h"

#include <elf.h>
#include <string.h>

#define FATBIN_MAGIC    0xba55ed50u
#define FATBIN_HEADER   16
#define WRAPPER_MAGIC   0x466243b1u
#define WRAPPER_DATA_AT 8
#define MACHINE_CUDA    190

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns an image's size by its header; 0: not an image, or larger than any image. */
static size_t claimed_bytes(const uint8_t *at)
{
    uint64_t size = 0;
    if (u32_at(at) == FATBIN_MAGIC) {
        uint16_t header;
        uint64_t content;
        memcpy(&header, at + 6, sizeof header);
        memcpy(&content, at + 8, sizeof content);
        size = content <= OCC_IMAGE_MAX_FILE_BYTES ? header + content : 0;
    } else if (memcmp(at, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr h;
        memcpy(&h, at, sizeof h);
        size = larger(h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize,
                      h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize);
    }
    return size <= OCC_IMAGE_MAX_FILE_BYTES ? (size_t)size : 0;
}

/* True for PTX, which starts with a directive or a comment. */
static bool looks_like_ptx(const char *text)
{
    text += strspn(text, " \t\r\n");
    return strncmp(text, "//", 2) == 0 || strncmp(text, ".version", 8) == 0;
}

int sim_image_read_memory(const void *bytes, uint32_t sm, struct sim_image **ret_image)
{
    const uint8_t *at = bytes;
    if (!at)
        return OCC_IMAGE_E_INVALID;
    if (looks_like_ptx(bytes)) {
        sim_log("PTX: a simulated device has no compiler; give it a cubin for sm_%u", sm);
        return OCC_IMAGE_E_NO_BINARY;
    }
    if (u32_at(at) == WRAPPER_MAGIC)
        memcpy(&at, at + WRAPPER_DATA_AT, sizeof at);
    return at ? sim_image_read(at, claimed_bytes(at), sm, ret_image) : OCC_IMAGE_E_INVALID;
}

/* True for programs and libraries, which contain images but are not images. */
static bool is_host_file(const uint8_t *at, size_t size)
{
    uint16_t machine;
    if (size < sizeof(Elf64_Ehdr) || memcmp(at, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&machine, at + 18, sizeof machine);
    return machine != MACHINE_CUDA;
}

int sim_image_read(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret_image)
{
    struct occ_image_error err = {0};
    if (!bytes || size < FATBIN_HEADER || is_host_file(bytes, size))
        return OCC_IMAGE_E_INVALID;
    int code = sim_image_open(bytes, size, sm, ret_image, &err);
    if (code)
        sim_log("image refused: %s", err.message);
    return code;
}
