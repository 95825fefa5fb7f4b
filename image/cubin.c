/*
 * Reader of cubins. The values were compared with `ptxas -v` (tests/unit/test_image.c repeats that for ABI 8)
 * and, for ABI 7, with published cubins of older toolkits.
 *
 * ELF64, machine 190. A kernel is a function symbol with st_other bit 0x10; the sections .nv.info.<k> and
 * .nv.shared.<k> name its text section in sh_info. `.nv.info` entries are {u8 format, u8 attribute, u16 value
 * or length}; format 4 has a payload of that length. The global .nv.info names kernels by symbol index.
 *
 *                   ABI 8 (CUDA 13)                ABI 7 (before)
 *   SM              (e_flags >> 8) & 255           e_flags & 255
 *   registers       global .nv.info                text section's sh_info >> 24
 *   barriers        .nv.info.<k>                   text section's sh_flags >> 20 & 127
 *
 * llvm/BinaryFormat/ELF.h documents the SM numbers. Assembled kernels of libraries have their registers in
 * sh_info >> 24 in ABI 8 too; later toolkits of ABI 7 write the attributes too.
 *
 * From sm_90 on .nv.shared.<k> includes the system's reserve of 1024 bytes, but not before linking (ET_REL).
 *
 * Values above the maxima below are refused; no device reaches these maxima.
 *
 * Pure apart from malloc; any thread.
 */
#include "elf_file.h"
#include "entries.h"
#include "fail.h"

#include <stdlib.h>

#define ABI_OLD           7
#define ABI_NEW           8
#define SYMBOL_IS_KERNEL  0x10
#define SYSTEM_SMEM_SM    90
#define SYSTEM_SMEM_BYTES 1024

#define MAX_THREADS 1024
#define MAX_CLUSTER 64

enum info {
    INFO_MAX_THREADS = 0x05,
    INFO_FRAME_BYTES = 0x11,
    INFO_REGISTERS = 0x2f,
    INFO_CLUSTER = 0x3d,
    INFO_BARRIERS = 0x4c,
};

#define INFO_FORMAT_PAYLOAD 4

/* State of a kernel during reading. */
struct progress {
    uint32_t text; /* its text section */
    bool has_info, has_smem;
};

struct cubin {
    struct elf elf;
    struct span symbols, symbol_names;
    uint32_t *kernel_of_section; /* index + 1, by text section */
    struct progress *progress;   /* by kernel */
    struct occ_image *image;
    struct occ_image_error *err;
};

/* The value is a constant, so that the compiler knows it is not 0. */
#define broken(cubin, ...)                                                                                   \
    ((void)occ_image_fail((cubin)->err, OCC_IMAGE_E_INVALID, __VA_ARGS__), OCC_IMAGE_E_INVALID)

/* ---- header and symbols ---- */

static uint32_t sm_of(const Elf64_Ehdr *header)
{
    return (header->e_ident[EI_ABIVERSION] == ABI_OLD ? header->e_flags : header->e_flags >> 8) & 0xff;
}

/* Cubins of this kind are unknown, so it is not known if their shared memory includes the system's
 * reserve. */
static bool unknown_reserve(const Elf64_Ehdr *header)
{
    return header->e_ident[EI_ABIVERSION] == ABI_OLD && sm_of(header) >= SYSTEM_SMEM_SM;
}

static int check_machine(const struct elf *elf, struct occ_image_error *err)
{
    const Elf64_Ehdr *h = &elf->header;
    uint8_t abi = h->e_ident[EI_ABIVERSION];
    if (h->e_machine != OCC_IMAGE_MACHINE_CUDA)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "an ELF file for machine %u, not a cubin (%u)",
                              h->e_machine, OCC_IMAGE_MACHINE_CUDA);
    if (abi != ABI_OLD && abi != ABI_NEW)
        return occ_image_fail(err, OCC_IMAGE_E_VERSION, "cubin of ELF ABI %u: only %u and %u are read", abi,
                              ABI_OLD, ABI_NEW);
    if (unknown_reserve(h))
        return occ_image_fail(
            err, OCC_IMAGE_E_VERSION,
            "cubin for sm_%u of ELF ABI %u (before CUDA 13): only those up to sm_89 are read", sm_of(h), abi);
    if (!elf->section_count)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "a cubin without sections");
    return 0;
}

static int open_cubin(struct span all, struct elf *ret, struct occ_image_error *err)
{
    int code = occ_image_elf_open(all, ret, err);
    return code ? code : check_machine(ret, err);
}

