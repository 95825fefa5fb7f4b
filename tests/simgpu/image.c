/*
 * Reader of cubins and fat binaries. Formats as nvcc 13 writes them; every figure below was checked against
 * `ptxas -v` (tests/simgpu/test_image.c repeats that).
 *
 * Fat binary: header {u32 magic, u16 version, u16 header bytes, u64 bytes that follow}, then entries
 *   {u16 kind: 1 PTX, 2 ELF; u16; u32 header bytes; u64 padded bytes; u32 compressed bytes @16; u32 SM @28;
 *    u64 flags @40: 0x2000 LZ4, 0x8000 zstd; u64 bytes when decompressed @56}.
 * Cubin: ELF64, machine 190, SM = (e_flags >> 8) & 255. A kernel is a function symbol with st_other bit 0x10; the
 *   sections .nv.info.<k> and .nv.shared.<k> name its text section in sh_info. `.nv.info` entries are
 *   {u8 format, u8 attribute, u16 value or length}; format 4 has a payload of that length.
 *   Registers stand in the global .nv.info only. From sm_90 on .nv.shared.<k> holds the system's 1024 bytes too.
 *
 * Pure apart from malloc; any thread.
 */
#include "image.h"

#include "env.h"
#include "lz4.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FATBIN_MAGIC        0xba55ed50u
#define WRAPPER_MAGIC       0x466243b1u
#define ELF_MACHINE_CUDA    190
#define ELF_ABI             8
#define SYMBOL_IS_KERNEL    0x10
#define SYSTEM_SMEM_SM      90
#define SYSTEM_SMEM_BYTES   1024
#define MAX_IMAGE_BYTES     (UINT64_C(1) << 31)
#define FATBIN_HEADER_BYTES 16
#define ENTRY_HEADER_BYTES  64
#define KIND_ELF            2
#define FLAG_LZ4            0x2000u
#define FLAG_ZSTD           0x8000u

enum info {
    INFO_MAX_THREADS = 0x05,
    INFO_FRAME_BYTES = 0x11,
    INFO_PARAMETER = 0x17,
    INFO_PARAMETER_BYTES = 0x19,
    INFO_REGISTERS = 0x2f,
    INFO_CLUSTER = 0x3d,
    INFO_BARRIERS = 0x4c,
};

struct span {
    const uint8_t *at;
    size_t size;
};

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool inside(struct span all, uint64_t offset, uint64_t size)
{
    return offset <= all.size && size <= all.size - offset;
}

/* ---- ELF ---- */

struct elf {
    struct span all;
    Elf64_Ehdr header;
    uint32_t section_count;
    struct span section_names, symbol_names, symbols;
    uint32_t *kernel_of_section; /* index + 1, by text section */
};

static bool section_at(const struct elf *elf, uint32_t index, Elf64_Shdr *ret)
{
    if (index >= elf->section_count)
        return false;
    memcpy(ret, elf->all.at + elf->header.e_shoff + (uint64_t)index * sizeof *ret, sizeof *ret);
    return true;
}

/* A section's bytes; empty for one that occupies none. false: outside the file. */
static bool section_bytes(const struct elf *elf, const Elf64_Shdr *section, struct span *ret)
{
    *ret = (struct span){elf->all.at, 0};
    if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL)
        return true;
    if (!inside(elf->all, section->sh_offset, section->sh_size))
        return false;
    *ret = (struct span){elf->all.at + section->sh_offset, section->sh_size};
    return true;
}

/* A string of a string table; "" when it is not wholly inside. */
static const char *string_at(struct span table, uint32_t offset)
{
    if (offset >= table.size || !memchr(table.at + offset, 0, table.size - offset))
        return "";
    return (const char *)table.at + offset;
}

static bool linked_bytes(const struct elf *elf, uint32_t index, struct span *ret)
{
    Elf64_Shdr section;
    return section_at(elf, index, &section) && section_bytes(elf, &section, ret);
}

static bool open_elf(struct span all, struct elf *elf)
{
    *elf = (struct elf){.all = all};
    if (all.size < sizeof elf->header)
        return false;
    memcpy(&elf->header, all.at, sizeof elf->header);
    const Elf64_Ehdr *h = &elf->header;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_machine != ELF_MACHINE_CUDA || h->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    if (h->e_ident[EI_ABIVERSION] != ELF_ABI) {
        sim_log("cubin of ELF ABI %u: only %u (CUDA 13) is read", h->e_ident[EI_ABIVERSION], ELF_ABI);
        return false;
    }
    elf->section_count = h->e_shnum;
    if (!inside(all, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
        !linked_bytes(elf, h->e_shstrndx, &elf->section_names))
        return false;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr section;
        if (section_at(elf, i, &section) && section.sh_type == SHT_SYMTAB)
            return section_bytes(elf, &section, &elf->symbols) &&
                   linked_bytes(elf, section.sh_link, &elf->symbol_names);
    }
    return false;
}

