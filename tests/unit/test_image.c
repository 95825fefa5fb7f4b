/*
 * The image reader on files made by nvcc: cubins against the figures of ptxas for the same kernels (`-Xptxas
 * -v`, kept by the build), fat binaries of every compression, host files, and damaged files.
 *
 * OCC_TEST_IMAGES is the directory where image.cmake put the files; without nvcc there are none (77).
 */
#include "image/image.h"
#include "image/ptxas.h"
#include "tests/simgpu/image_details.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above */
#include <cmocka.h>

#ifndef OCC_TEST_IMAGES
#define OCC_TEST_IMAGES ""
#endif
static const char directory[] = OCC_TEST_IMAGES;
static const uint32_t sms[] = {75, 80, 90, 100, 120};
#define SM_COUNT (sizeof sms / sizeof *sms)

static uint8_t *read_path(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s", path);
    fseek(file, 0, SEEK_END);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*ret_size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *ret_size, file), *ret_size);
    fclose(file);
    return bytes;
}

static uint8_t *read_file(const char *name, size_t *ret_size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return read_path(path, ret_size);
}

static struct sim_image *read_image(const char *name, uint32_t sm)
{
    size_t size;
    uint8_t *bytes = read_file(name, &size);
    struct sim_image *image = NULL;
    struct occ_image_error err = {0};
    if (sim_image_open(bytes, size, sm, &image, &err))
        fail_msg("%s: %s", name, err.message);
    free(bytes);
    return image;
}

static const struct occ_image_kernel *find_kernel(const struct occ_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->kernel_count; i++)
        if (strcmp(image->kernels[i].name, name) == 0)
            return &image->kernels[i];
    return NULL;
}

static void assert_is(const struct occ_image_kernel *kernel, const struct occ_ptxas_kernel *said)
{
    assert_non_null(kernel);
    assert_int_equal(kernel->registers, said->registers);
    assert_int_equal(kernel->barriers, said->barriers);
    assert_int_equal(kernel->static_smem_bytes, said->static_smem_bytes);
    assert_int_equal(kernel->local_bytes, said->stack_bytes);
}

/* Every kernel of the image is in the log of the same name, with the same figures. */
static void compare_with_ptxas(const struct occ_image *image, const char *log)
{
    size_t size;
    char *text = (char *)read_file(log, &size);
    struct occ_ptxas *report = NULL;
    size_t compared = 0;
    assert_int_equal(occ_ptxas_read(text, size, &report, NULL), 0);
    free(text);
    for (size_t i = 0; i < report->count; i++) {
        if (report->kernels[i].sm != image->sm)
            continue;
        assert_is(find_kernel(image, report->kernels[i].name), &report->kernels[i]);
        compared++;
    }
    assert_int_equal(compared, image->sm >= 90 ? 9 : 8);
    assert_int_equal(compared, image->kernel_count);
    occ_ptxas_free(report);
}

static void test_figures_are_ptxas(void **state)
{
    (void)state;
    for (size_t i = 0; i < SM_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "sm_%u.cubin", sms[i]);
        struct sim_image *image = read_image(name, sms[i]);
        assert_int_equal(image->cubin->abi_version, 8);
        snprintf(name, sizeof name, "sm_%u.ptxas", sms[i]);
        compare_with_ptxas(image->cubin, name);
        sim_image_free(image);
    }
}

static void test_relocatable(void **state)
{
    (void)state;
    struct sim_image *image = read_image("relocatable.cubin", 90);
    assert_true(image->cubin->relocatable);
    compare_with_ptxas(image->cubin, "relocatable.ptxas");
    sim_image_free(image);
}

