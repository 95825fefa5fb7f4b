/* ELF files: cubins, and host files with fat binaries. Section .nv_fatbin of an executable or library has the
 * fat binaries that are registered at the start, __nv_relfatbin the output of nvcc -dc before nvlink. Pure
 * apart from malloc; any thread. */
#include "elf_file.h"
#include "entries.h"
#include "fail.h"

static bool holds_fatbins(const char *name)
{
    return strcmp(name, ".nv_fatbin") == 0 || strcmp(name, "__nv_relfatbin") == 0;
}

static int list_section(struct occ_image_list *list, const struct elf *elf, uint32_t index,
                        struct occ_image_error *err)
{
    struct span bytes;
    int code = occ_image_elf_bytes(elf, index, &bytes, err);
    if (code)
        return code;
    size_t offset = (size_t)(bytes.at - elf->all.at);
    code = occ_image_fatbins_list(list, offset, offset + bytes.size, err);
    if (code) {
        Elf64_Shdr section = occ_image_elf_section(elf, index);
        occ_image_prefix(err, "section %u (%s): ", index, occ_image_elf_section_name(elf, &section));
    }
    return code;
}

static int list_host(struct occ_image_list *list, struct occ_image_error *err)
{
    struct elf elf;
    int code = occ_image_elf_open(list->all, &elf, err);
    for (uint32_t i = 0; !code && i < elf.section_count; i++) {
        Elf64_Shdr section = occ_image_elf_section(&elf, i);
        if (holds_fatbins(occ_image_elf_section_name(&elf, &section)))
            code = list_section(list, &elf, i, err);
    }
    if (!code && !list->count)
        code = occ_image_fail(err, OCC_IMAGE_E_NO_BINARY, "an ELF file for %s without CUDA code (%s)",
                              elf.header.e_machine == EM_X86_64    ? "x86-64"
                              : elf.header.e_machine == EM_AARCH64 ? "aarch64"
                                                                   : "another machine",
                              elf.section_count ? "no .nv_fatbin section" : "it has no section table");
    return code;
}

static int list_cubin(struct occ_image_list *list, struct occ_image_error *err)
{
    struct found found = {.payload = list->all};
    found.entry.kind = OCC_IMAGE_KIND_CUBIN;
    found.entry.bytes = list->all.size;
    int code = occ_image_cubin_sm(list->all, &found.entry.sm, err);
    return code ? code : occ_image_list_add(list, &found, err);
}

int occ_image_elf_list(struct occ_image_list *list, struct occ_image_error *err)
{
    struct span all = list->all;
    bool cubin = all.size >= 20 && u16_at(all.at + 18) == OCC_IMAGE_MACHINE_CUDA;
    return cubin ? list_cubin(list, err) : list_host(list, err);
}
