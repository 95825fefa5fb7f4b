/*
 * The image reader on files made here, byte by byte: the source of each figure, in both ELF ABIs, and the
 * errors for files with wrong contents. Needs no nvcc.
 */
#include "image/image.h"

#include "image/lz4.h"
#include "tests/simgpu/image_details.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above */
#include <cmocka.h>

enum { S_NULL, S_NAMES, S_STRINGS, S_SYMBOLS, S_INFO, S_INFO_K, S_TEXT, S_SHARED, S_GLOBAL, SECTIONS };

static const char names[] =
    "\0.shstrtab\0.strtab\0.symtab\0.nv.info\0.nv.info.k\0.text.k\0.nv.shared.k\0.nv.global.init";
static const uint32_t name_at[SECTIONS] = {0, 1, 11, 19, 27, 36, 47, 55, 68};
static const char strings[] = "\0k\0preset";

/* A cubin with one kernel "k", as a struct so that tests can change every part. */
struct made {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    char names[sizeof names], strings[sizeof strings + 1];
    Elf64_Sym symbols[3]; /* none, k, preset */
    struct {
        uint32_t head[1], symbol, value;
    } registers, frame;
    struct {
        uint32_t barriers, parameter_bytes, threads_head, threads[3], cluster_head, cluster[3];
        uint32_t parameter_head, parameter[3];
    } info;
    uint32_t preset[4];
};

static uint32_t word(uint32_t format, uint32_t attribute, uint32_t value)
{
    return format | attribute << 8 | value << 16;
}

static void place(struct made *m, int index, uint32_t type, const void *at, size_t size, uint32_t info)
{
    m->sections[index] = (Elf64_Shdr){.sh_name = name_at[index],
                                      .sh_type = type,
                                      .sh_offset = at ? (uint64_t)((const char *)at - (const char *)m) : 0,
                                      .sh_size = size,
                                      .sh_info = info};
}

static struct made make(uint8_t abi, uint32_t sm)
{
    struct made m = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 51, abi}}};
    m.header.e_type = ET_EXEC;
    m.header.e_machine = 190;
    m.header.e_flags = abi == 7 ? sm | sm << 16 : sm << 8 | 0x6000004;
    m.header.e_shoff = offsetof(struct made, sections);
    m.header.e_shentsize = sizeof(Elf64_Shdr);
    m.header.e_shnum = SECTIONS;
    m.header.e_shstrndx = S_NAMES;
    memcpy(m.names, names, sizeof names);
    memcpy(m.strings, strings, sizeof strings);
    place(&m, S_NAMES, SHT_STRTAB, m.names, sizeof m.names, 0);
    place(&m, S_STRINGS, SHT_STRTAB, m.strings, sizeof m.strings, 0);
    place(&m, S_SYMBOLS, SHT_SYMTAB, m.symbols, sizeof m.symbols, 0);
    place(&m, S_INFO, SHT_LOPROC, &m.registers, sizeof m.registers + sizeof m.frame, 0);
    place(&m, S_INFO_K, SHT_LOPROC, &m.info, sizeof m.info, S_TEXT);
    place(&m, S_TEXT, SHT_PROGBITS, m.preset, 16, 1);
    place(&m, S_SHARED, SHT_NOBITS, NULL, 5120, S_TEXT);
    place(&m, S_GLOBAL, SHT_PROGBITS, m.preset, sizeof m.preset, 0);
    m.sections[S_SYMBOLS].sh_link = S_STRINGS;
    m.symbols[1] = (Elf64_Sym){.st_name = 1, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = S_TEXT};
    m.symbols[2] =
        (Elf64_Sym){.st_name = 3, .st_info = STT_OBJECT, .st_shndx = S_GLOBAL, .st_value = 4, .st_size = 8};
    m.registers.head[0] = word(4, 0x2f, 8);
    m.registers.symbol = m.frame.symbol = 1;
    m.registers.value = 40;
    m.frame.head[0] = word(4, 0x11, 8);
    m.frame.value = 96;
    m.info.barriers = word(2, 0x4c, 3);
    m.info.parameter_bytes = word(3, 0x19, 12);
    m.info.threads_head = word(4, 0x05, 12);
    m.info.cluster_head = word(4, 0x3d, 12);
    m.info.parameter_head = word(4, 0x17, 12);
    memcpy(m.info.threads, (uint32_t[]){128, 2, 1}, 12);
    memcpy(m.info.cluster, (uint32_t[]){2, 1, 1}, 12);
    memcpy(m.info.parameter, (uint32_t[]){0, 0 | 8u << 16, 4u << 18}, 12);
    m.preset[1] = 7;
    return m;
}