static void test_what_ptxas_does_not_say(void **state)
{
    (void)state;
    struct sim_image *image = read_image("sm_90.cubin", 90);
    const struct occ_image_kernel *plain = sim_image_kernel(image, "plain");
    const struct sim_parameters *parameters = &image->parameters[plain - image->cubin->kernels];
    assert_int_equal(parameters->count, 4);
    assert_int_equal(parameters->list[3].offset, 24);
    assert_int_equal(parameters->list[3].bytes, 4);
    assert_int_equal(parameters->bytes, 28);
    assert_int_equal(plain->max_threads, 0);
    assert_int_equal(plain->static_smem_bytes, 0);
    assert_int_equal(sim_image_kernel(image, "bounded")->max_threads, 256);
    assert_int_equal(sim_image_kernel(image, "bounded")->static_smem_bytes, 8192);
    assert_int_equal(sim_image_kernel(image, "clustered")->cluster[0], 2);
    assert_int_equal(sim_image_kernel(image, "clustered")->cluster[2], 1);
    assert_true(sim_image_kernel(image, "_Z5localILi200EEvPfi")->local_bytes >= 800);
    assert_true(sim_image_kernel(image, "heavy")->registers > 96);
    assert_null(sim_image_kernel(image, "counter"));
    bool preset = false, counter = false;
    for (uint32_t i = 0; i < image->global_count; i++) {
        const struct sim_global *global = &image->globals[i];
        counter |= strcmp(global->name, "counter") == 0 && global->bytes == 32 && !global->initial;
        preset |= strcmp(global->name, "preset") == 0 && global->bytes == 16 && global->initial[4] == 2;
    }
    assert_true(counter && preset);
    sim_image_free(image);
}

static const struct {
    const char *name, *log, *contains;
    bool packed; /* its first cubin */
} containers[] = {
    {"plain.fatbin", "plain.ptxas", "sm_75, sm_80, sm_90, compute_90", false},
    {"all.fatbin", "all.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"size.fatbin", "size.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"speed.fatbin", "speed.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"object.o", "object.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"device.o", "device.ptxas", "sm_90", true},
    {"archive.a", "object.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"library.so", "library.ptxas", "sm_75, sm_80, sm_90, compute_90", true},
    {"program.out", "program.ptxas", "sm_90", true},
};
#define CONTAINER_COUNT (sizeof containers / sizeof *containers)

/* The test checks compression only where it asked nvcc for a kind: nvcc's default may change. */
static bool asked_for_compression(size_t c)
{
    return strstr(containers[c].name, ".fatbin") != NULL;
}

static void test_containers(void **state)
{
    (void)state;
    for (size_t c = 0; c < CONTAINER_COUNT; c++) {
        size_t size, loaded = 0;
        char text[128];
        uint8_t *bytes = read_file(containers[c].name, &size);
        struct occ_image_list *list = NULL;
        struct occ_image_error err = {0};
        if (occ_image_list_new(bytes, size, &list, &err))
            fail_msg("%s: %s", containers[c].name, err.message);
        assert_string_equal(occ_image_list_text(list, text, sizeof text), containers[c].contains);
        if (asked_for_compression(c))
            assert_int_equal(occ_image_list_entry(list, 0)->compressed, containers[c].packed);
        for (size_t i = 0; i < occ_image_list_count(list); i++) {
            struct occ_image *image = NULL;
            if (occ_image_list_entry(list, i)->kind != OCC_IMAGE_KIND_CUBIN)
                continue;
            if (occ_image_load(list, i, &image, &err))
                fail_msg("%s: %s", containers[c].name, err.message);
            if (image->kernel_count) {
                compare_with_ptxas(image, containers[c].log);
                loaded++;
            }
            occ_image_free(image);
        }
        assert_int_equal(loaded, strstr(containers[c].contains, "sm_75") ? 3 : 1);
        occ_image_list_free(list);
        free(bytes);
    }
}

static void test_choice_of_entry(void **state)
{
    (void)state;
    size_t size;
    struct sim_image *image = NULL;
    struct occ_image_error err = {0};
    uint8_t *bytes = read_file("plain.fatbin", &size);
    assert_int_equal(sim_image_open(bytes, size, 100, &image, &err), OCC_IMAGE_E_NO_BINARY);
    assert_string_equal(err.message,
                        "nothing compiled for sm_100; there is: sm_75, sm_80, sm_90, compute_90");
    assert_int_equal(sim_image_open(bytes, size, 70, &image, NULL), OCC_IMAGE_E_NO_BINARY);
    assert_int_equal(sim_image_open(bytes, size, 89, &image, NULL), 0); /* the cubin for sm_80 */
    assert_int_equal(image->cubin->sm, 80);
    sim_image_free(image);
    free(bytes);
    bytes = read_file("ptx.fatbin", &size);
    assert_int_equal(sim_image_open(bytes, size, 90, &image, NULL), OCC_IMAGE_E_NO_BINARY);
    free(bytes);
}

/* Neither this program nor the static library has CUDA code. */
static void test_foreign_files(void **state)
{
    (void)state;
    size_t size;
    struct occ_image_list *list = NULL;
    struct occ_image_error err = {0};
    uint8_t *bytes = read_path("/proc/self/exe", &size);
    assert_int_equal(occ_image_list_new(bytes, size, &list, &err), OCC_IMAGE_E_NO_BINARY);
    assert_non_null(strstr(err.message, "without CUDA code (no .nv_fatbin section)"));
    free(bytes);
    bytes = read_path(OCC_TEST_FOREIGN_ARCHIVE, &size);
    assert_int_equal(occ_image_list_new(bytes, size, &list, &err), OCC_IMAGE_E_NO_BINARY);
    assert_non_null(strstr(err.message, "static archive without CUDA code"));
    free(bytes);
}

/* ---- damage ---- */

/* Reads a copy in an allocation of exactly this size, so that a sanitizer sees an access beyond its end. */
static int try_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    struct sim_image *image = NULL;
    struct occ_image_error err = {0};
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    int code = sim_image_open(exact, size, 90, &image, &err);
    assert_int_equal(code, err.code);
    assert_true(!code || *err.message);
    sim_image_free(image);
    free(exact);
    return code;
}