static bool symbol_at(const struct elf *elf, uint64_t index, Elf64_Sym *ret)
{
    if (index >= elf->symbols.size / sizeof *ret)
        return false;
    memcpy(ret, elf->symbols.at + index * sizeof *ret, sizeof *ret);
    return true;
}

/* ---- kernels and globals ---- */

static bool is_kernel(const struct elf *elf, const Elf64_Sym *symbol)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && (symbol->st_other & SYMBOL_IS_KERNEL) &&
           symbol->st_shndx < elf->section_count;
}

static const char *section_name(const struct elf *elf, const Elf64_Shdr *section)
{
    return string_at(elf->section_names, section->sh_name);
}

/* Global variables are the data symbols of .nv.global (zero), .nv.global.init and .nv.constant3. */
static bool is_global(const struct elf *elf, const Elf64_Sym *symbol, Elf64_Shdr *section)
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || !symbol->st_shndx ||
        !section_at(elf, symbol->st_shndx, section))
        return false;
    const char *name = section_name(elf, section);
    return strncmp(name, ".nv.global", 10) == 0 || strcmp(name, ".nv.constant3") == 0;
}

static bool add_symbols(struct elf *elf, struct sim_image *image)
{
    size_t count = elf->symbols.size / sizeof(Elf64_Sym);
    image->kernels = calloc(count + 1, sizeof *image->kernels);
    image->globals = calloc(count + 1, sizeof *image->globals);
    elf->kernel_of_section = calloc((size_t)elf->section_count + 1, sizeof *elf->kernel_of_section);
    if (!image->kernels || !image->globals || !elf->kernel_of_section)
        return false;
    Elf64_Sym symbol;
    for (uint64_t i = 0; symbol_at(elf, i, &symbol); i++) {
        Elf64_Shdr section;
        const char *name = string_at(elf->symbol_names, symbol.st_name);
        if (is_kernel(elf, &symbol)) {
            image->kernels[image->kernel_count].name = name;
            elf->kernel_of_section[symbol.st_shndx] = ++image->kernel_count;
        } else if (is_global(elf, &symbol, &section) && symbol.st_size <= MAX_IMAGE_BYTES) {
            struct span bytes;
            bool has_bytes = section_bytes(elf, &section, &bytes) && bytes.size &&
                             inside(bytes, symbol.st_value, symbol.st_size);
            image->globals[image->global_count++] =
                (struct sim_global){name, symbol.st_size, has_bytes ? bytes.at + symbol.st_value : NULL};
        }
    }
    return true;
}

static bool add_parameter(struct sim_kernel *kernel, const uint8_t *payload)
{
    uint32_t index = u16_at(payload + 4); /* after the u32 index of the whole */
    uint16_t offset = u16_at(payload + 6);
    uint16_t bytes = (uint16_t)(u32_at(payload + 8) >> 18);
    if (index >= 4096)
        return false;
    if (index >= kernel->parameter_count) {
        struct sim_parameter *more = realloc(kernel->parameters, (index + 1) * sizeof *more);
        if (!more)
            return false;
        memset(more + kernel->parameter_count, 0, (index + 1 - kernel->parameter_count) * sizeof *more);
        kernel->parameters = more;
        kernel->parameter_count = index + 1;
    }
    kernel->parameters[index] = (struct sim_parameter){offset, bytes};
    return true;
}

static void add_kernel_info(struct sim_kernel *kernel, uint8_t attribute, uint16_t value,
                            const uint8_t *payload, size_t length)
{
    if (attribute == INFO_BARRIERS)
        kernel->barriers = value & 0xff;
    else if (attribute == INFO_PARAMETER_BYTES)
        kernel->parameter_bytes = value;
    else if (attribute == INFO_PARAMETER && length >= 12)
        add_parameter(kernel, payload);
    else if (attribute == INFO_MAX_THREADS && length >= 12)
        kernel->max_threads = u32_at(payload) * u32_at(payload + 4) * u32_at(payload + 8);
    else if (attribute == INFO_CLUSTER && length >= 12)
        memcpy(kernel->cluster, payload, 12);
}

/* Global entries name their kernel by symbol. */
static void add_global_info(const struct elf *elf, struct sim_image *image, uint8_t attribute,
                            const uint8_t *payload, size_t length)
{
    Elf64_Sym symbol;
    if (length < 8 || !symbol_at(elf, u32_at(payload), &symbol) || !is_kernel(elf, &symbol))
        return;
    struct sim_kernel *kernel = &image->kernels[elf->kernel_of_section[symbol.st_shndx] - 1];
    if (attribute == INFO_REGISTERS)
        kernel->registers = u32_at(payload + 4);
    else if (attribute == INFO_FRAME_BYTES)
        kernel->local_bytes = u32_at(payload + 4);
}

