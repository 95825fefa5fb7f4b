/* injector/env, coexist, fds, process: the guest's view of its surroundings. */
#include "ring_samples.h"
#include "injector/coexist.h"
#include "injector/env.h"
#include "injector/fds.h"
#include "injector/process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <cmocka.h>

/* A fake environment: one variable at a time, or a list. */
static const char *const *variables; /* name, value, name, value, NULL */

static char *get(const char *name)
{
    for (const char *const *v = variables; v && v[0]; v += 2)
        if (strcmp(v[0], name) == 0)
            return (char *)(uintptr_t)v[1];
    return NULL;
}

static struct occ_env env_of(const char *name, const char *value)
{
    const char *const list[] = {name, value, NULL};
    struct occ_env env;
    variables = list;
    occ_env_read(&env, get);
    variables = NULL;
    return env;
}

static void test_defaults(void **state)
{
    (void)state;
    struct occ_env env = env_of("PATH", "/bin");
    assert_false(env.disabled);
    assert_string_equal(env.socket, "");
    assert_int_equal(env.ring_slots, OCC_RING_DEFAULT_SLOTS);
    assert_int_equal(env.buffers, OCC_POOL_DEFAULT_BUFFERS);
    assert_int_equal(env.buffer_bytes, OCC_POOL_DEFAULT_BYTES);
    assert_int_equal(env.rejected, 0);
}

static void test_valid_values(void **state)
{
    (void)state;
    assert_true(env_of("OCCTRACE_DISABLE", "1").disabled);
    assert_true(env_of("OCCTRACE_DISABLE", "yes").disabled);
    assert_false(env_of("OCCTRACE_DISABLE", "0").disabled);
    assert_false(env_of("OCCTRACE_DISABLE", "").disabled);
    assert_string_equal(env_of("OCCTRACE_SOCKET", "/run/x.sock").socket, "/run/x.sock");
    assert_int_equal(env_of("OCCTRACE_SOCKET", "").rejected, 0);
    assert_int_equal(env_of("OCCTRACE_CUPTI", "").rejected, 0);
    assert_string_equal(env_of("OCCTRACE_LABEL", "night run").label, "night run");
    assert_int_equal(env_of("OCCTRACE_LABEL", "").rejected, 0);
    assert_string_equal(env_of("OCCTRACE_SESSION", "00112233445566778899aabbccddeeff").session,
                        "00112233445566778899aabbccddeeff");
    assert_string_equal(env_of("OCCTRACE_LOG", "stderr").log, "stderr");
    assert_string_equal(env_of("OCCTRACE_LOG", "/tmp/log").log, "/tmp/log");
    assert_int_equal(env_of("OCCTRACE_RING_SLOTS", "1024").ring_slots, 1024);
    assert_int_equal(env_of("OCCTRACE_BUFFERS", "5").buffers, 5);
    assert_int_equal(env_of("OCCTRACE_BUDGET", "1").budget, 10000);
    assert_int_equal(env_of("OCCTRACE_BUDGET", "0.5").budget, 5000);
    assert_int_equal(env_of("OCCTRACE_BUDGET", "2.").budget, 20000);
    assert_int_equal(env_of("OCCTRACE_BUDGET", "0.0001").budget, 1);
    assert_int_equal(env_of("OCCTRACE_BUDGET", "100").budget, 1000000);
    assert_int_equal(env_of("OCCTRACE_DELAY_MS", "30000").delay_ms, 30000);
    assert_int_equal(env_of("OCCTRACE_DURATION_MS", "31536000000").duration_ms, 31536000000);
    assert_int_equal(env_of("OCCTRACE_LAUNCHES", "7").launches, 7);
}

static void test_invalid_values_are_ignored_and_named(void **state)
{
    (void)state;
    static char long_text[5000];
    memset(long_text, '/', sizeof long_text - 1);
    const char *const bad[][2] = {
        {"OCCTRACE_SOCKET", "relative.sock"},
        {"OCCTRACE_SOCKET", long_text},
        {"OCCTRACE_CUPTI", "libcupti.so"},
        {"OCCTRACE_CUPTI", long_text},
        {"OCCTRACE_LABEL", long_text},
        {"OCCTRACE_SESSION", "0011"},
        {"OCCTRACE_SESSION", "zz112233445566778899aabbccddeeff"},
        {"OCCTRACE_SESSION", "00112233445566778899aabbccddeeff00"},
        {"OCCTRACE_LOG", "stdout"},
        {"OCCTRACE_RING_SLOTS", "1000"},
        {"OCCTRACE_RING_SLOTS", "128"},
        {"OCCTRACE_RING_SLOTS", "-1024"},
        {"OCCTRACE_RING_SLOTS", "1024 "},
        {"OCCTRACE_RING_SLOTS", "99999999999999999999999999"},
        {"OCCTRACE_BUFFERS", "0"},
        {"OCCTRACE_BUFFER_BYTES", "4096"},
        {"OCCTRACE_BUDGET", "0"},
        {"OCCTRACE_BUDGET", "100.0001"},
        {"OCCTRACE_BUDGET", "1000"},
        {"OCCTRACE_BUDGET", "0.00001"},
        {"OCCTRACE_BUDGET", ".5"},
        {"OCCTRACE_BUDGET", "-1"},
        {"OCCTRACE_BUDGET", "1%"},
        {"OCCTRACE_BUDGET", ""},
        {"OCCTRACE_DELAY_MS", "31536000001"},
        {"OCCTRACE_DURATION_MS", "0"},
        {"OCCTRACE_LAUNCHES", "0"},
    };
    struct occ_env defaults = env_of("PATH", "/bin");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct occ_env env = env_of(bad[i][0], bad[i][1]);
        assert_true(env.rejected != 0);
        assert_string_equal(occ_env_name((unsigned int)__builtin_ctz(env.rejected)), bad[i][0]);
        assert_int_equal(occ_env_has_bad_socket(&env), strcmp(bad[i][0], "OCCTRACE_SOCKET") == 0);
        env.rejected = 0;
        assert_memory_equal(&env, &defaults, sizeof env);
    }
}

