/* ELF64 header, sections and strings, as cubins and host files share them. Little-endian only, as all CUDA
 * hosts are. Offsets and sizes are checked against the file's size on access. */
#pragma once

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

/* Checks the header and the section table's bounds. A file without sections has section_count 0. */
int occ_image_elf_open(struct span all, struct elf *ret, struct occ_image_error *err);

/* `index` must be below section_count. */
Elf64_Shdr occ_image_elf_section(const struct elf *elf, uint32_t index);

/* Never NULL: "" when the name exceeds the table. */
const char *occ_image_elf_section_name(const struct elf *elf, const Elf64_Shdr *section);

/* A string of a string table; NULL when it exceeds the table. */
const char *occ_image_elf_string(struct span table, uint32_t offset);

/* A section's bytes; empty for one without bytes in the file. */
int occ_image_elf_bytes(const struct elf *elf, uint32_t index, struct span *ret, struct occ_image_error *err);