/* `kernel` NULL: the global section. */
static bool add_info(const struct elf *elf, struct sim_image *image, struct sim_kernel *kernel,
                     struct span info)
{
    size_t at = 0;
    while (inside(info, at, 4)) {
        uint8_t format = info.at[at], attribute = info.at[at + 1];
        uint16_t value = u16_at(info.at + at + 2);
        at += 4;
        size_t length = format == 4 ? value : 0;
        if (!inside(info, at, length))
            return false;
        if (kernel)
            add_kernel_info(kernel, attribute, value, info.at + at, length);
        else
            add_global_info(elf, image, attribute, info.at + at, length);
        at += length;
    }
    return true;
}

static struct sim_kernel *kernel_of(const struct elf *elf, struct sim_image *image, const Elf64_Shdr *section)
{
    if (section->sh_info >= elf->section_count || !elf->kernel_of_section[section->sh_info])
        return NULL;
    return &image->kernels[elf->kernel_of_section[section->sh_info] - 1];
}

static bool add_section(const struct elf *elf, struct sim_image *image, const Elf64_Shdr *section)
{
    const char *name = section_name(elf, section);
    struct span bytes;
    if (!section_bytes(elf, section, &bytes))
        return false;
    if (strcmp(name, ".nv.info") == 0)
        return add_info(elf, image, NULL, bytes);
    if (strcmp(name, ".nv.constant3") == 0)
        image->constant_bytes = (uint32_t)section->sh_size;
    struct sim_kernel *kernel = kernel_of(elf, image, section);
    if (kernel && strncmp(name, ".nv.info.", 9) == 0)
        return add_info(elf, image, kernel, bytes);
    if (kernel && strncmp(name, ".nv.shared.", 11) == 0) {
        uint64_t reserve = image->sm >= SYSTEM_SMEM_SM ? SYSTEM_SMEM_BYTES : 0;
        uint64_t smem = section->sh_size > reserve ? section->sh_size - reserve : 0;
        kernel->static_smem_bytes = smem < UINT32_MAX ? (uint32_t)smem : UINT32_MAX;
    }
    return true;
}

static bool read_elf(struct elf *elf, struct sim_image *image)
{
    image->sm = elf->header.e_flags >> 8 & 0xff;
    bool good = add_symbols(elf, image);
    for (uint32_t i = 0; good && i < elf->section_count; i++) {
        Elf64_Shdr section;
        good = section_at(elf, i, &section) && add_section(elf, image, &section);
    }
    free(elf->kernel_of_section);
    return good;
}

/* `bytes` becomes the image's. */
static enum sim_image_status read_cubin(uint8_t *bytes, size_t size, uint32_t sm,
                                        struct sim_image **ret_image)
{
    struct elf elf;
    struct sim_image *image = calloc(1, sizeof *image);
    if (!image) {
        free(bytes);
        return SIM_IMAGE_NO_MEMORY;
    }
    image->bytes = bytes;
    enum sim_image_status status = SIM_IMAGE_INVALID;
    if (open_elf((struct span){bytes, size}, &elf) && read_elf(&elf, image))
        status = image->sm / 10 == sm / 10 && image->sm <= sm ? SIM_IMAGE_OK : SIM_IMAGE_NO_BINARY;
    if (status == SIM_IMAGE_NO_BINARY)
        sim_log("cubin for sm_%u does not run on sm_%u", image->sm, sm);
    if (status == SIM_IMAGE_OK)
        *ret_image = image;
    else
        sim_image_free(image);
    return status;
}

/* ---- fat binaries ---- */

struct entry {
    uint16_t kind;
    uint32_t sm;
    uint64_t flags, decompressed_bytes;
    struct span payload;
};

/* Reads the entry at *offset and steps over it. */
static bool next_entry(struct span all, size_t *offset, struct entry *ret)
{
    if (!inside(all, *offset, ENTRY_HEADER_BYTES))
        return false;
    const uint8_t *h = all.at + *offset;
    uint32_t header = u32_at(h + 4), compressed = u32_at(h + 16);
    uint64_t padded = u64_at(h + 8);
    if (header < ENTRY_HEADER_BYTES || !inside(all, *offset, header) ||
        !inside(all, *offset + header, padded) || compressed > padded)
        return false;
    *ret = (struct entry){.kind = u16_at(h), .sm = u32_at(h + 28), .flags = u64_at(h + 40)};
    ret->decompressed_bytes = u64_at(h + 56);
    ret->payload = (struct span){h + header, compressed ? compressed : padded};
    *offset += header + padded;
    return true;
}

