/*
 * The reader of `ptxas -v`: the forms of older and newer toolkits, other text in between, and text with wrong
 * contents. test_image.c reads real output of the installed toolkit.
 */
#include "image/ptxas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above */
#include <cmocka.h>

#define ENTRY      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
#define USED       "ptxas info    : Used 8 registers\n"
#define PROPERTIES "ptxas info    : Function properties for k\n"

/* Reads a copy in an allocation of exactly this size, so that a sanitizer sees an access beyond its end. */
static int read_exact(const char *text, size_t size, struct occ_ptxas **ret, struct occ_image_error *err)
{
    char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, text, size);
    int code = occ_ptxas_read(exact, size, ret, err);
    free(exact);
    return code;
}

static struct occ_ptxas *read_text(const char *text)
{
    struct occ_ptxas *report = NULL;
    struct occ_image_error err = {0};
    if (read_exact(text, strlen(text), &report, &err))
        fail_msg("%s", err.message);
    return report;
}

static const char cuda13[] =
    "ptxas info    : 48 bytes gmem, 64 bytes cmem[3], 16 bytes cmem[4]\n"
    "ptxas info    : Compiling entry function '_Z5localILi200EEvPfi' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z5localILi200EEvPfi\n"
    "    800 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 64 registers, used 3 barriers, 800 bytes cumulative stack size, 8192 bytes smem, "
    "364 bytes cmem[0]\n"
    "ptxas info    : Compile time = 30.317 ms\n"
    "make[1]: Leaving directory 'x'\n"
    "ptxas info    : Compiling entry function 'plain' for 'sm_100f'\n"
    "ptxas info    : Function properties for plain\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 12 registers, used 0 barriers, 380 bytes cmem[0]\n";

static void test_newest_form(void **state)
{
    (void)state;
    struct occ_ptxas *report = read_text(cuda13);
    assert_int_equal(report->count, 2);
    const struct occ_ptxas_kernel *k = &report->kernels[0];
    assert_string_equal(k->name, "_Z5localILi200EEvPfi");
    assert_int_equal(k->sm, 90);
    assert_int_equal(k->suffix, 'a');
    assert_int_equal(k->registers, 64);
    assert_true(k->has_barriers);
    assert_int_equal(k->barriers, 3);
    assert_int_equal(k->static_smem_bytes, 8192);
    assert_true(k->has_stack);
    assert_int_equal(k->stack_bytes, 800);
    assert_int_equal(k->spill_store_bytes, 12);
    assert_int_equal(k->spill_load_bytes, 16);
    assert_int_equal(k->line, 2);
    assert_string_equal(report->kernels[1].name, "plain");
    assert_int_equal(report->kernels[1].sm, 100);
    assert_int_equal(report->kernels[1].suffix, 'f');
    assert_int_equal(report->kernels[1].static_smem_bytes, 0);
    occ_ptxas_free(report);
}

static void test_older_forms(void **state)
{
    (void)state;
    struct occ_ptxas *report =
        read_text("ptxas info    : Compiling entry function '_Z3addPf' for 'sm_13'\r\n"
                  "ptxas info    : Used 4 registers, 60+56 bytes lmem, 44+40 bytes smem, 20 bytes cmem[1], "
                  "12 bytes cmem[14]\r\n"
                  "ptxas info    : Compiling entry function 'late' for 'sm_52'\n"
                  "ptxas info    : Function properties for late\n"
                  "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
                  "ptxas info    : Used 32 registers, 4096 bytes smem, 360 bytes cmem[0]");
    assert_int_equal(report->count, 2);
    assert_int_equal(report->kernels[0].registers, 4);
    assert_int_equal(report->kernels[0].static_smem_bytes, 84);
    assert_false(report->kernels[0].has_barriers);
    assert_false(report->kernels[0].has_stack);
    assert_int_equal(report->kernels[1].registers, 32);
    assert_int_equal(report->kernels[1].static_smem_bytes, 4096);
    assert_int_equal(report->kernels[1].stack_bytes, 8);
    occ_ptxas_free(report);
}

/* The output of -dc has the properties of device functions between the kernel's properties and its registers.
 */
static void test_other_functions(void **state)
{
    (void)state;
    struct occ_ptxas *report =
        read_text("ptxas info    : Function properties for _Z6helperv\n"
                  "    24 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
                  "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
                  "ptxas info    : Function properties for k\n"
                  "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                  "ptxas info    : Function properties for k2\n"
                  "    99 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads\n"
                  "ptxas info    : Used 20 registers, used 1 barriers\n");
    assert_int_equal(report->count, 1);
    assert_int_equal(report->kernels[0].stack_bytes, 16);
    assert_int_equal(report->kernels[0].spill_store_bytes, 0);
    occ_ptxas_free(report);
}

/* A line of properties that follows the kernel's registers is ignored. */
static void test_properties_behind_registers(void **state)
{
    (void)state;
    struct occ_ptxas *report =
        read_text(ENTRY PROPERTIES USED "    9 bytes stack frame, 9 bytes spill stores\n");
    assert_int_equal(report->count, 1);
    assert_false(report->kernels[0].has_stack);
    assert_int_equal(report->kernels[0].stack_bytes, 0);
    occ_ptxas_free(report);
}