/* Reads a copy in an allocation of exactly this size, so that a sanitizer sees an access beyond its end. */
static int read_exact(const void *bytes, size_t size, uint32_t sm, struct sim_image **ret,
                      struct occ_image_error *err)
{
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    int code = sim_image_open(exact, size, sm, ret, err);
    free(exact);
    return code;
}

static struct sim_image *read_made(const struct made *m, uint32_t sm)
{
    struct sim_image *image = NULL;
    struct occ_image_error err = {0};
    if (read_exact(m, sizeof *m, sm, &image, &err))
        fail_msg("%s", err.message);
    return image;
}

static void test_every_figure(void **state)
{
    (void)state;
    struct made m = make(8, 90);
    struct sim_image *image = read_made(&m, 90);
    const struct occ_image_kernel *k = sim_image_kernel(image, "k");
    assert_int_equal(image->cubin->sm, 90);
    assert_int_equal(image->cubin->abi_version, 8);
    assert_false(image->cubin->relocatable);
    assert_non_null(k);
    assert_int_equal(k->registers, 40);
    assert_int_equal(k->local_bytes, 96);
    assert_int_equal(k->static_smem_bytes, 4096); /* 5120 less the reserve */
    assert_int_equal(k->barriers, 3);
    assert_int_equal(k->max_threads, 256);
    assert_int_equal(k->cluster[0], 2);
    assert_int_equal(image->parameters[0].bytes, 12);
    assert_int_equal(image->parameters[0].count, 1);
    assert_int_equal(image->parameters[0].list[0].offset, 8);
    assert_int_equal(image->parameters[0].list[0].bytes, 4);
    assert_int_equal(image->global_count, 1);
    assert_string_equal(image->globals[0].name, "preset");
    assert_int_equal(image->globals[0].initial[0], 7);
    assert_null(sim_image_kernel(image, "preset"));
    sim_image_free(image);
}

static void test_reserve_of_shared_memory(void **state)
{
    (void)state;
    static const struct {
        uint32_t sm;
        uint16_t type;
        uint32_t bytes;
    } cases[] = {{89, ET_EXEC, 5120}, {90, ET_EXEC, 4096}, {120, ET_EXEC, 4096}, {90, ET_REL, 5120}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made m = make(8, cases[i].sm);
        m.header.e_type = cases[i].type;
        struct sim_image *image = read_made(&m, cases[i].sm);
        assert_int_equal(image->cubin->kernels[0].static_smem_bytes, cases[i].bytes);
        assert_int_equal(image->cubin->relocatable, cases[i].type == ET_REL);
        sim_image_free(image);
    }
}

/* Before CUDA 13 the text section's header has registers and barriers; attributes take precedence, if there
 * are any. */
static void test_old_abi(void **state)
{
    (void)state;
    struct made m = make(7, 61);
    struct sim_image *image = read_made(&m, 61);
    assert_int_equal(image->cubin->sm, 61);
    assert_int_equal(image->cubin->kernels[0].registers, 40);
    assert_int_equal(image->cubin->kernels[0].static_smem_bytes, 5120);
    sim_image_free(image);
    m.sections[S_INFO].sh_size = 0;
    m.info.barriers = word(2, 0xff, 0);
    m.sections[S_TEXT].sh_info = 25u << 24 | 1;
    m.sections[S_TEXT].sh_flags = 2u << 20 | SHF_ALLOC | SHF_EXECINSTR;
    image = read_made(&m, 61);
    assert_int_equal(image->cubin->kernels[0].registers, 25);
    assert_int_equal(image->cubin->kernels[0].barriers, 2);
    sim_image_free(image);
}

