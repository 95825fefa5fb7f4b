/* Pins of kernels: the lock file, its mistakes, and pairs of two builds. */
#include "compare/pins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above */
#include <cmocka.h>

#define FILE_OF(statements) "occq-pins 1\n" statements
#define VALUES              "registers=40 stack=0 spills=- shared=4096 barriers=1 bounds=256"

static void parse(const char *text, struct pins *ret_pins)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (pins_parse("lock", text, strlen(text), ret_pins, &err) != 0)
        fail_msg("%s", err.message);
}

static void refused(const char *text, size_t size, int code, const char *words)
{
    struct pins pins = {0};
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(pins_parse("lock", text, size, &pins, &err), code);
    if (!strstr(err.message, words) || strncmp(err.message, "lock:", 5) != 0)
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_null(pins.list);
}

static char *written(const struct pins *pins)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    pins_write(out, pins);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* ---- the file ---- */

static void test_statements(void **state)
{
    (void)state;
    struct pins pins;
    parse(FILE_OF("# comment\r\n\n"
                  "allow stack b%20b until 2027-01-31 a reason, with words\n"
                  "pin sm_90a " VALUES " b%20b\n"
                  "pin sm_80 registers=92 stack=16 spills=8 shared=0 barriers=- bounds=0 a\n"
                  "launch a 256 512+4096\n"),
          &pins);
    assert_int_equal(pins.n, 2);
    assert_string_equal(pins.list[0].kernel, "a");
    assert_int_equal(pins.list[0].value[PIN_REGISTERS], 92);
    assert_int_equal(pins.list[0].value[PIN_SPILLS], 8);
    assert_int_equal(pins.list[0].value[PIN_BARRIERS], PIN_UNKNOWN);
    assert_int_equal(pins.list[0].line, 6);
    assert_string_equal(pins.list[1].kernel, "b b");
    assert_int_equal(pins.list[1].sm, 90);
    assert_int_equal(pins.list[1].suffix, 'a');
    const struct pin_launches *launches = pins_launches_of(&pins, "a");
    assert_int_equal(launches->n, 2);
    assert_int_equal(launches->list[1].dynamic_bytes, 4096);
    assert_null(pins_launches_of(&pins, "b b"));
    const struct pin_allowance *allowance = pins_allowance_of(&pins, PIN_RULE_STACK, "b b");
    assert_string_equal(allowance->reason, "a reason, with words");
    assert_int_equal(allowance->until_s, 1801353600);
    assert_null(pins_allowance_of(&pins, PIN_RULE_BLOCKS, "b b"));
    assert_null(pins_allowance_of(&pins, PIN_RULE_STACK, "a"));
    pins_free(&pins);
}

