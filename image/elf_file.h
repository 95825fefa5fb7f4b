/*
 * The part of ELF64 that cubins and host files share: header, sections, strings. Little-endian only, as are all hosts
 * of CUDA. Everything is checked against the file's size when it is asked for.
 */
#ifndef OCC_IMAGE_ELF_FILE_H
#define OCC_IMAGE_ELF_FILE_H

#include "bytes.h"
#include "image.h"

#include <elf.h>

#define OCC_IMAGE_MACHINE_CUDA 190

struct elf {
    struct span all;
    Elf64_Ehdr header;
    uint32_t section_count;
    struct span section_names;
};

/* Checks the header and where the section table is. A file without sections has section_count 0. */
int occ_image_elf_open(struct span all, struct elf *ret, struct occ_image_error *err);

/* `index` must be below section_count. */
Elf64_Shdr occ_image_elf_section(const struct elf *elf, uint32_t index);

/* Never NULL: "" when the name is not wholly inside the table. */
const char *occ_image_elf_section_name(const struct elf *elf, const Elf64_Shdr *section);

/* A string of a string table; NULL when it is not wholly inside. */
const char *occ_image_elf_string(struct span table, uint32_t offset);

/* A section's bytes; empty for one that occupies none in the file. */
int occ_image_elf_bytes(const struct elf *elf, uint32_t index, struct span *ret, struct occ_image_error *err);

#endif
