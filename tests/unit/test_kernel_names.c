/* Names that tell kernels apart: the shown parts of made-up names, names of PyTorch and hostile names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names/demangle.h"
#include "names/kernel_names.h"

enum { KERNELS_MAX = 512 };

struct kernels {
    struct occ_kernel_name kernels[KERNELS_MAX];
    size_t n;
};

static void add(struct kernels *all, const char *demangled)
{
    const char *begin = NULL, *end = NULL;
    occ_demangled_base(demangled, &begin, &end);
    assert_true(all->n < KERNELS_MAX);
    all->kernels[all->n] = (struct occ_kernel_name){.id = (int64_t)all->n + 1,
                                                    .short_name = strndup(begin, (size_t)(end - begin)),
                                                    .demangled = strdup(demangled)};
    all->n++;
}

static void release(struct kernels *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free((char *)(uintptr_t)all->kernels[i].short_name);
        free((char *)(uintptr_t)all->kernels[i].demangled);
        free(all->kernels[i].name);
    }
}

static void assert_all_different(const struct kernels *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(all->kernels[i].name, all->kernels[k].name);
}

/* Expects that each name of a pair is shown as the pair's second text; NULL ends the pairs. */
static void check(const char *const (*cases)[2])
{
    struct kernels all = {.n = 0};
    for (size_t i = 0; cases[i][0]; i++)
        add(&all, cases[i][0]);
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    for (size_t i = 0; i < all.n; i++)
        assert_string_equal(all.kernels[i].name, cases[i][1]);
    assert_all_different(&all);
    release(&all);
}

static void test_alone(void **state)
{
    (void)state;
    check((const char *const[][2]){{"void ns::softmax<float, 4>(float*)", "softmax"},
                                   {"ns::layer_norm(int)", "layer_norm"},
                                   {NULL, NULL}});
}

/* A ">" inside parentheses compares. */
static void test_function_behind_a_condition(void **state)
{
    (void)state;
    check((const char *const[][2]){
        {"std::enable_if<(((8)>(0)))&&ns::exists, void>::type ns::rms_norm<float, 8>(float*)", "rms_norm"},
        {"std::enable_if<!(false), void>::type ns::kernel<int>(int)", "kernel"},
        {NULL, NULL}});
}

static void test_template_arguments(void **state)
{
    (void)state;
    check((const char *const[][2]){{"void matmul<64, 64, 8>(float*)", "matmul<64,64>"},
                                   {"void matmul<64, 32, 8>(float*)", "matmul<64,32>"},
                                   {"void matmul<32, 32, 8>(float*)", "matmul<32,32>"},
                                   {"void f<float, true, 3>(int)", "f<\u2026,3>"},
                                   {"void f<float, true, 4>(int)", "f<\u2026,4>"},
                                   {NULL, NULL}});
    check((const char *const[][2]){
        {"void at::native::v<4, at::native::FillFunctor<float>, at::A<char*, 1> >(int)",
         "v<4,FillFunctor<float>>"},
        {"void at::native::v<4, at::native::FillFunctor<int>, at::A<char*, 1> >(int)",
         "v<4,FillFunctor<int>>"},
        {"void at::native::v<2, at::native::AddFunctor<int>, at::A<char*, 1> >(int)", "v<2,AddFunctor<int>>"},
        {NULL, NULL}});
}

static void test_identifiers(void **state)
{
    (void)state;
    check((const char *const[][2]){
        {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_s1688gemm_64x64_32x6_nn_align8>(int)",
         "Kernel2<\u202664x64_32x6_nn\u2026>"},
        {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_s1688gemm_128x64_32x6_nn_align8>(int)",
         "Kernel2<\u2026128x64_32x6_nn\u2026>"},
        {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_s1688gemm_64x64_16x4_tn_align8>(int)",
         "Kernel2<\u202664x64_16x4_tn\u2026>"},
        {NULL, NULL}});
}

#define LAMBDA(outer, n, type)                                                                               \
    "void at::v<4, at::native::" outer "(at::Iterator&)::{lambda()#" n                                       \
    "}::operator()() const::{lambda(" type ")#1}>(int)"

