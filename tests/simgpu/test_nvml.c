/* The processes of GPUs by the NVML double, and a daemon that compares them with its programs: the answer to
 * `coverage`, and its limits for other users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cupti/nvml.h"
#include "daemon/coverage/gpu_processes.h"
#include "daemon_programs.h"

#define NVML     SIM_TEST_LIBRARIES "/libnvidia-ml.so.1"
#define NEVER_NS INT64_C(3600000000000)

static char list[64];

/* The double reads its settings once: all tests of this process use one file, and tests with other settings
 * run in a child. */
static int make_list(void **state)
{
    (void)state;
    (void)snprintf(list, sizeof list, "/tmp/occtrace-nvml-XXXXXX");
    int fd = mkstemp(list);
    if (fd < 0 || close(fd) != 0)
        return -1;
    (void)setenv("OCCSIM_GPU", "h200,a100", 1);
    (void)setenv("OCCSIM_PROCESSES", list, 1);
    return 0;
}

static int remove_list(void **state)
{
    (void)state;
    return unlink(list);
}

/* `n` processes with pids from 1000 on, alternately on two devices and three instances. */
static void put_processes(unsigned int n)
{
    FILE *file = fopen(list, "w");
    check(file != NULL);
    for (unsigned int i = 0; i < n; i++)
        (void)fprintf(file, "%u %u %u\n", i % 2, 1000 + i, i / 2 % 3);
    check(fclose(file) == 0);
}

static void list_all(unsigned int mig)
{
    static const unsigned int counts[] = {0, 1, 2, 9, 16, 17, 600, 1024, 1500};
    static struct occ_gpu_processes p;
    char text[16];
    struct occ_gpu_lister *lister = NULL;
    (void)snprintf(text, sizeof text, "%u", mig);
    (void)setenv("OCCSIM_MIG", text, 1);
    check(occ_gpu_lister_open(NVML, &lister, NULL) == 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t pids = 0, expected = 0;
        put_processes(counts[i]);
        check(occ_gpu_lister_list(lister, &p, NULL) == 0);
        check(p.n == (counts[i] < OCC_GPU_PROCESSES_MAX ? counts[i] : OCC_GPU_PROCESSES_MAX));
        check(p.dropped == counts[i] - p.n && p.n_refused == 0);
        for (size_t k = 0; k < p.n; k++) {
            pids += (uint64_t)p.rows[k].pid;
            expected += 1000 + k;
            check(strncmp(p.rows[k].gpu, mig ? "MIG-" : "GPU-", 4) == 0);
            check(k == 0 || mig || (strcmp(p.rows[k].gpu, p.rows[0].gpu) == 0) == (k < (counts[i] + 1) / 2));
        }
        check(pids == expected || p.dropped > 0);
    }
    occ_gpu_lister_close(lister);
}

/* A GPU that is divided by MIG has no counter of energy. */
static void read_energies(unsigned int mig)
{
    struct occ_nvml nvml;
    struct occ_nvml_energy energy;
    struct occ_nvml_processes gpus;
    unsigned long long before[2], after[2];
    void *devices[2];
    char text[16];
    (void)snprintf(text, sizeof text, "%u", mig);
    (void)setenv("OCCSIM_MIG", text, 1);
    const char *reason;
    void *library = occ_nvml_open(NVML, &reason);
    check(library && !occ_nvml_bind(library, &nvml) && !occ_nvml_bind_energy(library, &energy) &&
          !occ_nvml_bind_processes(library, &gpus) && nvml.init() == OCC_NVML_SUCCESS);
    for (unsigned int i = 0; i < 2; i++) {
        char uuid[OCC_GPU_NAME_BYTES];
        check(gpus.handle(i, &devices[i]) == OCC_NVML_SUCCESS &&
              gpus.uuid(devices[i], uuid, sizeof uuid) == OCC_NVML_SUCCESS &&
              energy.handle(uuid, &devices[i]) == OCC_NVML_SUCCESS);
        int result = energy.total(devices[i], &before[i]);
        check(result == (mig ? OCC_NVML_NOT_SUPPORTED : OCC_NVML_SUCCESS));
    }
    check(energy.total(NULL, &before[0]) != OCC_NVML_SUCCESS);
    pause_ms(20);
    for (unsigned int i = 0; i < 2 && !mig; i++)
        check(energy.total(devices[i], &after[i]) == OCC_NVML_SUCCESS && after[i] > before[i]);
    check(nvml.shutdown() == OCC_NVML_SUCCESS);
}