/* Reads the file cut at every byte, which must fail: cubins have their section table at the end, and a fat
 * binary has its length in its header. */
static void cut(const char *name)
{
    size_t size;
    uint8_t *bytes = read_file(name, &size);
    for (size_t length = 0; length < size; length++) {
        if (!try_bytes(bytes, length))
            fail_msg("%s cut to %zu of %zu bytes was read", name, length, size);
    }
    assert_int_equal(try_bytes(bytes, size), 0);
    free(bytes);
}

static void test_cut_images(void **state)
{
    (void)state;
    cut("size.fatbin");
    cut("speed.fatbin");
    cut("program.out");
}

/* The program headers come last in a cubin, and the reader does not need them: a cut there may succeed. */
static void test_cut_cubin(void **state)
{
    (void)state;
    size_t size, shortest = 0;
    uint8_t *bytes = read_file("sm_90.cubin", &size);
    for (size_t length = 0; length < size; length++) {
        int code = try_bytes(bytes, length);
        if (!code && !shortest)
            shortest = length;
        assert_true(!shortest || !code);
    }
    uint64_t table;
    uint16_t count;
    memcpy(&table, bytes + 40, sizeof table);
    memcpy(&count, bytes + 60, sizeof count);
    assert_true(!shortest || shortest == table + (uint64_t)count * 64);
    free(bytes);
}

static void spoil(const char *name)
{
    size_t size;
    uint8_t *bytes = read_file(name, &size);
    srand(4711);
    for (int i = 0; i < 4000; i++) {
        size_t at = (size_t)rand() % size, headers = (size_t)rand() % 512;
        uint8_t *byte = &bytes[i % 2 ? at : headers % size], before = *byte;
        *byte = i % 3 ? (uint8_t)rand() : 0xff;
        (void)try_bytes(bytes, size);
        *byte = before;
    }
    free(bytes);
}

static void test_spoiled_images(void **state)
{
    (void)state;
    spoil("sm_90.cubin");
    spoil("plain.fatbin");
    spoil("size.fatbin");
    spoil("speed.fatbin");
    spoil("library.so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_are_ptxas),
        cmocka_unit_test(test_relocatable),
        cmocka_unit_test(test_what_ptxas_does_not_say),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_choice_of_entry),
        cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_cut_images),
        cmocka_unit_test(test_cut_cubin),
        cmocka_unit_test(test_spoiled_images),
    };
    if (!*directory) {
        puts("SKIP: no nvcc when this was configured, so no images to read");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