/* ---- wrong contents ---- */

static void refused(const void *bytes, size_t size, uint32_t sm, int code, const char *words)
{
    struct sim_image *image = NULL;
    struct occ_image_error err = {0};
    assert_int_equal(read_exact(bytes, size, sm, &image, &err), code);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_null(image);
    assert_int_equal(read_exact(bytes, size, sm, &image, NULL), code);
}

#define REFUSED(change, code, words)                                                                         \
    do {                                                                                                     \
        struct made m = make(8, 90);                                                                         \
        change;                                                                                              \
        refused(&m, sizeof m, 90, code, words);                                                              \
    } while (0)
#define LIES(change, words) REFUSED(change, OCC_IMAGE_E_INVALID, words)

static void test_headers_that_lie(void **state)
{
    (void)state;
    REFUSED(m.header.e_ident[EI_ABIVERSION] = 9, OCC_IMAGE_E_VERSION, "ELF ABI 9");
    REFUSED(m = make(7, 90), OCC_IMAGE_E_VERSION, "sm_90 of ELF ABI 7");
    REFUSED(m.header.e_ident[EI_CLASS] = ELFCLASS32, OCC_IMAGE_E_VERSION, "64-bit");
    REFUSED(m.header.e_ident[EI_DATA] = ELFDATA2MSB, OCC_IMAGE_E_VERSION, "little-endian");
    REFUSED(m = make(8, 80), OCC_IMAGE_E_NO_BINARY, "there is: sm_80");
    LIES(m.header.e_shoff = sizeof m, "section table");
    LIES(m.header.e_shoff = UINT64_MAX, "section table");
    LIES(m.header.e_shnum = 60000, "60000 section headers");
    LIES(m.header.e_shentsize = 40, "section headers of 40 bytes");
    LIES(m.header.e_shstrndx = SECTIONS, "section names: section 9 of 9");
    LIES(m.header.e_shoff = 0, "without sections");
    REFUSED(m.header.e_machine = EM_X86_64, OCC_IMAGE_E_NO_BINARY, "x86-64 without CUDA code");
}

static void test_sections_that_lie(void **state)
{
    (void)state;
    LIES(m.sections[S_INFO_K].sh_size = 1 << 20, "section 5 (.nv.info.k): 1048576 bytes");
    LIES(m.sections[S_TEXT].sh_offset = UINT64_MAX - 4, "section 6 (.text.k)");
    LIES(m.sections[S_NAMES].sh_offset = sizeof m, "section 1");
    LIES(m.sections[S_SYMBOLS].sh_type = SHT_PROGBITS, "without a symbol table");
    LIES(m.sections[S_SYMBOLS].sh_link = 77, "its names are in section 77");
    LIES(m.sections[S_SHARED].sh_size = UINT64_MAX, "bytes of shared memory");
    LIES(m.sections[S_SHARED].sh_size = (256 << 10) + 1, "262145 bytes of shared memory");
    LIES((m.sections[S_GLOBAL] = m.sections[S_SHARED], m.symbols[2].st_info = 0),
         "a second section of shared memory");
    LIES((m.sections[S_GLOBAL] = m.sections[S_INFO_K], m.symbols[2].st_info = 0),
         "a second one for kernel k");
    LIES(m.symbols[1].st_shndx = 500, "kernel k: section 500 of 9");
    LIES(m.symbols[1].st_name = 5000, "the name of a kernel, at byte");
    LIES(m.symbols[1].st_name = 0, "the name of a kernel, at byte");
    LIES((m.symbols[2].st_info = STT_FUNC, m.symbols[2].st_other = 0x10, m.symbols[2].st_shndx = S_TEXT),
         "belongs to another kernel too");
    LIES(m.symbols[2].st_value = 9, "preset: 8 bytes at 9");
}

