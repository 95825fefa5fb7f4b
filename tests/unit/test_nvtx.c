/*
 * libocctrace-nvtx.so: paths, the stacks of threads, and the reports to CUPTI, through NVTX's tables as the
 * NVTX in a program would hand them over. If NVIDIA's headers are installed, our declarations are compared
 * with them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "injector/nvtx/callbacks.h"
#include "injector/nvtx/nvtx.h"

#ifdef OCC_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#define SAME(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)
SAME(OCC_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(OCC_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(OCC_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(OCC_NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(OCC_NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(OCC_NVTX_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(OCC_NVTX_POP, NVTX_CBID_CORE_RangePop);
SAME(OCC_NVTX_DOMAIN_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(OCC_NVTX_DOMAIN_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(OCC_NVTX_DOMAIN_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(OCC_NVTX_DOMAIN_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(OCC_NVTX_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(OCC_NVTX_DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(OCC_NVTX_TEXT_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(OCC_NVTX_TEXT_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(OCC_NVTX_TEXT_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(offsetof(struct occ_nvtx_event, size), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(struct occ_nvtx_event, message_type), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(struct occ_nvtx_event, message), offsetof(nvtxEventAttributes_t, message));
SAME(sizeof(struct occ_nvtx_event), sizeof(nvtxEventAttributes_t));
SAME(offsetof(struct occ_nvtx_callbacks, get_table),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
#endif

/* ---- an NVTX ---- */

static int (*push_a)(const char *);
static int (*push_w)(const wchar_t *);
static int (*push_ex)(const struct occ_nvtx_event *);
static int (*pop)(void);
static int (*domain_push)(const void *, const struct occ_nvtx_event *);
static int (*domain_pop)(const void *);
static void *(*string_a)(const void *, const char *);
static void *(*domain_a)(const char *);
static void (*unknown)(void);

typedef void (*function)(void);
static function *core[] = {[OCC_NVTX_PUSH_EX] = (function *)&push_ex,
                           [OCC_NVTX_PUSH_A] = (function *)&push_a,
                           [OCC_NVTX_PUSH_W] = (function *)&push_w,
                           [OCC_NVTX_POP] = (function *)&pop,
                           [15] = &unknown};
static function *core2[] = {[OCC_NVTX_DOMAIN_PUSH_EX] = (function *)&domain_push,
                            [OCC_NVTX_DOMAIN_POP] = (function *)&domain_pop,
                            [OCC_NVTX_DOMAIN_STRING_A] = (function *)&string_a,
                            [OCC_NVTX_DOMAIN_CREATE_A] = (function *)&domain_a}; /* an older one: no W */

static int get_table(int module, void (****ret_table)(void), unsigned int *ret_size)
{
    *ret_table = module == OCC_NVTX_MODULE_CORE ? core : core2;
    *ret_size = module == OCC_NVTX_MODULE_CORE ? sizeof core / sizeof *core : sizeof core2 / sizeof *core2;
    return module == OCC_NVTX_MODULE_CORE || module == OCC_NVTX_MODULE_CORE2;
}

static struct occ_nvtx_callbacks callbacks = {sizeof callbacks, get_table};