/* A written file reads back as the same pins; its order does not depend on the order of its source. */
static void test_writing_is_stable(void **state)
{
    (void)state;
    static const char first[] =
        FILE_OF("pin sm_80 " VALUES " k\npin sm_100f " VALUES " k\npin sm_90 copy=1/2 " VALUES
                " %0A%25\npin sm_90 copy=2/2 registers=41 stack=0 spills=- shared=0 "
                "barriers=1 bounds=0 %0A%25\nlaunch z 64\nlaunch k 128 32+8\n"
                "allow gone z until 2027-12-31 r\nallow blocks k until 2028-02-29 r\n");
    static const char second[] =
        FILE_OF("allow blocks k until 2028-02-29 r\nallow gone z until 2027-12-31 r\n"
                "launch k 128 32+8\nlaunch z 64\npin sm_90 copy=2/2 registers=41 stack=0 "
                "spills=- shared=0 barriers=1 bounds=0 %0A%25\npin sm_100f " VALUES
                " k\npin sm_90 copy=1/2 " VALUES " %0A%25\npin sm_80 " VALUES " k\n");
    struct pins a, b, c;
    parse(first, &a);
    parse(second, &b);
    char *text = written(&a), *other = written(&b);
    assert_string_equal(text, other);
    assert_non_null(strstr(text, " %0A%25\n"));
    parse(text, &c);
    char *again = written(&c);
    assert_string_equal(text, again);
    free(text);
    free(other);
    free(again);
    pins_free(&a);
    pins_free(&b);
    pins_free(&c);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } mistakes[] = {
        {"", "lock:1: not a file of pins"},
        {"pin sm_80 " VALUES " k\n", "lock:1: not a file of pins"},
        {FILE_OF("<<<<<<< HEAD\n"), "lock:2: <<<<<<<: pin, launch or allow is expected here"},
        {FILE_OF("pin sm_80 " VALUES " k\npin sm_80 " VALUES " k\n"),
         "lock:3: the same kernel and architecture as in line 2 (a merge?)"},
        {FILE_OF("pin sm_80 " VALUES
                 " k\npin sm_80 registers=41 stack=0 spills=- shared=0 barriers=1 bounds=0 k\n"),
         "lock:3: the same kernel"},
        {FILE_OF("launch k 128\nlaunch j 64\nlaunch k 256\n"),
         "lock:4: launches of the same kernel as in line 2"},
        {FILE_OF("allow stack k until 2027-01-31 a\nallow stack k until 2028-01-31 b\n"),
         "an allowance of the same"},
        {FILE_OF("pin sm_80 registers=40 stack=0 k\n"), "lacks a resource"},
        {FILE_OF("pin sm_80 " VALUES "\n"), "lacks a resource or its kernel"},
        {FILE_OF("pin sm_80 registers=40 " VALUES " k\n"), "registers=40: not a resource"},
        {FILE_OF("pin sm_80 registers=256 stack=0 spills=- shared=0 barriers=1 bounds=0 k\n"),
         "registers=256"},
        {FILE_OF("pin sm_80 registers=-1 stack=0 spills=- shared=0 barriers=1 bounds=0 k\n"), "registers=-1"},
        {FILE_OF("pin sm_80 copy=3/2 " VALUES " k\n"), "copy=3"},
        {FILE_OF("pin sm_80 colour=3 " VALUES " k\n"), "colour=3"},
        {FILE_OF("pin 80 " VALUES " k\n"), "80: an architecture is expected"},
        {FILE_OF("pin sm_80x " VALUES " k\n"), "an architecture is expected"},
        {FILE_OF("pin sm_ " VALUES " k\n"), "an architecture is expected"},
        {FILE_OF("pin sm_80 " VALUES " k%0\n"), "not a kernel's name"},
        {FILE_OF("pin sm_80 " VALUES " k%41\n"), "not a kernel's name"},
        {FILE_OF("pin sm_80 " VALUES " k%00\n"), "not a kernel's name"},
        {FILE_OF("pin sm_80 " VALUES " k%_c\n"), "not a kernel's name"},
        {FILE_OF("pin sm_80 " VALUES " k\xc3\xa4\n"), "not a kernel's name"},
        {FILE_OF("launch k\n"), "block sizes are expected"},
        {FILE_OF("launch k 1025\n"), "block sizes are expected"},
        {FILE_OF("launch k 0\n"), "block sizes are expected"},
        {FILE_OF("launch k 1 2 3 4 5 6 7 8 9\n"), "block sizes are expected"},
        {FILE_OF("launch k 64+\n"), "block sizes are expected"},
        {FILE_OF("allow speed k until 2027-01-31 r\n"), "speed: a rule is expected"},
        {FILE_OF("allow stack k until 2027-02-30 r\n"), "a day is expected"},
        {FILE_OF("allow stack k until 2027-1-3 r\n"), "a day is expected"},
        {FILE_OF("allow stack k 2027-01-31 r\n"), "a day is expected"},
        {FILE_OF("allow stack k until 2027-01-31\n"), "a reason"},
        {FILE_OF("allow stack\n"), "the kernel's name is missing"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        refused(mistakes[i].text, strlen(mistakes[i].text), OCC_E_INVALID, mistakes[i].words);
    refused("occq-pins 2\n", 12, OCC_E_VERSION, "lock:1: pins of another version");
    refused("occq-pins 1\n\0\n", 14, OCC_E_INVALID, "lock:2: a line of up to");
}

/* ---- builds ---- */

static void add(struct pins *pins, const char *kernel, const char *name, uint32_t sm, uint32_t registers)
{
    const struct pin pin = {.kernel = kernel, .name = name, .sm = sm, .value = {[PIN_REGISTERS] = registers}};
    assert_int_equal(pins_add(pins, &pin, NULL), 0);
}

/* The registers of both sides of pair i; 0: the side lacks the kernel. */
static void assert_pair(const struct pin_pairs *pairs, size_t i, uint32_t before, uint32_t after)
{
    const struct pin_pair *pair = &pairs->list[i];
    assert_in_range(i, 0, pairs->n - 1);
    assert_int_equal(pair->before ? pair->before->value[PIN_REGISTERS] : 0, before);
    assert_int_equal(pair->after ? pair->after->value[PIN_REGISTERS] : 0, after);
}

static void test_equal_copies_are_one(void **state)
{
    (void)state;
    struct pins pins = {0};
    add(&pins, "k", NULL, 80, 32);
    add(&pins, "k", NULL, 80, 16);
    add(&pins, "k", NULL, 80, 32);
    add(&pins, "k", NULL, 75, 32);
    pins_sort(&pins);
    assert_int_equal(pins.n, 3);
    assert_int_equal(pins.list[0].copies, 1);
    assert_int_equal(pins.list[1].copies, 2);
    assert_int_equal(pins.list[1].value[PIN_REGISTERS], 16);
    assert_int_equal(pins.list[2].copy, 2);
    pins_free(&pins);
}

static void test_pairs(void **state)
{
    (void)state;
    struct pins before = {0}, after = {0};
    struct pin_pairs pairs;
    add(&before, "a", NULL, 80, 10);
    add(&before, "a", NULL, 90, 11);
    add(&before, "c", NULL, 80, 30);
    add(&before, "d", NULL, 80, 40); /* copies: one stays, one grows */
    add(&before, "d", NULL, 80, 42);
    add(&before, "gone", NULL, 80, 50);
    add(&after, "a", NULL, 80, 12);
    add(&after, "b", NULL, 80, 20);
    add(&after, "c", NULL, 80, 30);
    add(&after, "d", NULL, 80, 42);
    add(&after, "d", NULL, 80, 48);
    pins_sort(&before);
    pins_sort(&after);
    assert_int_equal(pins_match(&before, &after, &pairs, NULL), 0);
    assert_int_equal(pairs.n, 7);
    assert_pair(&pairs, 0, 10, 12);
    assert_pair(&pairs, 1, 11, 0);
    assert_pair(&pairs, 2, 0, 20);
    assert_pair(&pairs, 3, 30, 30);
    assert_pair(&pairs, 4, 42, 42);
    assert_pair(&pairs, 5, 42, 48);
    assert_pair(&pairs, 6, 50, 0);
    assert_true(pin_is_same(pairs.list[3].before, pairs.list[3].after));
    assert_false(pin_is_same(pairs.list[0].before, pairs.list[0].after));
    free(pairs.list);
    pins_free(&before);
    pins_free(&after);
}

/* The pair that pins.h promises, by trying all copies. */
static const struct pin *expected_partner(const struct pins *before, const struct pin *pin, size_t place)
{
    for (size_t i = 0; i < before->n; i++)
        if (pin_is_same(&before->list[i], pin))
            return &before->list[i];
    return &before->list[place < before->n ? place : before->n - 1];
}

/* Small values and unknown resources, so that many copies are equal to several others. */
static void add_copies(struct pins *pins, uint32_t *seed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pin pin = {.kernel = "k", .sm = 80};
        for (int r = 0; r < PIN_RESOURCE_COUNT; r++) {
            *seed = *seed * 1664525 + 1013904223;
            pin.value[r] = *seed >> 28 == 0 ? PIN_UNKNOWN : (*seed >> 24) % 3;
        }
        assert_int_equal(pins_add(pins, &pin, NULL), 0);
    }
    pins_sort(pins);
}