static void test_figures_that_lie(void **state)
{
    (void)state;
    LIES(m.registers.value = 256, "kernel k: 256 registers");
    LIES(m.frame.value = 1 << 30, "bytes of stack");
    LIES(m.registers.symbol = 3, "names no symbol");
    LIES(m.registers.head[0] = word(4, 0x2f, 4), "names no symbol");
    LIES(m.frame.head[0] = word(4, 0x11, 9), "claims 9 bytes, 8 are there");
    LIES(m.sections[S_INFO].sh_size -= 1, "claims 8 bytes, 7 are there");
    LIES(m.sections[S_INFO_K].sh_size = 6, "ends inside an entry");
    LIES(m.info.barriers = word(2, 0x4c, 17), "17 barriers");
    LIES(m.info.threads[2] = 5, "launch bounds of 128 x 2 x 5");
    LIES(m.info.threads[1] = UINT32_MAX, "launch bounds");
    LIES(m.info.cluster[0] = 65, "cluster of 65");
    LIES(m.info.parameter[1] = 1, "parameter 1 of 1");
}

static void test_no_register_count_is_said(void **state)
{
    (void)state;
    struct made m = make(8, 90);
    m.registers.head[0] = word(4, 0xee, 8);
    struct sim_image *image = read_made(&m, 90);
    assert_int_equal(image->cubin->kernels[0].registers, 0);
    sim_image_free(image);
    m.sections[S_TEXT].sh_info = 98u << 24 | 1; /* as in libraries with assembled kernels */
    image = read_made(&m, 90);
    assert_int_equal(image->cubin->kernels[0].registers, 98);
    assert_int_equal(image->cubin->kernels[0].barriers, 3);
    sim_image_free(image);
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    struct made m = make(8, 90);
    for (size_t size = 0; size < sizeof m; size++) {
        struct sim_image *image = NULL;
        struct occ_image_error err = {0};
        assert_int_not_equal(read_exact(&m, size, 90, &image, &err), 0);
        assert_int_not_equal(err.message[0], 0);
    }
}

/* The reader of a file with one changed byte fails, or reads only within the file (a sanitizer checks this)
 * and returns figures within the limits. */
static void test_every_byte_spoiled(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct made m = make(8, 90);
    for (size_t at = 0; at < sizeof m; at++) {
        for (size_t v = 0; v < sizeof values; v++) {
            struct made spoiled = m;
            struct sim_image *image = NULL;
            ((uint8_t *)&spoiled)[at] = values[v];
            if (read_exact(&spoiled, sizeof spoiled, 90, &image, NULL))
                continue;
            for (uint32_t i = 0; i < image->cubin->kernel_count; i++)
                assert_true(image->cubin->kernels[i].registers <= 255 &&
                            image->cubin->kernels[i].static_smem_bytes <= 256 << 10);
            sim_image_free(image);
        }
    }
}

/* ---- fat binaries ---- */

struct entry_header {
    uint16_t kind, unknown;
    uint32_t header;
    uint64_t padded;
    uint32_t compressed, unknown2[2], sm, unknown3[2];
    uint64_t flags, unknown4, decompressed;
};

struct made_fatbin {
    uint32_t magic;
    uint16_t version, header;
    uint64_t content;
    struct entry_header entry;
    struct made cubin;
    struct entry_header ptx;
    char text[8];
};

static struct made_fatbin make_fatbin(uint32_t sm)
{
    _Static_assert(sizeof(struct entry_header) == 64, "as fatbin.c says");
    _Static_assert(sizeof(struct made) % 8 == 0, "no padding in the fat binary");
    struct made_fatbin f = {.magic = 0xba55ed50u, .version = 1, .header = 16};
    f.content = sizeof f - 16;
    f.entry =
        (struct entry_header){.kind = 2, .header = 64, .padded = sizeof f.cubin, .sm = sm, .flags = 0x11};
    f.cubin = make(8, sm);
    f.ptx = (struct entry_header){.kind = 1, .header = 64, .padded = 8, .sm = sm, .flags = 0x11};
    return f;
}