static void in_child(void (*test)(unsigned int), unsigned int argument)
{
    int status = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        test(argument);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void every_process_is_listed(void **state)
{
    (void)state;
    in_child(list_all, 0);
}

static void instances_are_listed(void **state)
{
    (void)state;
    in_child(list_all, 3);
}

static void energies_grow_without_mig(void **state)
{
    (void)state;
    in_child(read_energies, 0);
    in_child(read_energies, 3);
}

static void a_missing_library_is_an_error(void **state)
{
    struct occ_gpu_lister *lister = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    (void)state;
    assert_int_equal(occ_gpu_lister_open("/nowhere/libnvidia-ml.so.1", &lister, &err), OCC_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no NVML"));
    assert_null(lister);
}

/* ---- a daemon ---- */

/* Maps a file with the name of the driver's library, as each CUDA program does. */
static void map_driver(const struct place *p)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/libcuda.so.1", p->directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
}

static void report(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    (void)variant;
    map_driver(p);
    make_ring(&ring, 1);
    meet(offer(p, &ring));
    wait_for_end(p);
}

/* A process that does not report, of another user if root runs the test. */
static pid_t hold(const struct place *p)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        map_driver(p);
        check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the uid ends it */
        (void)prctl(PR_SET_DUMPABLE, 1);        /* as after exec */
        for (;;)
            (void)pause();
    }
    return pid;
}

static void put_pids(const pid_t *pids, size_t n)
{
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(file, "0 %d\n", (int)pids[i]);
    assert_int_equal(fclose(file), 0);
}

static void await_coverage(const struct place *p, const char *request, const char *what,
                           char answer[OCC_CONTROL_BYTES])
{
    for (int ms = 0; !ask(p, request, answer) || !strstr(answer, what); ms += 5) {
        if (ms >= DEADLINE_MS || !is_alive(p))
            fail_msg("no '%s' in: %s", what, answer);
        pause_ms(5);
    }
}

static bool ask_as_other(const struct place *p, char answer[OCC_CONTROL_BYTES], const char *request)
{
    int fd = -1;
    check(setresuid(65534, 65534, 65534) == 0);
    fd = connect_to(p);
    return occ_control_request(fd, request, DEADLINE_MS, answer, OCC_CONTROL_BYTES, NULL) == 0;
}

/* Another user sees the processes of the same uid only. */
static void check_other_user(const struct place *p, pid_t own)
{
    int status = -1;
    char answer[OCC_CONTROL_BYTES], line[32];
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)snprintf(line, sizeof line, "\npid %d\n", (int)own);
        check(ask_as_other(p, answer, "coverage 0"));
        check(strstr(answer, "\nprocesses 1\n") && strstr(answer, line));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void the_daemon_knows_who_reports(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES], path[128], line[64];
    (void)snprintf(path, sizeof path, "%s/libcuda.so.1", p->directory);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("x", file) >= 0 && fclose(file) == 0);
    assert_int_equal(chmod(p->directory, 0755), 0);
    put_pids(NULL, 0);
    p->nvml = NVML;
    p->split = geteuid() == 0;
    start(p, NEVER_NS);
    pid_t program = run(p, report, 0), holder = hold(p);
    await_launches(p, 1);
    (void)snprintf(line, sizeof line, "\nprocesses 1\n");
    await_coverage(p, "coverage 0", line, answer); /* it reports launches, and NVML does not list it */
    (void)snprintf(line, sizeof line, "\npid %d\ngpu \nreason recorded\nheld_s unknown\n", (int)program);
    assert_non_null(strstr(answer, line));
    assert_non_null(strstr(answer, "\nheld_recorded 0\n"));
    put_pids((const pid_t[]){program, holder}, 2);
    await_coverage(p, "coverage 0", "\nprocesses 2\n", answer);
    assert_non_null(strstr(answer, "state ok\n"));
    await_coverage(p, "coverage 0", "\nreason recorded\n", answer);
    (void)snprintf(line, sizeof line, "\npid %d\n", (int)program);
    assert_non_null(strstr(answer, line));
    await_coverage(p, "coverage 1", "\nreason environment\n", answer);
    (void)snprintf(line, sizeof line, "\npid %d\n", (int)holder);
    assert_non_null(strstr(answer, line));
    while (strstr(answer, "\nheld_recorded 0\n")) /* until a second scan has ended */
        assert_true(ask(p, "coverage 1", answer));
    if (p->split)
        check_other_user(p, holder);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    await_coverage(p, "coverage 1", "\nreason unknown\n", answer); /* NVML still lists it */
    let_go(p, program);
    put_pids(NULL, 0);
    await_coverage(p, "coverage 0", "\nprocesses 0\n", answer);
    assert_null(strstr(answer, "\npid "));
    assert_stops(p);
}

static void without_nvml_the_reason_is_told(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    p->nvml = "/nowhere/libnvidia-ml.so.1";
    start(p, NEVER_NS);
    await_coverage(p, "coverage 0", "state failed\n", answer);
    assert_non_null(strstr(answer, "\nproblem no NVML: /nowhere/"));
    assert_stops(p);
}

static void it_can_be_switched_off(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    start(p, NEVER_NS);
    assert_true(ask(p, "coverage 0", answer));
    assert_non_null(strstr(answer, "state off\n"));
    assert_stops(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_process_is_listed),
        cmocka_unit_test(instances_are_listed),
        cmocka_unit_test(energies_grow_without_mig),
        cmocka_unit_test(a_missing_library_is_an_error),
        cmocka_unit_test_setup_teardown(the_daemon_knows_who_reports, setup, teardown),
        cmocka_unit_test_setup_teardown(without_nvml_the_reason_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(it_can_be_switched_off, setup, teardown),
    };
    return cmocka_run_group_tests(tests, make_list, remove_list);
}