int occ_image_cubin_sm(struct span bytes, uint32_t *ret_sm, struct occ_image_error *err)
{
    struct elf elf;
    int code = open_cubin(bytes, &elf, err);
    if (!code)
        *ret_sm = sm_of(&elf.header);
    return code;
}

static int find_symbols(struct cubin *cubin)
{
    const struct elf *elf = &cubin->elf;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr section = occ_image_elf_section(elf, i);
        if (section.sh_type != SHT_SYMTAB)
            continue;
        if (section.sh_link >= elf->section_count)
            return broken(cubin, "section %u (symbols): its names are in section %u of %u", i,
                          section.sh_link, elf->section_count);
        int code = occ_image_elf_bytes(elf, i, &cubin->symbols, cubin->err);
        return code ? code : occ_image_elf_bytes(elf, section.sh_link, &cubin->symbol_names, cubin->err);
    }
    return broken(cubin, "a cubin without a symbol table");
}

static bool symbol_at(const struct cubin *cubin, uint64_t index, Elf64_Sym *ret)
{
    if (index >= cubin->symbols.size / sizeof *ret)
        return false;
    memcpy(ret, cubin->symbols.at + index * sizeof *ret, sizeof *ret);
    return true;
}

/* A kernel that this file defines: an undefined symbol has its code in another file. */
static bool is_kernel(const Elf64_Sym *symbol)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && (symbol->st_other & SYMBOL_IS_KERNEL) &&
           symbol->st_shndx != SHN_UNDEF;
}

/* ---- kernels ---- */

static int make_room(struct cubin *cubin)
{
    uint32_t kernels = 0;
    Elf64_Sym symbol;
    for (uint64_t i = 0; symbol_at(cubin, i, &symbol); i++)
        kernels += is_kernel(&symbol);
    if (kernels > OCC_IMAGE_MAX_KERNELS)
        return occ_image_fail(cubin->err, OCC_IMAGE_E_FULL, "%u kernels, more than the %u that are read",
                              kernels, OCC_IMAGE_MAX_KERNELS);
    cubin->image->kernels = calloc((size_t)kernels + 1, sizeof *cubin->image->kernels);
    cubin->progress = calloc((size_t)kernels + 1, sizeof *cubin->progress);
    cubin->kernel_of_section = calloc((size_t)cubin->elf.section_count + 1, sizeof *cubin->kernel_of_section);
    if (!cubin->image->kernels || !cubin->progress || !cubin->kernel_of_section)
        return occ_image_fail(cubin->err, OCC_IMAGE_E_NO_MEMORY, "no memory for %u kernels", kernels);
    return 0;
}

static int add_kernel(struct cubin *cubin, const Elf64_Sym *symbol, const char *name)
{
    struct occ_image *image = cubin->image;
    if (!name || !*name)
        return broken(cubin, "the name of a kernel, at byte %u of the names, is invalid", symbol->st_name);
    if (symbol->st_shndx >= cubin->elf.section_count)
        return broken(cubin, "kernel %.100s: section %u of %u", name, symbol->st_shndx,
                      cubin->elf.section_count);
    if (cubin->kernel_of_section[symbol->st_shndx])
        return broken(cubin, "kernel %.100s: its section %u belongs to another kernel too", name,
                      symbol->st_shndx);
    cubin->progress[image->kernel_count].text = symbol->st_shndx;
    image->kernels[image->kernel_count].name = name;
    cubin->kernel_of_section[symbol->st_shndx] = ++image->kernel_count;
    return 0;
}

static int add_kernels(struct cubin *cubin)
{
    int code = make_room(cubin);
    Elf64_Sym symbol;
    for (uint64_t i = 0; !code && symbol_at(cubin, i, &symbol); i++)
        if (is_kernel(&symbol))
            code = add_kernel(cubin, &symbol, occ_image_elf_string(cubin->symbol_names, symbol.st_name));
    return code;
}

/* ---- .nv.info ---- */

struct attribute {
    uint8_t id;
    uint16_t value;      /* of an attribute without payload */
    struct span payload; /* empty: none */
};

/* Steps over one attribute. `name` is the section's, for messages. */
static int next_attribute(struct cubin *cubin, struct span info, size_t *at, const char *name,
                          struct attribute *ret)
{
    if (!inside(info, *at, 4))
        return broken(cubin, "%.100s: ends inside an entry at byte %zu", name, *at);
    const uint8_t *p = info.at + *at;
    *ret = (struct attribute){.id = p[1], .value = u16_at(p + 2), .payload = {p + 4, 0}};
    *at += 4;
    if (p[0] != INFO_FORMAT_PAYLOAD)
        return 0;
    if (!inside(info, *at, ret->value))
        return broken(cubin, "%.100s: entry 0x%02x at byte %zu claims %u bytes, %zu are there", name, ret->id,
                      *at - 4, ret->value, info.size - *at);
    ret->payload.size = ret->value;
    *at += ret->value;
    return 0;
}