static const void *get_export_table(uint32_t id)
{
    return id == OCC_NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

/* ---- a CUPTI ---- */

static _Thread_local uint64_t told[8];
static _Thread_local int n_told;

static uint32_t on_push(uint32_t kind, uint64_t id)
{
    assert_int_equal(kind, OCC_CUPTI_EXTERNAL_KIND);
    assert_int_equal(n_told, 0); /* one number at a time */
    told[n_told++] = id;
    return 0;
}

static uint32_t on_pop(uint32_t kind, uint64_t *last)
{
    assert_int_equal(kind, OCC_CUPTI_EXTERNAL_KIND);
    assert_int_equal(n_told, 1);
    *last = told[--n_told];
    return 0;
}

static const struct occ_cupti_external cupti = {.push = on_push, .pop = on_pop};

static const char *path_now(void)
{
    static _Thread_local char text[1024];
    return n_told && occ_nvtx_library.path(told[0], text, sizeof text) ? text : "";
}

/* Each test in a process of its own: ids are never given back. */
static void in_child(void (*test)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (InitializeInjectionNvtx2(get_export_table) != 1)
            _exit(1);
        occ_nvtx_library.attach(&cupti);
        test();
        _exit(n_told == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not: %s (path is \"%s\")\n", __FILE__, __LINE__, #condition,             \
                    path_now());                                                                             \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* ---- tests ---- */

static void nested(void)
{
    EXPECT(push_a("step 17") == 0 && strcmp(path_now(), "step #") == 0);
    uint64_t step = told[0];
    EXPECT(push_a("layer/4") == 1 && strcmp(path_now(), "step #/layer|#") == 0);
    EXPECT(push_w(L"w\u00e4rm \u884c\U0001f680") == 2);
    EXPECT(strcmp(path_now(), "step #/layer|#/w\u00e4rm \u884c\U0001f680") == 0 && pop() == 2);
    EXPECT(push_w((const wchar_t[]){0xd800, 0x7fffffff, 0}) == 2);
    EXPECT(strcmp(path_now(), "step #/layer|#/??") == 0);
    EXPECT(pop() == 2 && pop() == 1 && told[0] == step);
    EXPECT(pop() == 0 && n_told == 0);
    EXPECT(pop() == -1 && n_told == 0);
    EXPECT(push_a("step 18") == 0 && told[0] == step);
    EXPECT(pop() == 0);
    EXPECT(push_a(NULL) == 0 && strcmp(path_now(), "?") == 0 && pop() == 0);
    EXPECT(!unknown);
}

static void domains(void)
{
    void *nccl = domain_a("NCCL"), *other = domain_a("other");
    struct occ_nvtx_event event = {.size = sizeof event, .message_type = OCC_NVTX_TEXT_REGISTERED};
    event.message.registered = string_a(nccl, "ncclAllReduce");
    EXPECT(nccl && other && nccl != other && event.message.registered);
    EXPECT(push_a("train") == 0);
    EXPECT(domain_push(nccl, &event) == 1 && strcmp(path_now(), "train/NCCL:ncclAllReduce") == 0);
    event.message_type = OCC_NVTX_TEXT_ASCII;
    event.message.ascii = "x";
    EXPECT(domain_push(other, &event) == 2);
    EXPECT(domain_pop(nccl) == 1); /* not the innermost, which keeps its path */
    EXPECT(strcmp(path_now(), "train/NCCL:ncclAllReduce/other:x") == 0);
    EXPECT(domain_pop(nccl) == -1);
    EXPECT(domain_pop(other) == 1 && strcmp(path_now(), "train") == 0);
    event.size = 8; /* shorter than the event that we declare */
    EXPECT(push_ex(&event) == 1 && strcmp(path_now(), "train/?") == 0);
    EXPECT(push_ex(NULL) == 2 && pop() == 2 && pop() == 1 && pop() == 0);
}

static void long_and_deep(void)
{
    char name[300], expected[300], text[64];
    memset(name, 'a', sizeof name);
    memcpy(name + OCC_NVTX_NAME_BYTES - 5, "\xc3\xa4", 2); /* the cut is inside a character */
    name[sizeof name - 1] = '\0';
    EXPECT(push_a(name) == 0);
    memset(expected, 'a', OCC_NVTX_NAME_BYTES - 5);
    strcpy(expected + OCC_NVTX_NAME_BYTES - 5, "\u2026");
    EXPECT(strcmp(path_now(), expected) == 0);
    EXPECT(push_a("inner") == 1);
    EXPECT(occ_nvtx_library.path(told[0], text, sizeof text) == 9 &&
           strcmp(text, "\u2026/inner") == 0); /* its end */
    for (int i = 2; i < 200; i++)
        EXPECT(push_a("d") == i);
    for (int i = 199; i >= (int)OCC_NVTX_DEPTH; i--)
        EXPECT(pop() == i && strlen(path_now()) == strlen(expected) + 6 + 2 * (OCC_NVTX_DEPTH - 2));
    for (int i = OCC_NVTX_DEPTH - 1; i >= 2; i--)
        EXPECT(pop() == i && strlen(path_now()) == strlen(expected) + 6 + 2 * ((size_t)i - 2));
    EXPECT(pop() == 1 && strcmp(path_now(), expected) == 0 && pop() == 0);
}

/* A name that just fits is whole; one byte more, of whatever kind, and it says that it is cut. */
static void fitting(void)
{
    wchar_t wide[300];
    char name[OCC_NVTX_NAME_BYTES + 1] = "", digits[300];
    struct occ_nvtx_event event = {.size = sizeof event, .message_type = OCC_NVTX_TEXT_ASCII};
    event.message.ascii = name;
    memset(name, 'a', OCC_NVTX_NAME_BYTES - 1);
    EXPECT(push_a(name) == 0 && strcmp(path_now(), name) == 0 && pop() == 0);
    EXPECT(domain_push(domain_a("d"), &event) == 0 && strncmp(path_now(), "d:aaa", 5) == 0);
    EXPECT(strlen(path_now()) == OCC_NVTX_NAME_BYTES - 1 && strstr(path_now(), "a\u2026"));
    EXPECT(domain_pop(domain_a("d")) == 0);
    for (size_t i = 0; i < 300; i++)
        wide[i] = i < 299 ? 0x884c : 0;
    EXPECT(push_w(wide) == 0 && strlen(path_now()) == OCC_NVTX_NAME_BYTES - 1 && pop() == 0);
    memset(digits, '7', sizeof digits);
    strcpy(digits + 290, "th");
    EXPECT(push_a(digits) == 0 && strcmp(path_now(), "#th") == 0 && pop() == 0);
}

static void many_paths(void)
{
    char name[8];
    for (unsigned n = 0; n < OCC_NVTX_PATHS + 100; n++) {
        (void)snprintf(name, sizeof name, "%c%c%c", 'a' + (int)(n % 20), 'a' + (int)(n / 20 % 20),
                       'a' + (int)(n / 400));
        EXPECT(push_a(name) == 0);
        bool fits = n < OCC_NVTX_PATHS - 1;
        EXPECT((told[0] == OCC_NVTX_OTHER) == !fits);
        EXPECT(strcmp(path_now(), fits ? name : "(other ranges)") == 0);
        EXPECT(fits || (push_a("below") == 1 && told[0] == OCC_NVTX_OTHER && pop() == 1));
        EXPECT(pop() == 0);
    }
    EXPECT(push_a("aaa") == 0 && strcmp(path_now(), "aaa") == 0 && pop() == 0);
}

/* Domains that find no place share one of their own: their pops close no range of the default domain. */
static void many_domains(void)
{
    char name[16];
    struct occ_nvtx_event event = {.size = sizeof event, .message_type = OCC_NVTX_TEXT_ASCII};
    for (unsigned n = 0; n < OCC_NVTX_PATHS; n++) {
        (void)snprintf(name, sizeof name, "%c%c%c", 'a' + (int)(n % 20), 'a' + (int)(n / 20 % 20),
                       'a' + (int)(n / 400));
        EXPECT(push_a(name) == 0 && pop() == 0);
    }
    void *late = domain_a("late"), *later = domain_a("later");
    EXPECT(late && later);
    EXPECT(push_a("aaa") == 0 && strcmp(path_now(), "aaa") == 0);
    EXPECT(domain_pop(late) == -1 && domain_pop(later) == -1);
    EXPECT(strcmp(path_now(), "aaa") == 0);
    event.message.ascii = "baa"; /* known, but not in this domain */
    EXPECT(domain_push(late, &event) == 1 && strcmp(path_now(), "(other ranges)") == 0);
    EXPECT(pop() == 0 && strcmp(path_now(), "(other ranges)") == 0); /* the default domain's only */
    EXPECT(domain_pop(late) == 0 && n_told == 0);
    event.message_type = OCC_NVTX_TEXT_REGISTERED;
    event.message.registered = string_a(late, "a string beyond");
    EXPECT(push_ex(&event) == 0 && pop() == 0);
}

static void attached_late(void)
{
    occ_nvtx_library.attach(NULL);
    EXPECT(push_a("outer") == 0 && n_told == 0);
    EXPECT(push_a("inner") == 1);
    occ_nvtx_library.attach(&cupti);
    EXPECT(pop() == 1 && strcmp(path_now(), "outer") == 0); /* from before it was there */
    EXPECT(push_a("inner") == 1);
    occ_nvtx_library.attach(NULL);
    EXPECT(pop() == 1 && pop() == 0);
    n_told = 0; /* the range that CUPTI still had */
}

static void *work(void *seed)
{
    char name[32], expected[80];
    for (int i = 0; i < 3000; i++) {
        int at = (i * 7 + (int)(intptr_t)seed) % 500;
        (void)snprintf(name, sizeof name, "%c%c", 'a' + at % 26, 'a' + at / 26);
        (void)snprintf(expected, sizeof expected, "thread/%s", name);
        EXPECT(push_a("thread") == 0 && push_a(name) == 1 && strcmp(path_now(), expected) == 0);
        EXPECT(pop() == 1 && pop() == 0);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    for (intptr_t i = 0; i < 4; i++)
        EXPECT(pthread_create(&all[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

static void refused(void)
{
    callbacks.struct_size = 8;
    EXPECT(InitializeInjectionNvtx2(get_export_table) == 0);
    EXPECT(InitializeInjectionNvtx2(NULL) == 0);
    char text[16];
    EXPECT(occ_nvtx_library.path(0, text, sizeof text) == 0 && text[0] == '\0');
    EXPECT(occ_nvtx_library.path(UINT64_MAX, text, sizeof text) == 0);
}

#define TEST(name)                                                                                           \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        in_child(name);                                                                                      \
    }
TEST(nested)
TEST(domains)
TEST(long_and_deep)
TEST(fitting)
TEST(many_paths)
TEST(many_domains)
TEST(attached_late)
TEST(threads)
TEST(refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_long_and_deep), cmocka_unit_test(test_fitting),
        cmocka_unit_test(test_many_domains),  cmocka_unit_test(test_many_paths),
        cmocka_unit_test(test_attached_late), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