#define FATBIN_REFUSED(change, code, words)                                                                  \
    do {                                                                                                     \
        struct made_fatbin f = make_fatbin(90);                                                              \
        change;                                                                                              \
        refused(&f, sizeof f, 90, code, words);                                                              \
    } while (0)

static void test_fatbins_that_lie(void **state)
{
    (void)state;
    FATBIN_REFUSED(f.version = 2, OCC_IMAGE_E_VERSION, "version 2");
    FATBIN_REFUSED(f.header = 8, OCC_IMAGE_E_INVALID, "claims 8 +");
    FATBIN_REFUSED(f.content += 1, OCC_IMAGE_E_INVALID, "truncated: the fat binary at byte 0");
    FATBIN_REFUSED(f.content = UINT64_MAX, OCC_IMAGE_E_INVALID, "truncated");
    FATBIN_REFUSED(f.content -= 16, OCC_IMAGE_E_INVALID, "the fat binary ends inside the entry header");
    FATBIN_REFUSED(f.entry.padded = UINT64_MAX - 70, OCC_IMAGE_E_INVALID, "entry at byte 16");
    FATBIN_REFUSED(f.entry.header = 0, OCC_IMAGE_E_INVALID, "a header of 0");
    FATBIN_REFUSED(f.entry.compressed = UINT32_MAX, OCC_IMAGE_E_INVALID, "4294967295 compressed");
    FATBIN_REFUSED(f.entry.kind = 1, OCC_IMAGE_E_NO_BINARY, "there is: compute_90");
    FATBIN_REFUSED(f.cubin = make(8, 89), OCC_IMAGE_E_INVALID,
                   "entry 0 (sm_90) at byte 16: the cubin in it is for sm_89");
    FATBIN_REFUSED((f.entry.flags = 0x8011, f.entry.decompressed = 100), OCC_IMAGE_E_INVALID,
                   "zstd data do not");
    FATBIN_REFUSED((f.entry.flags = 0x2011, f.entry.decompressed = 100), OCC_IMAGE_E_INVALID,
                   "LZ4 data do not");
    FATBIN_REFUSED((f.entry.flags = 0x2011, f.entry.decompressed = UINT64_MAX), OCC_IMAGE_E_FULL, "claims");
    FATBIN_REFUSED((f.entry.flags = 0x8011, f.entry.decompressed = 1 << 28), OCC_IMAGE_E_FULL,
                   "compressed ones");
}

static void test_fatbins_in_a_row(void **state)
{
    (void)state;
    struct {
        struct made_fatbin first;
        uint64_t padding[3];
        struct made_fatbin second;
    } two = {.first = make_fatbin(80), .second = make_fatbin(90)};
    struct occ_image_list *list = NULL;
    char text[64];
    assert_int_equal(occ_image_list_new(&two, sizeof two, &list, NULL), 0);
    assert_int_equal(occ_image_list_count(list), 4);
    assert_int_equal(occ_image_list_entry(list, 2)->sm, 90);
    assert_int_equal(occ_image_list_entry(list, 3)->kind, OCC_IMAGE_KIND_PTX);
    assert_null(occ_image_list_entry(list, 4));
    assert_string_equal(occ_image_list_text(list, text, sizeof text), "sm_80, sm_90, compute_80, compute_90");
    assert_string_equal(occ_image_list_text(list, text, 8), "sm_80, ");
    struct occ_image *image = NULL;
    struct occ_image_error err = {0};
    assert_int_equal(occ_image_load(list, 1, &image, &err), OCC_IMAGE_E_NO_BINARY);
    assert_int_equal(occ_image_load(list, 4, &image, &err), OCC_IMAGE_E_INVALID);
    assert_int_equal(occ_image_load(list, 2, &image, &err), 0);
    occ_image_free(image);
    occ_image_list_free(list);
    two.padding[1] = 0x1234;
    refused(&two, sizeof two, 90, OCC_IMAGE_E_INVALID, "neither a fat binary nor padding (0x00001234)");
}