static int too_much(struct cubin *cubin, const struct occ_image_kernel *kernel, const char *what,
                    uint64_t value, uint64_t max)
{
    return broken(cubin, "kernel %.100s: %llu %s, no device has more than %llu", kernel->name,
                  (unsigned long long)value, what, (unsigned long long)max);
}

/* Three dimensions of launch bounds (threads) or of a cluster (blocks). */
static int take_dimensions(struct cubin *cubin, const char *kernel, const char *what, const uint8_t *p,
                           uint32_t max, uint32_t ret_size[3])
{
    uint64_t x = u32_at(p), y = u32_at(p + 4), z = u32_at(p + 8);
    if (x > max || y > max || z > max || x * y * z > max)
        return broken(cubin, "kernel %.100s: %s of %llu x %llu x %llu, no device has more than %u", kernel,
                      what, (unsigned long long)x, (unsigned long long)y, (unsigned long long)z, max);
    memcpy(ret_size, (const uint32_t[]){(uint32_t)x, (uint32_t)y, (uint32_t)z}, 3 * sizeof *ret_size);
    return 0;
}

static int set_barriers(struct cubin *cubin, struct occ_image_kernel *kernel, uint32_t barriers)
{
    if (barriers > OCC_IMAGE_MAX_BARRIERS)
        return too_much(cubin, kernel, "barriers", barriers, OCC_IMAGE_MAX_BARRIERS);
    kernel->barriers = barriers;
    return 0;
}

static int use_kernel_attribute(struct cubin *cubin, struct occ_image_kernel *kernel,
                                const struct attribute *attribute)
{
    const uint8_t *p = attribute->payload.at;
    uint32_t bounds[3];
    int code = 0;
    if (attribute->id == INFO_BARRIERS)
        return set_barriers(cubin, kernel, attribute->value & 0xff);
    if (attribute->payload.size < 12)
        return 0;
    if (attribute->id == INFO_CLUSTER)
        return take_dimensions(cubin, kernel->name, "a cluster", p, MAX_CLUSTER, kernel->cluster);
    if (attribute->id == INFO_MAX_THREADS) {
        code = take_dimensions(cubin, kernel->name, "launch bounds", p, MAX_THREADS, bounds);
        kernel->max_threads = code ? 0 : bounds[0] * bounds[1] * bounds[2];
    }
    return code;
}

/* Reads an entry of the global section, which names its function by a symbol; functions that are not kernels
 * are skipped. */
static int use_global_attribute(struct cubin *cubin, const struct attribute *attribute)
{
    Elf64_Sym symbol;
    if (attribute->id != INFO_REGISTERS && attribute->id != INFO_FRAME_BYTES)
        return 0;
    if (attribute->payload.size < 8 || !symbol_at(cubin, u32_at(attribute->payload.at), &symbol))
        return broken(cubin, ".nv.info: entry 0x%02x of %zu bytes names no symbol", attribute->id,
                      attribute->payload.size);
    if (!is_kernel(&symbol))
        return 0;
    struct occ_image_kernel *kernel = &cubin->image->kernels[cubin->kernel_of_section[symbol.st_shndx] - 1];
    uint32_t value = u32_at(attribute->payload.at + 4);
    if (attribute->id == INFO_REGISTERS && value > OCC_IMAGE_MAX_REGISTERS)
        return too_much(cubin, kernel, "registers", value, OCC_IMAGE_MAX_REGISTERS);
    if (attribute->id == INFO_FRAME_BYTES && value > OCC_IMAGE_MAX_STACK_BYTES)
        return too_much(cubin, kernel, "bytes of stack", value, OCC_IMAGE_MAX_STACK_BYTES);
    *(attribute->id == INFO_REGISTERS ? &kernel->registers : &kernel->local_bytes) = value;
    return 0;
}

/* `kernel` NULL: the global section. */
static int use_info(struct cubin *cubin, struct occ_image_kernel *kernel, struct span info, const char *name)
{
    int code = 0;
    for (size_t at = 0; !code && at < info.size;) {
        struct attribute attribute;
        code = next_attribute(cubin, info, &at, name, &attribute);
        if (!code)
            code = kernel ? use_kernel_attribute(cubin, kernel, &attribute)
                          : use_global_attribute(cubin, &attribute);
    }
    return code;
}

