/* See image_details.h. Formats: image/cubin.c. */
#include "image_details.h"

#include <stdlib.h>

#include "image/elf_file.h"
#include "image/fail.h"

#define INFO_FORMAT_PAYLOAD  4
#define INFO_PARAMETER       0x17
#define INFO_PARAMETER_BYTES 0x19
#define MAX_GLOBAL_BYTES     (UINT64_C(1) << 40)

#define broken(err, ...) occ_image_fail(err, OCC_IMAGE_E_INVALID, __VA_ARGS__)

/* ---- parameters: .nv.info.<kernel> ---- */

/* Returns the entry at *at and advances *at; NULL: no more entries, or an incomplete one. */
static const uint8_t *next_entry(struct span info, size_t *at)
{
    const uint8_t *entry = info.at + *at;
    if (!inside(info, *at, 4))
        return NULL;
    *at += 4 + (entry[0] == INFO_FORMAT_PAYLOAD ? u16_at(entry + 2) : 0u);
    return *at <= info.size ? entry : NULL;
}

static bool is_parameter(const uint8_t *entry)
{
    return entry[1] == INFO_PARAMETER && entry[0] == INFO_FORMAT_PAYLOAD && u16_at(entry + 2) >= 12;
}

/* A parameter: {u32; u16 index; u16 offset; u32 with bytes << 18}. */
static int read_parameters(struct span info, const char *kernel, struct sim_parameters *p,
                           struct occ_image_error *err)
{
    const uint8_t *entry;
    for (size_t at = 0; (entry = next_entry(info, &at));)
        p->count += is_parameter(entry);
    p->list = calloc((size_t)p->count + 1, sizeof *p->list);
    if (!p->list)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory for %u parameters", p->count);
    for (size_t at = 0; (entry = next_entry(info, &at));) {
        if (entry[1] == INFO_PARAMETER_BYTES)
            p->bytes = u16_at(entry + 2);
        if (!is_parameter(entry))
            continue;
        uint32_t index = u16_at(entry + 8);
        if (index >= p->count)
            return broken(err, "kernel %.100s: parameter %u of %u", kernel, index, p->count);
        p->list[index].offset = u16_at(entry + 10);
        p->list[index].bytes = (uint16_t)(u32_at(entry + 12) >> 18);
    }
    return 0;
}

static int use_section(struct sim_image *image, const struct elf *elf, uint32_t index,
                       struct occ_image_error *err)
{
    Elf64_Shdr section = occ_image_elf_section(elf, index);
    const char *name = occ_image_elf_section_name(elf, &section);
    struct span bytes;
    int code = occ_image_elf_bytes(elf, index, &bytes, err);
    if (!code && strcmp(name, ".nv.constant3") == 0)
        image->constant_bytes = (uint32_t)section.sh_size;
    if (code || strncmp(name, ".nv.info.", 9) != 0)
        return code;
    const struct occ_image_kernel *kernel = sim_image_kernel(image, name + 9);
    struct sim_parameters *p = kernel ? &image->parameters[kernel - image->cubin->kernels] : NULL;
    return p && !p->list ? read_parameters(bytes, kernel->name, p, err) : 0;
}

/* ---- global variables: data symbols of .nv.global (zero), .nv.global.init and .nv.constant3 ---- */

static bool is_global(const struct elf *elf, const Elf64_Sym *symbol)
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_shndx >= elf->section_count)
        return false;
    Elf64_Shdr section = occ_image_elf_section(elf, symbol->st_shndx);
    const char *name = occ_image_elf_section_name(elf, &section);
    return strncmp(name, ".nv.global", 10) == 0 || strcmp(name, ".nv.constant3") == 0;
}