static void test_choice(void **state)
{
    (void)state;
    assert_true(occ_image_runs_on(80, 0, 89));
    assert_false(occ_image_runs_on(89, 0, 80));
    assert_false(occ_image_runs_on(80, 0, 90));
    assert_true(occ_image_runs_on(120, 0, 121));
    assert_false(occ_image_runs_on(110, 0, 120));
    assert_true(occ_image_runs_on(100, 'a', 100));
    assert_false(occ_image_runs_on(100, 'a', 103));
    assert_true(occ_image_runs_on(100, 'f', 103));
}

/* The highest of several cubins that run is chosen, in any order; sm_86 with the flag of sm_86a runs only
 * on 8.6. */
static void test_choice_of_several(void **state)
{
    static const struct {
        uint32_t first, second, device, chosen;
        uint64_t flags; /* flags of the first cubin */
    } cases[] = {{80, 86, 89, 86, 0x11},     {86, 80, 89, 86, 0x11},     {86, 80, 80, 80, 0x11},
                 {86, 80, 89, 80, 0x100011}, {86, 80, 86, 86, 0x100011}, {86, 80, 89, 86, 0x200011}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_fatbin two[2] = {make_fatbin(cases[i].first), make_fatbin(cases[i].second)};
        struct sim_image *image = NULL;
        two[0].entry.flags = cases[i].flags;
        assert_int_equal(read_exact(two, sizeof two, cases[i].device, &image, NULL), 0);
        assert_int_equal(image->cubin->sm, cases[i].chosen);
        sim_image_free(image);
    }
}

static void test_suffixes(void **state)
{
    (void)state;
    struct made_fatbin two[2] = {make_fatbin(100), make_fatbin(100)};
    struct occ_image_list *list = NULL;
    struct sim_image *image = NULL;
    char text[64];
    two[0].entry.flags = 0x1100011;
    two[1].entry.flags = 0x1200011;
    assert_int_equal(occ_image_list_new(two, sizeof two, &list, NULL), 0);
    assert_int_equal(occ_image_list_entry(list, 0)->suffix, 'a');
    assert_string_equal(occ_image_list_text(list, text, sizeof text), "sm_100a, sm_100f, compute_100");
    occ_image_list_free(list);
    two[1].entry.flags = 0x1100011;
    assert_int_equal(read_exact(two, sizeof two, 103, &image, NULL), OCC_IMAGE_E_NO_BINARY);
}

/* ---- static archives ---- */

enum { MEMBER_HEADER = 60, ARCHIVE_BYTES = 8 + 4 * MEMBER_HEADER + 3 * sizeof(struct made) };

/* Appends a member to an archive; returns its end. */
static size_t add_member(char *archive, size_t at, const void *bytes, size_t size)
{
    char header[MEMBER_HEADER + 1];
    snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", "k.o/", 0, 0, 0, 0644, size);
    memcpy(archive + at, header, MEMBER_HEADER);
    memcpy(archive + at + MEMBER_HEADER, bytes, size);
    at += MEMBER_HEADER + size;
    if (size & 1)
        archive[at++] = '\n';
    return at;
}

/* Makes an archive of two cubins, each with a kernel "k", with a text of odd size between them. */
static size_t make_archive(char archive[ARCHIVE_BYTES])
{
    struct made first = make(8, 90), second = make(7, 80);
    memcpy(archive, "!<arch>\n", 8);
    size_t at = add_member(archive, 8, &first, sizeof first);
    at = add_member(archive, at, "odd", 3);
    return add_member(archive, at, &second, sizeof second);
}

static void test_archive(void **state)
{
    (void)state;
    char archive[ARCHIVE_BYTES], text[64];
    struct occ_image_list *list = NULL;
    struct occ_image *image = NULL;
    size_t size = make_archive(archive);
    assert_int_equal(occ_image_list_new(archive, size, &list, NULL), 0);
    assert_string_equal(occ_image_list_text(list, text, sizeof text), "sm_80, sm_90");
    assert_int_equal(occ_image_list_count(list), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(archive + occ_image_list_entry(list, i)->offset,
                            "\x7f"
                            "ELF",
                            4);
        assert_int_equal(occ_image_load(list, i, &image, NULL), 0);
        assert_string_equal(image->kernels[0].name, "k");
        occ_image_free(image);
    }
    occ_image_list_free(list);
}