static void test_nothing_about_kernels(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "nvcc warning : something\n", "Used 3 registers\n",
                                        "  12 bytes stack frame, 9 bytes spill stores\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct occ_ptxas *report = read_text(texts[i]);
        assert_int_equal(report->count, 0);
        occ_ptxas_free(report);
    }
    occ_ptxas_free(NULL);
}

static void test_text_that_lies(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {USED, "line 1: registers without a kernel"},
        {ENTRY USED USED, "line 3: registers without a kernel"},
        {ENTRY, "line 1: kernel k has no \"Used ... registers\" line"},
        {ENTRY ENTRY USED, "line 1: kernel k has no"},
        {"ptxas info : Compiling entry function '' for 'sm_80'\n", "line 1: no \"'kernel' for"},
        {"ptxas info : Compiling entry function 'k' for 'sm_'\n", "line 1: no \"'kernel' for"},
        {"ptxas info : Compiling entry function 'k' for 'sm_80x'\n", "line 1: no \"'kernel' for"},
        {"ptxas info : Compiling entry function 'k' for 'sm_99999999999'\n", "line 1: no"},
        {"ptxas info : Compiling entry function 'k\n", "line 1: no"},
        {ENTRY "ptxas info : Used 256 registers\n", "line 2: \"256 registers\" is not a number"},
        {ENTRY "ptxas info : Used 99999999999999999999999 registers\n",
         "is not a number of registers up to 255"},
        {ENTRY "ptxas info : Used -4 registers\n", "\"-4 registers\" is not"},
        {ENTRY "ptxas info : Used registers\n", "has no registers"},
        {ENTRY "ptxas info : Used 0 registers\n", "has no registers"},
        {ENTRY "ptxas info : Used 8 registers, used 17 barriers\n", "17 barriers"},
        {ENTRY "ptxas info : Used 8 registers, 9999999 bytes smem\n", "9999999 bytes smem"},
        {ENTRY "ptxas info : Used 8 registers, 262144+1 bytes smem\n", "262144+1 bytes smem"},
        {ENTRY "ptxas info : Used 8 registers, 12x bytes smem\n", "12x bytes smem"},
        {ENTRY PROPERTIES " 9999999 bytes stack frame\n" USED, "line 3: \"9999999 bytes stack frame\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_ptxas *report = NULL;
        struct occ_image_error err = {0};
        int code = read_exact(cases[i].text, strlen(cases[i].text), &report, &err);
        if (code != OCC_IMAGE_E_INVALID || !strstr(err.message, cases[i].words))
            fail_msg("%zu: %d \"%s\" does not say \"%s\"", i, code, err.message, cases[i].words);
        assert_null(report);
    }
}

static void test_long_lines(void **state)
{
    (void)state;
    size_t size = OCC_PTXAS_MAX_LINE + 100;
    char *text = malloc(size);
    struct occ_ptxas *report = NULL;
    struct occ_image_error err = {0};
    assert_non_null(text);
    memset(text, 'x', size);
    assert_int_equal(read_exact(text, size, &report, &err), 0); /* a line of another program */
    occ_ptxas_free(report);
    report = NULL;
    memcpy(text, "ptxas info", 10);
    assert_int_equal(read_exact(text, size, &report, &err), OCC_IMAGE_E_INVALID);
    assert_non_null(strstr(err.message, "line 1: 65636 bytes"));
    free(text);
    assert_int_equal(occ_ptxas_read(NULL, 0, &report, &err), OCC_IMAGE_E_INVALID);
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof cuda13; size++) {
        struct occ_ptxas *report = NULL;
        struct occ_image_error err = {0};
        if (read_exact(cuda13, size, &report, &err))
            assert_int_not_equal(err.message[0], 0);
        else
            assert_true(report->count <= 2);
        occ_ptxas_free(report);
    }
}

static void test_every_byte_spoiled(void **state)
{
    (void)state;
    static const char values[] = {0, ' ', ',', '\'', '\n', '9', (char)0xff};
    char text[sizeof cuda13];
    for (size_t at = 0; at + 1 < sizeof cuda13; at++) {
        for (size_t v = 0; v < sizeof values; v++) {
            struct occ_ptxas *report = NULL;
            memcpy(text, cuda13, sizeof text);
            text[at] = values[v];
            if (!read_exact(text, sizeof text - 1, &report, NULL)) {
                for (size_t i = 0; i < report->count; i++)
                    assert_true(report->kernels[i].registers && report->kernels[i].registers <= 255);
            }
            occ_ptxas_free(report);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_form),
        cmocka_unit_test(test_older_forms),
        cmocka_unit_test(test_other_functions),
        cmocka_unit_test(test_nothing_about_kernels),
        cmocka_unit_test(test_properties_behind_registers),
        cmocka_unit_test(test_text_that_lies),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_every_byte_spoiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