static uint8_t *copy_entry(const struct entry *entry, size_t *ret_size)
{
    bool packed = entry->flags & (FLAG_LZ4 | FLAG_ZSTD);
    uint64_t size = packed ? entry->decompressed_bytes : entry->payload.size;
    uint8_t *bytes = size && size <= MAX_IMAGE_BYTES ? malloc(size) : NULL;
    bool good = bytes != NULL;
    if (good && entry->flags & FLAG_ZSTD)
        good = ZSTD_decompress(bytes, size, entry->payload.at, entry->payload.size) == size;
    else if (good && entry->flags & FLAG_LZ4)
        good = sim_lz4_decode(entry->payload.at, entry->payload.size, bytes, size);
    else if (good)
        memcpy(bytes, entry->payload.at, size);
    if (!good) {
        free(bytes);
        return NULL;
    }
    *ret_size = size;
    return bytes;
}

static enum sim_image_status read_fatbin(struct span all, uint32_t sm, struct sim_image **ret_image)
{
    struct entry entry, best = {0};
    size_t offset = u16_at(all.at + 6);
    uint64_t end = offset + u64_at(all.at + 8);
    if (offset < FATBIN_HEADER_BYTES || end < offset || !inside(all, 0, end))
        return SIM_IMAGE_INVALID;
    all.size = (size_t)end;
    bool ptx = false;
    while (offset < all.size) {
        if (!next_entry(all, &offset, &entry))
            return SIM_IMAGE_INVALID;
        if (entry.kind == KIND_ELF && entry.sm / 10 == sm / 10 && entry.sm <= sm && entry.sm >= best.sm)
            best = entry;
        ptx = ptx || entry.kind != KIND_ELF;
    }
    if (!best.kind) {
        sim_log("no cubin for sm_%u in the fat binary%s", sm,
                ptx ? "; there is PTX, which a simulated device does not compile" : "");
        return SIM_IMAGE_NO_BINARY;
    }
    size_t size = 0;
    uint8_t *bytes = copy_entry(&best, &size);
    return bytes ? read_cubin(bytes, size, sm, ret_image) : SIM_IMAGE_INVALID;
}

/* ---- both ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How many bytes an image says it has; 0: not an image, or more than any image has. */
static size_t claimed_bytes(const uint8_t *at)
{
    uint64_t size = 0;
    if (u32_at(at) == FATBIN_MAGIC) {
        size = u16_at(at + 6) + u64_at(at + 8);
    } else if (memcmp(at, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr h;
        memcpy(&h, at, sizeof h);
        size = larger(h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize,
                      h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize);
    }
    return size <= MAX_IMAGE_BYTES ? (size_t)size : 0;
}

/* PTX starts with a directive or a comment. */
static bool looks_like_ptx(const char *text)
{
    text += strspn(text, " \t\r\n");
    return strncmp(text, "//", 2) == 0 || strncmp(text, ".version", 8) == 0;
}

enum sim_image_status sim_image_read_memory(const void *bytes, uint32_t sm, struct sim_image **ret_image)
{
    const uint8_t *at = bytes;
    if (!at)
        return SIM_IMAGE_INVALID;
    if (looks_like_ptx(bytes)) {
        sim_log("PTX: a simulated device has no compiler; give it a cubin for sm_%u", sm);
        return SIM_IMAGE_NO_BINARY;
    }
    if (u32_at(at) == WRAPPER_MAGIC)
        memcpy(&at, at + 8, sizeof at);
    return at ? sim_image_read(at, claimed_bytes(at), sm, ret_image) : SIM_IMAGE_INVALID;
}

enum sim_image_status sim_image_read(const void *bytes, size_t size, uint32_t sm,
                                     struct sim_image **ret_image)
{
    if (!bytes || size < FATBIN_HEADER_BYTES)
        return SIM_IMAGE_INVALID;
    const uint8_t *at = bytes;
    if (u32_at(at) == FATBIN_MAGIC)
        return read_fatbin((struct span){at, size}, sm, ret_image);
    if (memcmp(at, ELFMAG, SELFMAG) != 0 || size > MAX_IMAGE_BYTES)
        return SIM_IMAGE_INVALID;
    uint8_t *copy = malloc(size);
    if (!copy)
        return SIM_IMAGE_NO_MEMORY;
    memcpy(copy, at, size);
    return read_cubin(copy, size, sm, ret_image);
}

void sim_image_free(struct sim_image *image)
{
    if (!image)
        return;
    for (uint32_t i = 0; i < image->kernel_count; i++)
        free(image->kernels[i].parameters);
    free(image->kernels);
    free(image->globals);
    free(image->bytes);
    free(image);
}

const struct sim_kernel *sim_image_kernel(const struct sim_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->kernel_count; i++) {
        if (strcmp(image->kernels[i].name, name) == 0)
            return &image->kernels[i];
    }
    return NULL;
}