static void test_damaged_archives(void **state)
{
    (void)state;
    char archive[ARCHIVE_BYTES];
    size_t size = make_archive(archive);
    refused(archive, size - 1, 90, OCC_IMAGE_E_INVALID, "truncated: the archive's member at byte");
    refused(archive, 8 + MEMBER_HEADER - 1, 90, OCC_IMAGE_E_INVALID, "ends in the header at byte 8");
    refused(archive, 8, 90, OCC_IMAGE_E_NO_BINARY, "a static archive without CUDA code");
    static const char *const sizes[] = {"          ", "99999999999", "-1        ", "1 2       ",
                                        "0x10      "};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(archive + 8 + 48, sizes[i], 10);
        refused(archive, size, 90, OCC_IMAGE_E_INVALID, "member");
    }
    (void)make_archive(archive);
    archive[8 + MEMBER_HEADER + EI_CLASS] = ELFCLASS32;
    refused(archive, size, 90, OCC_IMAGE_E_VERSION, "member at byte 68: ELF class 1");
    memcpy(archive, "!<thin>\n", 8);
    refused(archive, size, 90, OCC_IMAGE_E_VERSION, "a thin archive");
}

/* ---- others ---- */

static void test_other_files(void **state)
{
    (void)state;
#define SAYS(text, code, words) refused(text, sizeof text - 1, 90, code, words)
    SAYS("", OCC_IMAGE_E_INVALID, "0 bytes: too short");
    SAYS("\x7f"
         "ELF",
         OCC_IMAGE_E_INVALID, "truncated: 4 bytes, an ELF header has 64");
    SAYS("certainly not an image", OCC_IMAGE_E_INVALID, "neither a cubin");
    SAYS("// a comment\n.version 9.0\n", OCC_IMAGE_E_NO_BINARY, "PTX text");
    SAYS("\x50\xed\x55\xba\1\0\x10\0\0\0\0\0\0\0\0\0", OCC_IMAGE_E_NO_BINARY, "without entries");
    struct sim_image *image = NULL;
    assert_int_equal(sim_image_open(NULL, 4, 90, &image, NULL), OCC_IMAGE_E_INVALID);
    sim_image_free(NULL);
    occ_image_free(NULL);
    occ_image_list_free(NULL);
}

static void test_lz4_blocks(void **state)
{
    static const uint8_t run[] = {0x1f, 'a', 1, 0, 3, 0x10, 'b'}; /* "a", 22 more "a", "b" */
    static const uint8_t far[] = {0x10, 'a', 9, 0};               /* a match from before the start */
    uint8_t out[24];
    (void)state;
    assert_true(occ_image_lz4_decode(run, sizeof run, out, 24));
    assert_memory_equal(out, "aaaaaaaaaaaaaaaaaaaaaaab", 24);
    assert_false(occ_image_lz4_decode(run, sizeof run, out, 23));
    assert_false(occ_image_lz4_decode(run, sizeof run - 1, out, 24));
    assert_false(occ_image_lz4_decode(far, sizeof far, out, 24));
    assert_false(occ_image_lz4_decode(run, 0, out, 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure),
        cmocka_unit_test(test_reserve_of_shared_memory),
        cmocka_unit_test(test_old_abi),
        cmocka_unit_test(test_headers_that_lie),
        cmocka_unit_test(test_sections_that_lie),
        cmocka_unit_test(test_figures_that_lie),
        cmocka_unit_test(test_no_register_count_is_said),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_every_byte_spoiled),
        cmocka_unit_test(test_fatbins_that_lie),
        cmocka_unit_test(test_fatbins_in_a_row),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_choice_of_several),
        cmocka_unit_test(test_suffixes),
        cmocka_unit_test(test_archive),
        cmocka_unit_test(test_damaged_archives),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_lz4_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