static void test_lambdas(void **state)
{
    (void)state;
    check((const char *const[][2]){
        {LAMBDA("log_kernel", "2", "double"), "v<\u2026,log_kernel\u2026{lambda(double)#1}>"},
        {LAMBDA("log_kernel", "4", "float"), "v<\u2026,log_kernel\u2026{lambda(float)#1}>"},
        {LAMBDA("exp_kernel", "4", "float"), "v<\u2026,exp_kernel<\u2026>>"},
        {NULL, NULL}});
}

static void test_parameters_and_scopes(void **state)
{
    (void)state;
    check((const char *const[][2]){{"scale(float*, int)", "scale(float*)"},
                                   {"scale(double*, int)", "scale(double*)"},
                                   {"one::copy(int)", "one::copy"},
                                   {"two::copy(int)", "two::copy"},
                                   {NULL, NULL}});
}

/* Kernels with equal names get their ids as numbers, and so does a name that imitates such a number. */
static void test_same_names(void **state)
{
    (void)state;
    check((const char *const[][2]){
        {"same(int)", "same #1"}, {"same(int)", "same #2"}, {"same #1", "#1"}, {NULL, NULL}});
    struct occ_kernel_name hostile[] = {{.id = 7, .short_name = "k", .demangled = "k"},
                                        {.id = 8, .short_name = "k", .demangled = "k"},
                                        {.id = 9, .short_name = "k #7", .demangled = "k #7"}};
    assert_int_equal(occ_kernel_names_distinguish(hostile, 3), 0);
    assert_string_equal(hostile[0].name, "k #7");
    assert_string_equal(hostile[2].name, "k #7 #9");
    for (size_t i = 0; i < 3; i++)
        free(hostile[i].name);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const patterns[] = {"k<",    "k<>", "k<,,,>",    "k(((",   "k)>]}",
                                           "k::::", "::",  "k<a<b<",    "k<\xff", "k<\xe2\x80",
                                           "",      " ",   "k<,>(,)::,"};
    struct kernels all = {.n = 0};
    char deep[4000];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        add(&all, patterns[i]);
    for (size_t i = 0; i < 3; i++) { /* brackets a thousand deep, that differ at the bottom */
        memset(deep, 0, sizeof deep);
        for (size_t k = 0; k < 1000; k++)
            memcpy(deep + 2 * k, "k<", 2);
        deep[2000] = (char)('0' + i);
        memset(deep + 2001, '>', 1000);
        add(&all, deep);
    }
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    assert_all_different(&all);
    for (size_t i = 0; i < all.n; i++)
        assert_true(strlen(all.kernels[i].name) <= 512);
    release(&all);
    assert_int_equal(occ_kernel_names_distinguish(NULL, 0), 0);
}

/* PyTorch's kernels get different names of readable length, in any order of the kernels. */
static void test_pytorch(void **state)
{
    (void)state;
    struct kernels all = {.n = 0}, reversed = {.n = 0};
    char line[8192];
    size_t bytes = 0;
    FILE *file = fopen(OCC_NAMES_FILE, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        add(&all, line);
    }
    assert_int_equal(fclose(file), 0);
    assert_true(all.n > 250);
    for (size_t i = all.n; i-- > 0;)
        add(&reversed, all.kernels[i].demangled);
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    assert_int_equal(occ_kernel_names_distinguish(reversed.kernels, all.n), 0);
    assert_all_different(&all);
    for (size_t i = 0; i < all.n; i++) {
        size_t length = strlen(all.kernels[i].name);
        assert_string_equal(all.kernels[i].name, reversed.kernels[all.n - 1 - i].name);
        assert_null(strstr(all.kernels[i].name, " #"));
        bytes += length;
    }
    assert_true(bytes / all.n < 45);
    release(&all);
    release(&reversed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_function_behind_a_condition),
        cmocka_unit_test(test_template_arguments),
        cmocka_unit_test(test_identifiers),
        cmocka_unit_test(test_lambdas),
        cmocka_unit_test(test_parameters_and_scopes),
        cmocka_unit_test(test_same_names),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