static void assert_yields(const char *variable, bool expected)
{
    char entry[300];
    strncpy(entry, variable, sizeof entry - 1);
    entry[sizeof entry - 1] = '\0';
    char harmless[] = "HOME=/root";
    char *environment[] = {harmless, entry, NULL};
    char reason[240] = "";
    assert_int_equal(occ_coexist_must_yield(environment, reason, sizeof reason), expected);
    assert_int_equal(reason[0] != '\0', expected);
}

static void test_other_profilers(void **state)
{
    (void)state;
    assert_yields("NSYS_PROFILING_SESSION_ID=17", true);
    assert_yields("NV_NSIGHT_INJECTION_PORT_BASE=1", true);
    assert_yields("NV_COMPUTE_PROFILER_X=1", true);
    assert_yields("NV_SANITIZER_INJECTION=1", true);
    assert_yields("CUDA_INJECTION64_PATH=/opt/other/libinject.so", false);
    assert_yields("NSYS_ROOT=/opt/nsys", false);
    assert_yields("NV_COMPUTE_HOME=/opt/ncu", false);
    assert_yields("NVIDIA_VISIBLE_DEVICES=all", false);
    char reason[240] = "";
    assert_false(occ_coexist_must_yield(NULL, reason, sizeof reason));
}

static void test_descriptors_that_were_taken_away(void **state)
{
    (void)state;
    struct occ_fd mine = occ_fd_adopt(memfd_create("mine", MFD_CLOEXEC));
    assert_true(mine.fd > 2);
    assert_true(fcntl(mine.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(occ_fd_get(&mine), mine.fd);
    int theirs = memfd_create("theirs", 0);
    assert_int_equal(dup2(theirs, mine.fd), mine.fd); /* the program closed our descriptor and reused it */
    int number = mine.fd;
    assert_int_equal(occ_fd_get(&mine), -1);
    occ_fd_close(&mine);
    assert_int_equal(mine.fd, -1);
    assert_true(fcntl(number, F_GETFD) >= 0); /* still open: the number is the program's */
    close(number);
    close(theirs);
    mine = occ_fd_adopt(-1);
    occ_fd_close(&mine);
    assert_int_equal(occ_fd_get(&mine), -1);
}

/* Returns the value of a key in a PROCESS record, NULL if the record lacks the key. */
static const char *value_of(const struct occ_log_record *record, const char *key)
{
    const struct occ_record_process *process = (const void *)record;
    const char *at = (const char *)(process + 1);
    for (uint32_t i = 0; i < process->count; i++) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, key) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static void test_process_record(void **state)
{
    (void)state;
    static const char *const list[] = {"SLURM_JOB_ID",
                                       "4711",
                                       "KUBERNETES_SERVICE_HOST",
                                       "10.0.0.1",
                                       "HOSTNAME",
                                       "pod-17",
                                       "POD_NAMESPACE",
                                       "lab",
                                       "OCCTRACE_LABEL",
                                       "night run",
                                       "RANK",
                                       "3",
                                       "SLURM_JOB_NAME",
                                       "x SLURM_JOB_QOS=gold",
                                       "SLURM_JOB_QOS",
                                       "normal",
                                       "SLURM_JOB_PARTITION",
                                       "gpu",
                                       NULL};
    struct occ_ring_producer ring;
    struct occ_ring_consumer *consumer = NULL;
    struct occ_env env;
    assert_int_equal(occ_ring_create(&ring, 256, 65536), 0);
    assert_int_equal(attach_to(&ring, 0, &consumer), 0);
    variables = list;
    occ_env_read(&env, get);
    assert_true(occ_process_log(&ring, &env, get));
    variables = NULL;
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_PROCESS);
    assert_non_null(strstr(value_of(record, "exe"), "test_injector_env"));
    assert_non_null(strstr(value_of(record, "cmdline"), "test_injector_env"));
    assert_true(value_of(record, "cwd")[0] == '/');
    assert_string_equal(value_of(record, "label"), "night run");
    assert_string_equal(value_of(record, "slurm_job"), "4711");
    assert_null(value_of(record, "slurm_step"));
    assert_null(value_of(record, "session"));
    assert_string_equal(value_of(record, "k8s_pod"), "pod-17");
    assert_string_equal(value_of(record, "k8s_namespace"), "lab");
    assert_string_equal(value_of(record, "claims"),
                        "SLURM_JOB_ID=4711 SLURM_JOB_PARTITION=gpu SLURM_JOB_QOS=normal "
                        "SLURM_JOB_NAME=x SLURM_JOB_QOS=gold POD_NAMESPACE=lab RANK=3");
    assert_string_equal(value_of(record, "rank"), "3");
    assert_non_null(value_of(record, "hostname"));
    occ_ring_detach(consumer);
    occ_ring_destroy(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_valid_values),
        cmocka_unit_test(test_invalid_values_are_ignored_and_named),
        cmocka_unit_test(test_other_profilers),
        cmocka_unit_test(test_descriptors_that_were_taken_away),
        cmocka_unit_test(test_process_record),
    };
    return cmocka_run_group_tests_name("injector_env", tests, NULL, NULL);
}
