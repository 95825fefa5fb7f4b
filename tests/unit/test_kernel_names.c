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
        free(all->kernels[i].words);
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
    assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
    release(&all);
    assert_int_equal(occ_kernel_names_distinguish(NULL, 0), 0);
}

/* Adds the names of a file: lines, of which the last field is a name; "#" begins a comment. */
static void read_names(const char *path, struct kernels *all)
{
    char line[8192];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *tab = strrchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#' && all->n < KERNELS_MAX)
            add(all, tab ? tab + 1 : line);
    }
    assert_int_equal(fclose(file), 0);
}

/* PyTorch's kernels get different names of readable length, in any order of the kernels. */
static void test_pytorch(void **state)
{
    (void)state;
    struct kernels all = {.n = 0}, reversed = {.n = 0};
    size_t bytes = 0;
    read_names(OCC_NAMES_FILE, &all);
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

/* ---- words ---- */

/* Expects each name's words; NULL as the second text: it has none. */
static void check_words(const char *const (*cases)[2])
{
    struct kernels all = {.n = 0};
    for (size_t i = 0; cases[i][0]; i++)
        add(&all, cases[i][0]);
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
    for (size_t i = 0; i < all.n; i++) {
        if (cases[i][1])
            assert_string_equal(all.kernels[i].words, cases[i][1]);
        else
            assert_null(all.kernels[i].words);
    }
    release(&all);
}

/* Kernels of one family get the words of their names in which they differ, and else their number. */
static void test_words(void **state)
{
    (void)state;
    check_words((const char *const[][2]){
        {"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut",
         "bmm MxE4m3 128x16"},
        {"matmul(float*)", NULL},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(P)",
         "GEMM 64x64 align1 32x4"},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align1>(P)",
         "GEMM 64x64 align1 32x6 nn"},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1>(P)",
         "GEMM 64x64 align1 tn"},
        {"volta_sgemm_64x64_nn", "SGEMM 64x64"},
        {"void cub::DeviceScanKernel<int>(int*)", "CUB scan int"},
        {"void cub::DeviceScanInitKernel<long>(long)", "CUB scan Init"},
        {"void softmax_warp_forward<float, 4>(float*)", "PyTorch softmax 4 #9"},
        {"void softmax_warp_forward<float, 4>(float*)", "PyTorch softmax 4 #10"},
        {"void softmax_warp_forward<float, 8>(float*)", "PyTorch softmax 8"},
        {NULL, NULL}});
}

/* A name that imitates words makes the number of the kernel with these words necessary. */
static void test_imitated_words(void **state)
{
    (void)state;
    struct kernels all = {.n = 0};
    const char *const names[] = {"volta_sgemm_64x64_nn", "SGEMM 64x64", "SGEMM 64x64 #1"};
    for (size_t i = 0; i < 3; i++)
        all.kernels[all.n++] = (struct occ_kernel_name){
            .id = (int64_t)i + 1, .short_name = strdup(names[i]), .demangled = strdup(names[i])};
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
    assert_string_equal(all.kernels[0].words, "SGEMM 64x64 #1");
    for (size_t i = 0; i < 3; i++)
        assert_string_not_equal(all.kernels[0].words, all.kernels[i].name);
    release(&all);
}

/* No words are equal to other words or to a name, and the order of the kernels does not matter. */
static void assert_words_tell_apart(const struct kernels *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->n && all->kernels[i].words; k++) {
            assert_string_not_equal(all->kernels[i].words, all->kernels[k].name);
            if (k != i && all->kernels[k].words)
                assert_string_not_equal(all->kernels[i].words, all->kernels[k].words);
        }
}

static void test_words_of_recordings(void **state)
{
    static const char *const files[] = {OCC_NAMES_FILE, OCC_OWNERS_FILE};
    (void)state;
    for (size_t file = 0; file < 2; file++) {
        struct kernels all = {.n = 0}, reversed = {.n = 0};
        read_names(files[file], &all);
        for (size_t i = all.n; i-- > 0;)
            add(&reversed, all.kernels[i].demangled);
        for (size_t i = 0; i < all.n; i++)
            reversed.kernels[i].id = (int64_t)(all.n - i);
        assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
        assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
        assert_int_equal(occ_kernel_names_distinguish(reversed.kernels, all.n), 0);
        assert_int_equal(occ_kernel_names_describe(reversed.kernels, all.n), 0);
        assert_words_tell_apart(&all);
        size_t numbered = 0, with_words = 0;
        for (size_t i = 0; i < all.n; i++) {
            const char *words = all.kernels[i].words, *other = reversed.kernels[all.n - 1 - i].words;
            assert_true(!words == !other && (!words || strcmp(words, other) == 0));
            with_words += words != NULL;
            numbered += words && strstr(words, " #");
            assert_true(!words || strchr(words, ' '));
        }
        assert_true(with_words > 200);
        assert_true(numbered * 8 < with_words);
        release(&all);
        release(&reversed);
    }
}

/* Words of a kernel never are those of another one after the history has grown: a user keeps them in rules.
 */
static void test_words_of_growing_histories(void **state)
{
    static const char *const files[] = {OCC_NAMES_FILE, OCC_OWNERS_FILE};
    (void)state;
    for (size_t file = 0; file < 2; file++)
        for (size_t part = 1; part < 8; part++) {
            struct kernels all = {.n = 0}, first = {.n = 0};
            read_names(files[file], &all);
            for (size_t i = 0; i < all.n * part / 8; i++)
                add(&first, all.kernels[i * 7 % all.n].demangled);
            for (size_t i = 0; i < first.n; i++)
                first.kernels[i].id = all.kernels[i * 7 % all.n].id;
            assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
            assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
            assert_int_equal(occ_kernel_names_distinguish(first.kernels, first.n), 0);
            assert_int_equal(occ_kernel_names_describe(first.kernels, first.n), 0);
            for (size_t i = 0; i < first.n; i++)
                for (size_t k = 0; k < all.n; k++)
                    if (first.kernels[i].words && all.kernels[k].words &&
                        strcmp(first.kernels[i].demangled, all.kernels[k].demangled) != 0)
                        assert_string_not_equal(first.kernels[i].words, all.kernels[k].words);
            release(&all);
            release(&first);
        }
}

/* A family of more kernels than a set has bits, and names without words. */
static void test_many_words(void **state)
{
    enum { MANY = 200 };
    struct kernels all = {.n = 0};
    char name[64];
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "volta_sgemm_64x64_v%zu", i);
        add(&all, name);
    }
    for (size_t i = 0; i < 3; i++)
        add(&all, "void cub::(((<<<");
    assert_int_equal(occ_kernel_names_distinguish(all.kernels, all.n), 0);
    assert_int_equal(occ_kernel_names_describe(all.kernels, all.n), 0);
    assert_words_tell_apart(&all);
    assert_string_equal(all.kernels[MANY - 1].words, "SGEMM 64x64 #200");
    release(&all);
    assert_int_equal(occ_kernel_names_describe(NULL, 0), 0);
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
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_imitated_words),
        cmocka_unit_test(test_words_of_recordings),
        cmocka_unit_test(test_words_of_growing_histories),
        cmocka_unit_test(test_many_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
