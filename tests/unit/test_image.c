/*
 * The image reader against what ptxas said of the same kernels (`nvcc -Xptxas -v`, kept by the build), on fat
 * binaries of every compression, and on damaged bytes, of which none may be read past its end.
 *
 * SIM_TEST_IMAGES is where CMakeLists.txt put sm_75.cubin, sm_75.ptxas and so on; without nvcc there are none (77).
 */
#include "image.h"
#include "lz4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the above */
#include <cmocka.h>

#ifndef SIM_TEST_IMAGES
#define SIM_TEST_IMAGES ""
#endif
static const char directory[] = SIM_TEST_IMAGES;
static const uint32_t sms[] = {75, 80, 90};

static char *read_file(const char *name, size_t *ret_size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(4 << 20);
    assert_non_null(bytes);
    *ret_size = fread(bytes, 1, (4 << 20) - 1, file);
    bytes[*ret_size] = 0;
    fclose(file);
    return bytes;
}

static struct sim_image *read_image(const char *name, uint32_t sm)
{
    size_t size;
    char *bytes = read_file(name, &size);
    struct sim_image *image = NULL;
    assert_int_equal(sim_image_read(bytes, size, sm, &image), SIM_IMAGE_OK);
    free(bytes);
    return image;
}

/* The number in front of `unit` on ptxas' line; 0: not there. */
static uint32_t figure(const char *line, const char *unit)
{
    const char *at = strstr(line, unit);
    if (!at)
        return 0;
    while (at > line && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    return (uint32_t)strtoul(at, NULL, 10);
}

static size_t compare_with_ptxas(const struct sim_image *image, char *log)
{
    const struct sim_kernel *kernel = NULL;
    size_t compared = 0;
    char *rest = log;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *name = strstr(line, "Compiling entry function '");
        if (name) {
            name += strlen("Compiling entry function '");
            name[strcspn(name, "'")] = 0;
            kernel = sim_image_kernel(image, name);
            assert_non_null(kernel);
        } else if (strstr(line, "bytes stack frame")) {
            assert_int_equal(kernel->local_bytes, figure(line, " bytes stack frame"));
        } else if (strstr(line, "Used ")) {
            assert_int_equal(kernel->registers, figure(line, " registers"));
            assert_int_equal(kernel->barriers, figure(line, " barriers"));
            assert_int_equal(kernel->static_smem_bytes, figure(line, " bytes smem"));
            compared++;
        }
    }
    return compared;
}

static void test_figures_are_ptxas(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        size_t size;
        snprintf(name, sizeof name, "sm_%u.cubin", sms[i]);
        struct sim_image *image = read_image(name, sms[i]);
        snprintf(name, sizeof name, "sm_%u.ptxas", sms[i]);
        char *log = read_file(name, &size);
        assert_int_equal(compare_with_ptxas(image, log), image->kernel_count);
        assert_int_equal(image->kernel_count, sms[i] >= 90 ? 9 : 8);
        free(log);
        sim_image_free(image);
    }
}

static void test_what_ptxas_does_not_say(void **state)
{
    (void)state;
    struct sim_image *image = read_image("sm_90.cubin", 90);
    const struct sim_kernel *plain = sim_image_kernel(image, "plain");
    assert_int_equal(plain->parameter_count, 4);
    assert_int_equal(plain->parameters[3].offset, 24);
    assert_int_equal(plain->parameters[3].bytes, 4);
    assert_int_equal(plain->parameter_bytes, 28);
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

static void test_fatbins(void **state)
{
    static const char *const names[] = {"plain.fatbin", "zstd.fatbin", "lz4.fatbin"};
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < 3; i++) {
            struct sim_image *image = read_image(names[f], sms[i]);
            assert_int_equal(image->sm, sms[i]);
            assert_non_null(sim_image_kernel(image, "bounded"));
            sim_image_free(image);
        }
    }
}

static void test_choice_of_entry(void **state)
{
    (void)state;
    size_t size;
    struct sim_image *image = NULL;
    char *bytes = read_file("plain.fatbin", &size);
    assert_int_equal(sim_image_read(bytes, size, 100, &image), SIM_IMAGE_NO_BINARY);
    assert_int_equal(sim_image_read(bytes, size, 70, &image), SIM_IMAGE_NO_BINARY);
    assert_int_equal(sim_image_read(bytes, size, 89, &image), SIM_IMAGE_OK); /* the one for 80 */
    assert_int_equal(image->sm, 80);
    sim_image_free(image);
    free(bytes);
    bytes = read_file("ptx.fatbin", &size);
    assert_int_equal(sim_image_read(bytes, size, 90, &image), SIM_IMAGE_NO_BINARY);
    free(bytes);
    assert_int_equal(sim_image_read_memory("  .version 8.0\n.target sm_90\n", 90, &image),
                     SIM_IMAGE_NO_BINARY);
    assert_int_equal(
        sim_image_read_memory("certainly not an image, nor PTX, but long enough to be looked at", 90, &image),
        SIM_IMAGE_INVALID);
}

/* Each attempt is on an allocation of exactly that size, so that a sanitizer sees the first byte too far. */
static void try_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    struct sim_image *image = NULL;
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    if (sim_image_read(exact, size, 90, &image) == SIM_IMAGE_OK)
        sim_image_free(image);
    free(exact);
}

static void damage(const char *name)
{
    size_t size;
    uint8_t *bytes = (uint8_t *)read_file(name, &size);
    for (size_t cut = 0; cut < size; cut += cut < 2048 ? 1 : 97)
        try_bytes(bytes, cut);
    srand(4711);
    for (int i = 0; i < 4000; i++) {
        size_t at = (size_t)rand() % size, headers = (size_t)rand() % 512;
        uint8_t *byte = &bytes[i % 2 ? at : headers % size], before = *byte;
        *byte = i % 3 ? (uint8_t)rand() : 0xff;
        try_bytes(bytes, size);
        *byte = before;
    }
    free(bytes);
}

static void test_damaged_images(void **state)
{
    (void)state;
    damage("sm_90.cubin");
    damage("plain.fatbin");
    damage("zstd.fatbin");
    damage("lz4.fatbin");
}

static void test_lz4_blocks(void **state)
{
    static const uint8_t run[] = {0x1f, 'a', 1, 0, 3, 0x10, 'b'}; /* "a", 22 more of it, "b" */
    static const uint8_t far[] = {0x10, 'a', 9, 0};               /* a match from before the start */
    uint8_t out[24];
    (void)state;
    assert_true(sim_lz4_decode(run, sizeof run, out, 24));
    assert_memory_equal(out, "aaaaaaaaaaaaaaaaaaaaaaab", 24);
    assert_false(sim_lz4_decode(run, sizeof run, out, 23));
    assert_false(sim_lz4_decode(run, sizeof run - 1, out, 24));
    assert_false(sim_lz4_decode(far, sizeof far, out, 24));
    assert_false(sim_lz4_decode(run, 0, out, 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_are_ptxas), cmocka_unit_test(test_what_ptxas_does_not_say),
        cmocka_unit_test(test_fatbins),           cmocka_unit_test(test_choice_of_entry),
        cmocka_unit_test(test_damaged_images),    cmocka_unit_test(test_lz4_blocks),
    };
    if (!*directory) {
        puts("SKIP: no nvcc when this was configured, so no images to read");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