static int add_global(struct sim_image *image, const struct elf *elf, const Elf64_Sym *symbol,
                      const char *name, struct occ_image_error *err)
{
    struct span bytes;
    int code = occ_image_elf_bytes(elf, symbol->st_shndx, &bytes, err);
    if (code)
        return code;
    if (!name || symbol->st_size > MAX_GLOBAL_BYTES)
        return broken(err, "global variable %.100s of %llu bytes", name ? name : "without a name",
                      (unsigned long long)symbol->st_size);
    if (bytes.size && !inside(bytes, symbol->st_value, symbol->st_size))
        return broken(err, "global variable %.100s: %llu bytes at %llu exceed its section's %zu", name,
                      (unsigned long long)symbol->st_size, (unsigned long long)symbol->st_value, bytes.size);
    image->globals[image->global_count++] =
        (struct sim_global){name, symbol->st_size, bytes.size ? bytes.at + symbol->st_value : NULL};
    return 0;
}

static int read_globals(struct sim_image *image, const struct elf *elf, uint32_t index,
                        struct occ_image_error *err)
{
    Elf64_Shdr section = occ_image_elf_section(elf, index);
    struct span symbols, names;
    int code = occ_image_elf_bytes(elf, index, &symbols, err);
    if (!code)
        code = occ_image_elf_bytes(elf, section.sh_link, &names, err);
    size_t count = code ? 0 : symbols.size / sizeof(Elf64_Sym);
    image->globals = calloc(count + 1, sizeof *image->globals);
    if (!image->globals)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory for %zu symbols", count);
    for (size_t i = 0; !code && i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols.at + i * sizeof symbol, sizeof symbol);
        if (is_global(elf, &symbol))
            code = add_global(image, elf, &symbol, occ_image_elf_string(names, symbol.st_name), err);
    }
    return code;
}

/* ---- the whole ---- */

static int read_details(struct sim_image *image, struct occ_image_error *err)
{
    struct elf elf;
    int code = occ_image_elf_open((struct span){image->cubin->bytes, image->cubin->size}, &elf, err);
    image->parameters = calloc((size_t)image->cubin->kernel_count + 1, sizeof *image->parameters);
    if (!image->parameters)
        return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    for (uint32_t i = 0; !code && i < elf.section_count; i++) {
        code = use_section(image, &elf, i, err);
        if (!code && !image->globals && occ_image_elf_section(&elf, i).sh_type == SHT_SYMTAB)
            code = read_globals(image, &elf, i, err);
    }
    return code;
}

static int choose(const struct occ_image_list *list, uint32_t sm, size_t *ret_index,
                  struct occ_image_error *err)
{
    const struct occ_image_entry *best = NULL;
    for (size_t i = 0; i < occ_image_list_count(list); i++) {
        const struct occ_image_entry *entry = occ_image_list_entry(list, i);
        if (entry->kind != OCC_IMAGE_KIND_CUBIN || !occ_image_runs_on(entry->sm, entry->suffix, sm) ||
            (best && entry->sm < best->sm))
            continue;
        best = entry;
        *ret_index = i;
    }
    char text[160];
    return best ? 0
                : occ_image_fail(err, OCC_IMAGE_E_NO_BINARY, "nothing compiled for sm_%u; there is: %s", sm,
                                 occ_image_list_text(list, text, sizeof text));
}

int sim_image_open(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret_image,
                   struct occ_image_error *err)
{
    struct occ_image_list *list = NULL;
    struct sim_image *image = NULL;
    size_t index = 0;
    int code = occ_image_list_new(bytes, size, &list, err);
    if (!code)
        code = choose(list, sm, &index, err);
    if (!code && !(image = calloc(1, sizeof *image)))
        code = occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory");
    if (!code)
        code = occ_image_load(list, index, &image->cubin, err);
    if (!code)
        code = read_details(image, err);
    occ_image_list_free(list);
    if (code)
        sim_image_free(image);
    else
        *ret_image = image;
    return code;
}

void sim_image_free(struct sim_image *image)
{
    if (!image)
        return;
    for (uint32_t i = 0; image->parameters && i < image->cubin->kernel_count; i++)
        free(image->parameters[i].list);
    free(image->parameters);
    free(image->globals);
    occ_image_free(image->cubin);
    free(image);
}

const struct occ_image_kernel *sim_image_kernel(const struct sim_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->cubin->kernel_count; i++) {
        if (strcmp(image->cubin->kernels[i].name, name) == 0)
            return &image->cubin->kernels[i];
    }
    return NULL;
}