static int use_kernel_info(struct cubin *cubin, uint32_t index, struct span info, const char *name)
{
    struct occ_image_kernel *kernel = &cubin->image->kernels[index];
    if (cubin->progress[index].has_info)
        return broken(cubin, "%.100s: a second one for kernel %.100s", name, kernel->name);
    cubin->progress[index].has_info = true;
    return use_info(cubin, kernel, info, name);
}

/* ---- sections ---- */

static int use_shared(struct cubin *cubin, uint32_t index, uint64_t bytes)
{
    struct occ_image_kernel *kernel = &cubin->image->kernels[index];
    bool reserved = cubin->image->sm >= SYSTEM_SMEM_SM && !cubin->image->relocatable;
    uint32_t reserve = reserved ? SYSTEM_SMEM_BYTES : 0;
    if (cubin->progress[index].has_smem)
        return broken(cubin, "kernel %.100s: a second section of shared memory", kernel->name);
    cubin->progress[index].has_smem = true;
    if (bytes > OCC_IMAGE_MAX_SMEM_BYTES)
        return too_much(cubin, kernel, "bytes of shared memory", bytes, OCC_IMAGE_MAX_SMEM_BYTES);
    kernel->static_smem_bytes = bytes > reserve ? (uint32_t)bytes - reserve : 0;
    return 0;
}

static int use_section(struct cubin *cubin, uint32_t index)
{
    Elf64_Shdr section = occ_image_elf_section(&cubin->elf, index);
    const char *name = occ_image_elf_section_name(&cubin->elf, &section);
    struct span bytes;
    int code = occ_image_elf_bytes(&cubin->elf, index, &bytes, cubin->err);
    if (code)
        return code;
    if (strcmp(name, ".nv.info") == 0)
        return use_info(cubin, NULL, bytes, name);
    uint32_t kernel =
        section.sh_info < cubin->elf.section_count ? cubin->kernel_of_section[section.sh_info] : 0;
    if (kernel && strncmp(name, ".nv.info.", 9) == 0)
        return use_kernel_info(cubin, kernel - 1, bytes, name);
    if (kernel && strncmp(name, ".nv.shared.", 11) == 0)
        return use_shared(cubin, kernel - 1, section.sh_size);
    return 0;
}

/* Attributes are read later and take precedence over the text section. */
static int use_text(struct cubin *cubin, uint32_t index)
{
    Elf64_Shdr text = occ_image_elf_section(&cubin->elf, cubin->progress[index].text);
    struct occ_image_kernel *kernel = &cubin->image->kernels[index];
    kernel->registers = text.sh_info >> 24;
    if (cubin->image->abi_version != ABI_OLD)
        return 0;
    return set_barriers(cubin, kernel, (uint32_t)(text.sh_flags >> 20 & 0x7f));
}

static int read_all(struct cubin *cubin)
{
    struct occ_image *image = cubin->image;
    int code = find_symbols(cubin);
    if (!code)
        code = add_kernels(cubin);
    for (uint32_t i = 0; !code && i < image->kernel_count; i++)
        code = use_text(cubin, i);
    for (uint32_t i = 0; !code && i < cubin->elf.section_count; i++)
        code = use_section(cubin, i);
    free(cubin->kernel_of_section);
    free(cubin->progress);
    return code;
}

int occ_image_cubin_read(uint8_t *bytes, size_t size, struct occ_image **ret_image,
                         struct occ_image_error *err)
{
    struct cubin cubin = {.err = err, .image = calloc(1, sizeof *cubin.image)};
    if (!cubin.image) {
        free(bytes);
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    }
    cubin.image->bytes = bytes;
    cubin.image->size = size;
    int code = open_cubin((struct span){bytes, size}, &cubin.elf, err);
    if (!code) {
        cubin.image->sm = sm_of(&cubin.elf.header);
        cubin.image->abi_version = cubin.elf.header.e_ident[EI_ABIVERSION];
        cubin.image->relocatable = cubin.elf.header.e_type == ET_REL;
        code = read_all(&cubin);
    }
    if (code)
        occ_image_free(cubin.image);
    else
        *ret_image = cubin.image;
    return code;
}

void occ_image_free(struct occ_image *image)
{
    if (!image)
        return;
    free(image->kernels);
    free(image->bytes);
    free(image);
}
