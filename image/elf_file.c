/*
 * ELF64 headers and sections (System V ABI, "Object Files"), of cubins and of host files. Pure; any thread.
 */
#include "elf_file.h"

#include "fail.h"

#define TYPE_CUDA_GLOBAL (SHT_LOPROC + 0x7u)
#define TYPE_CUDA_SHARED (SHT_LOPROC + 0xau)

static int check_header(const struct elf *elf, struct occ_image_error *err)
{
    const Elf64_Ehdr *h = &elf->header;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "not an ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64)
        return occ_image_fail(err, OCC_IMAGE_E_VERSION, "ELF class %u: only 64-bit files are read",
                              h->e_ident[EI_CLASS]);
    if (h->e_ident[EI_DATA] != ELFDATA2LSB)
        return occ_image_fail(err, OCC_IMAGE_E_VERSION,
                              "ELF data encoding %u: only little-endian files are read", h->e_ident[EI_DATA]);
    if (h->e_shoff && h->e_shentsize != sizeof(Elf64_Shdr))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "ELF header: section headers of %u bytes instead of %zu", h->e_shentsize,
                              sizeof(Elf64_Shdr));
    return 0;
}

static int find_sections(struct elf *elf, uint32_t *ret_names, struct occ_image_error *err)
{
    const Elf64_Ehdr *h = &elf->header;
    uint64_t count = h->e_shnum;
    *ret_names = h->e_shstrndx;
    if (!h->e_shoff)
        return 0;
    if (!inside(elf->all, h->e_shoff, sizeof(Elf64_Shdr)))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: the section table at byte %llu is outside the %zu bytes",
                              (unsigned long long)h->e_shoff, elf->all.size);
    Elf64_Shdr first;
    memcpy(&first, elf->all.at + h->e_shoff, sizeof first);
    if (!count)
        count = first.sh_size;
    if (h->e_shstrndx == SHN_XINDEX)
        *ret_names = first.sh_link;
    if (count > elf->all.size / sizeof(Elf64_Shdr) ||
        !inside(elf->all, h->e_shoff, count * sizeof(Elf64_Shdr)))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "truncated: %llu section headers at byte %llu do not fit into %zu bytes",
                              (unsigned long long)count, (unsigned long long)h->e_shoff, elf->all.size);
    elf->section_count = (uint32_t)count;
    return 0;
}

int occ_image_elf_open(struct span all, struct elf *ret, struct occ_image_error *err)
{
    struct elf elf = {.all = all};
    if (all.size < sizeof elf.header)
        return occ_image_fail(err, OCC_IMAGE_E_INVALID, "truncated: %zu bytes, an ELF header has %zu",
                              all.size, sizeof elf.header);
    memcpy(&elf.header, all.at, sizeof elf.header);
    uint32_t names = 0;
    int code = check_header(&elf, err);
    if (!code)
        code = find_sections(&elf, &names, err);
    if (!code && elf.section_count) {
        if (names >= elf.section_count)
            return occ_image_fail(err, OCC_IMAGE_E_INVALID, "section names: section %u of %u", names,
                                  elf.section_count);
        code = occ_image_elf_bytes(&elf, names, &elf.section_names, err);
    }
    if (!code)
        *ret = elf;
    return code;
}

Elf64_Shdr occ_image_elf_section(const struct elf *elf, uint32_t index)
{
    Elf64_Shdr section;
    memcpy(&section, elf->all.at + elf->header.e_shoff + (uint64_t)index * sizeof section, sizeof section);
    return section;
}

const char *occ_image_elf_string(struct span table, uint32_t offset)
{
    if (offset >= table.size || !memchr(table.at + offset, 0, table.size - offset))
        return NULL;
    return (const char *)table.at + offset;
}

const char *occ_image_elf_section_name(const struct elf *elf, const Elf64_Shdr *section)
{
    const char *name = occ_image_elf_string(elf->section_names, section->sh_name);
    return name ? name : "";
}

/* nvcc -dc gives sections of global and shared variables types of their own instead of NOBITS. */
static bool occupies_nothing(uint32_t type)
{
    return type == SHT_NOBITS || type == SHT_NULL || type == TYPE_CUDA_GLOBAL || type == TYPE_CUDA_SHARED;
}

int occ_image_elf_bytes(const struct elf *elf, uint32_t index, struct span *ret, struct occ_image_error *err)
{
    Elf64_Shdr section = occ_image_elf_section(elf, index);
    if (occupies_nothing(section.sh_type)) {
        *ret = (struct span){elf->all.at, 0};
        return 0;
    }
    if (!inside(elf->all, section.sh_offset, section.sh_size))
        return occ_image_fail(err, OCC_IMAGE_E_INVALID,
                              "section %u (%.60s): %llu bytes at byte %llu are outside the %zu bytes", index,
                              occ_image_elf_section_name(elf, &section), (unsigned long long)section.sh_size,
                              (unsigned long long)section.sh_offset, elf->all.size);
    *ret = (struct span){elf->all.at + section.sh_offset, (size_t)section.sh_size};
    return 0;
}