static void test_copies_have_the_first_equal_copy(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (size_t n = 1; n < 200; n += 33) {
        struct pins before = {0}, after = {0};
        struct pin_pairs pairs;
        add_copies(&before, &seed, n);
        add_copies(&after, &seed, 200 - n);
        assert_int_equal(pins_match(&before, &after, &pairs, NULL), 0);
        assert_int_equal(pairs.n, after.n);
        for (size_t i = 0; i < pairs.n; i++) {
            assert_ptr_equal(pairs.list[i].after, &after.list[i]);
            assert_ptr_equal(pairs.list[i].before, expected_partner(&before, &after.list[i], i));
        }
        free(pairs.list);
        pins_free(&before);
        pins_free(&after);
    }
}

/* Hashes and parameters change with a build; a name that is not unique in that form is no evidence. */
static void test_pairs_of_changed_names(void **state)
{
    (void)state;
    struct pins before = {0}, after = {0};
    struct pin_pairs pairs;
    add(&before, "h1", "_INTERNAL_0a1b2c3d_4_a_cu_11223344::k(int)", 80, 10);
    add(&before, "p1", "void gemm<(type)4, 2>(float*, int)", 80, 20);
    add(&before, "q1", "void copy<4>(int)", 80, 30);
    add(&before, "q2", "void copy<4>(long)", 80, 31);
    add(&after, "h2", "_INTERNAL_99887766_4_a_cu_aabbccdd::k(int)", 80, 12);
    add(&after, "p2", "void gemm<(type)4, 2>(float*, long, void (*)(int))", 80, 22);
    add(&after, "q3", "void copy<4>(short)", 80, 32);
    pins_sort(&before);
    pins_sort(&after);
    assert_int_equal(pins_match(&before, &after, &pairs, NULL), 0);
    assert_int_equal(pairs.n, 5);
    assert_pair(&pairs, 0, 10, 12);
    assert_pair(&pairs, 1, 20, 22);
    assert_pair(&pairs, 2, 30, 0);
    assert_pair(&pairs, 3, 31, 0);
    assert_pair(&pairs, 4, 0, 32);
    free(pairs.list);
    pins_free(&before);
    pins_free(&after);
}

static void test_launches_of_a_kernel(void **state)
{
    (void)state;
    struct pins pins = {0};
    for (uint32_t threads = 10; threads > 0; threads--)
        assert_int_equal(pins_add_launch(&pins, "b", (struct pin_launch){32 * threads, 0}, NULL), 0);
    assert_int_equal(pins_add_launch(&pins, "a", (struct pin_launch){64, 8}, NULL), 0);
    assert_int_equal(pins_add_launch(&pins, "a", (struct pin_launch){64, 8}, NULL), 0);
    assert_int_equal(pins_add_launch(&pins, "b", (struct pin_launch){320, 0}, NULL), 0);
    pins_sort_statements(&pins);
    assert_int_equal(pins.n_launches, 2);
    assert_int_equal(pins_launches_of(&pins, "a")->n, 1);
    assert_int_equal(pins_launches_of(&pins, "b")->n, PIN_LAUNCHES);
    assert_int_equal(pins_launches_of(&pins, "b")->list[7].threads, 320);
    pins_free(&pins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_writing_is_stable),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_equal_copies_are_one),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_copies_have_the_first_equal_copy),
        cmocka_unit_test(test_pairs_of_changed_names),
        cmocka_unit_test(test_launches_of_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
