/*
 * occq doctor: each row of its table on fake machines, which have files below a root, variables and an output
 * of the daemon's probe. The sound machine has no fault; each other machine differs from it in a single fact,
 * and has exactly the faults of that fact.
 */
#include "cli/occq/doctor/doctor.h"
#include "support/paths.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#define SETTINGS  "/etc/occtrace/occtrace.yaml"
#define GPU       "/proc/driver/nvidia/gpus/0000:18:00.0/information"
#define MIG       "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/"
#define NVRM      "/proc/driver/nvidia/version"
#define NVRM_TEXT "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
#define ADMIN     "Name:\tocq\nCapEff:\t0000000000200000\nCapBnd:\t000001ffffffffff\n"
#define PERFMON   "CapEff:\t0000004000000000\n"
#define PLAIN     "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
#define CUPTI     "cupti\t/opt/libcupti.so.13 (version 130301, first choice)\n"
#define UNIT      "/etc/systemd/system/occtraced.service"
#define POD       "0::/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-"
#define ID        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char root[] = "/tmp/test_doctor_XXXXXX";
static const char *file_system; /* the network file system of the history's disk; NULL: none */
static uint64_t free_bytes;

int __wrap_statfs(const char *path, struct statfs *ret);
int __wrap_statfs(const char *path, struct statfs *ret)
{
    (void)path;
    *ret = (struct statfs){.f_type = file_system ? 0x6969 : 0xef53};
    return 0;
}

int __wrap_statvfs(const char *path, struct statvfs *ret);
int __wrap_statvfs(const char *path, struct statvfs *ret)
{
    *ret = (struct statvfs){.f_bavail = free_bytes / 4096, .f_frsize = 4096};
    return access(path, F_OK);
}

struct file {
    const char *path, *text; /* text NULL: removed; "->": a link to nowhere */
};

static const struct file sound[] = {
    {"/sys/module/nvidia/version", "580.126.09\n"},
    {"/dev/nvidiactl", ""},
    {"/dev/nvidia-uvm", ""},
    {"/dev/nvidia0", ""},
    {GPU, "Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\nGPU UUID: \t GPU-1-2\n"},
    {"/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n"},
    {"/proc/self/limits",
     "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288   files\n"},
    {"/proc/self/status", PLAIN},
    {"/proc/self/cgroup", "0::/user.slice/user-1000.slice\n"},
    {"/proc/77/comm", "bash\n"},
    {"/state/history.db", NULL},
    {UNIT, NULL},
    {"/sys/fs/cgroup/system.slice/occtraced.service/cgroup.procs", NULL},
    {MIG "access", NULL},
    {MIG "ci0/access", NULL},
    {MIG "ci1/access", NULL},
    {"/proc/driver/nvidia/gpus/0000:2a:00.0/information", NULL},
    {SETTINGS, NULL},
    {NVRM, NULL},
    {"/proc/version", "Linux version 6.8.0-31-generic (buildd@lcy02) #31-Ubuntu SMP\n"},
};

static void put(const struct file *file)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s%s", root, file->path);
    (void)unlink(path);
    if (!file->text) {
        (void)rmdir(path);
        return;
    }
    assert_int_equal(occ_path_make_parents(path, NULL), 0);
    if (strcmp(file->text, "->") == 0) {
        assert_int_equal(symlink("/nowhere/at/all", path), 0);
        return;
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(file->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static const char *const variables[] = {"CUDA_MPS_PIPE_DIRECTORY",
                                        "NVIDIA_DRIVER_CAPABILITIES",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "CUDA_INJECTION64_PATH",
                                        "SLURM_JOB_ID",
                                        "POD_NAME"};

static void reset(void)
{
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        put(&sound[i]);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)unsetenv(variables[i]);
    file_system = NULL;
    free_bytes = UINT64_C(100) << 30;
}

/* Prints the lines of the page as "state check: found", without the root. */
static void examine(const struct doctor_machine *machine, bool only_faults, char text[8192])
{
    static struct doctor_page page;
    size_t used = 0;
    doctor_examine(machine, &page);
    text[0] = '\0';
    for (size_t i = 0; i < page.n; i++) {
        const struct doctor_line *line = &page.lines[i];
        assert_int_equal(line->fault != NULL, strcmp(line->state, "ok") != 0);
        assert_int_equal(line->fault != NULL, line->meaning != NULL);
        if (line->fault || !only_faults)
            used += (size_t)snprintf(text + used, 8192 - used, "%s %s: %s\n", line->state, line->check,
                                     line->found);
    }
    for (char *at; (at = strstr(text, root));) /* the root differs from run to run */
        memmove(at, at + strlen(root), strlen(at + strlen(root)) + 1);
}

static struct doctor_machine machine_of(char history[64], const char *probe)
{
    (void)snprintf(history, 64, "%s/state/history.db", root);
    return (struct doctor_machine){.root = root,
                                   .probe = probe,
                                   .history = history,
                                   .settings = SETTINGS,
                                   .socket = "/nowhere/socket",
                                   .service_socket = "/nowhere/service",
                                   .clock_synchronised = true};
}

static const struct machine {
    struct file files[4];
    const char *variable, *value, *probe, *faults; /* probe NULL: a good libcupti */
} machines[] = {
    {.files = {{"/sys/module/nvidia/version", NULL}}, .faults = "problem driver: none\n"},
    {.files = {{"/sys/module/nvidia/version", "524.99\n"}}, .faults = "problem driver: 524.99\n"},
    {.files = {{"/sys/module/nvidia/version", "470.1.2\n"}}, .faults = "problem driver: 470.1.2\n"},
    {.files = {{"/sys/module/nvidia/version", "525.60.13\n"}}, .faults = "note driver: 525.60.13\n"},
    {.files = {{"/sys/module/nvidia/version", "579.1\n"}}, .faults = "note driver: 579.1\n"},
    {.files = {{"/sys/module/nvidia/version", "1024.1\n"}}, .faults = ""},
    {.files = {{"/sys/module/nvidia/version", NULL}, {NVRM, NVRM_TEXT "580.159.04  Release Build\n"}},
     .faults = ""},
    {.files = {{"/sys/module/nvidia/version", NULL}, {NVRM, NVRM_TEXT "470.1.2  Release Build\n"}},
     .faults = "problem driver: 470.1.2\n"},
    {.files = {{"/sys/module/nvidia/version", NULL}},
     .probe = CUPTI "cuda\tCUDA 13.0, 1 GPU\n",
     .faults = ""},
    {.probe = CUPTI "cuda\tCUDA 13.0, 0 GPUs\nfault\tthe CUDA driver found no GPU (error 100)\n",
     .faults = "problem driver: the CUDA driver found no GPU (error 100)\n"},
    {.files = {{"/proc/version", "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n"}},
     .faults = "note sandbox: gvisor\n"},
    {.files = {{"/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"}},
     .faults = "note sandbox: Sun Jan 10 15:06:54 PST 2016\n"},
    {.files = {{"/dev/nvidia-uvm", NULL}},
     .faults = "problem device nodes: not all of /dev/{nvidiactl,nvidia-uvm,nvidia[0-9]*}\n"},
    {.files = {{"/dev/nvidia0", "->"}}, .faults = "problem device nodes: /dev/nvidia0: permission denied\n"},
    {.files = {{GPU, "Model: \t\t GRID A100-10C\n"}}, .faults = "note GPUs: GRID A100-10C\n"},
    {.files = {{GPU, "Model: \t\t NVIDIA A100-SXM4-40GB\n"}}, .faults = ""},
    {.files = {{MIG "access", "x"}, {MIG "ci0/access", "x"}}, .faults = ""},
    {.files = {{MIG "access", "x"}, {MIG "ci0/access", "x"}, {MIG "ci1/access", "x"}},
     .faults = "note MIG: 1 GPU instances, 2 compute instances\n"},
    {.files = {{"/proc/77/comm", "nvidia-cuda-mps\n"}}, .faults = "note MPS: nvidia-cuda-mps\n"},
    {.variable = "CUDA_MPS_PIPE_DIRECTORY", .value = "/tmp/mps", .faults = "note MPS: /tmp/mps\n"},
    {.variable = "NVIDIA_DRIVER_CAPABILITIES", .value = "compute,utility", .faults = ""},
    {.variable = "NVIDIA_DRIVER_CAPABILITIES", .value = "all", .faults = ""},
    {.variable = "NVIDIA_DRIVER_CAPABILITIES", .value = "utility", .faults = "problem container: utility\n"},
    {.variable = "NVIDIA_DRIVER_CAPABILITIES", .value = "compute", .faults = "note container: compute\n"},
    {.variable = "NVIDIA_VISIBLE_DEVICES", .value = "void", .faults = "problem container: void\n"},
    {.variable = "NVIDIA_VISIBLE_DEVICES", .value = "GPU-none-such", .faults = ""},
    {.probe = "", .faults = "problem libcupti: none\n"},
    {.probe = "refused\tlibcupti (version 19) is older\n" CUPTI,
     .faults = "note libcupti: libcupti (version 19) is older\n"},
    {.probe = "cupti\t/a/libcupti.so.13 (version 130299, first choice)\n",
     .faults = "note libcupti: version 130299\n"},
    {.probe = "cupti\t/a/libcupti.so.12 (version 26, first choice)\n",
     .faults = "note libcupti: version 26\n"},
    {.probe = CUPTI "cupti\t/a/libcupti.so.12 (version 26)\n", .faults = ""},
    {.variable = "CUDA_INJECTION64_PATH",
     .value = "/opt/nsys/libToolsInjection64.so",
     .faults = "note injection: /opt/nsys/libToolsInjection64.so\n"},
    {.variable = "CUDA_INJECTION64_PATH", .value = "/usr/lib/libocctrace.so", .faults = ""},
    {.variable = "CUDA_INJECTION64_PATH", .value = "none", .faults = ""},
    {.files = {{"/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\nRmOther: 0\n"}},
     .faults = "note counters: RmProfilingAdminOnly: 1\n"},
    {.files = {{"/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n"}, {"/proc/self/status", ADMIN}},
     .faults = ""},
    {.files = {{"/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n"}, {"/proc/self/status", PERFMON}},
     .faults = ""},
    {.files = {{"/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n"},
               {"/proc/self/status", PERFMON},
               {"/sys/module/nvidia/version", "564.9\n"}},
     .faults = "note driver: 564.9\nnote counters: RmProfilingAdminOnly: 1\n"},
    {.probe = CUPTI "profiler\tNsight Compute runs\n", .faults = "note profilers: Nsight Compute runs\n"},
    {.files = {{"/proc/self/limits", "Max open files 59 524288 files\n"}}, .faults = "note open files: 59\n"},
    {.files = {{"/proc/self/limits", "Max open files unlimited unlimited files\n"}}, .faults = ""},
    {.files = {{"/state/history.db",
                "no history at all, but long enough to be taken for a file of some other kind"}},
     .faults = "problem history: /state/history.db: cannot open: not a database, or damaged (file is not a "
               "database)\n"},
    {.files = {{SETTINGS, "database:\n max_size: 1T\n"}},
     .faults = "note disk space: 100.0 GiB free, the history's limit is 1.0 TiB\n"},
    {.files = {{SETTINGS, "database:\n max_sise: 1T\n"}},
     .faults = "problem settings: " SETTINGS ":2:2: unknown key 'max_sise'; did you mean 'max_size'?\n"},
    {.files = {{UNIT, "[Unit]\n"}}, .faults = "note service: " UNIT " does not run\n"},
    {.files = {{UNIT, "[Unit]\n"}, {"/sys/fs/cgroup/system.slice/occtraced.service/cgroup.procs", "1\n"}},
     .faults = ""},
    {.files = {{"/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n"}},
     .faults = "note identity: 4242\n"},
    {.files = {{"/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n"}},
     .variable = "SLURM_JOB_ID",
     .value = "4242",
     .faults = ""},
    {.files = {{"/proc/self/cgroup", POD ID ".scope\n"}},
     .faults = "note identity: 01234567_89ab_cdef_0123_456789abcdef\n"},
    {.files = {{"/proc/self/cgroup", POD ID ".scope\n"}},
     .variable = "POD_NAME",
     .value = "trainer-0",
     .faults = ""},
    {.files = {{"/proc/self/cgroup", "0::/machine.slice/libpod-" ID ".scope\n"}}, .faults = ""},
};

static void a_machine_has_the_faults_that_it_was_given(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *m = &machines[i];
        char history[64], text[8192];
        reset();
        for (size_t k = 0; k < 4 && m->files[k].path; k++)
            put(&m->files[k]);
        if (m->variable)
            (void)setenv(m->variable, m->value, 1);
        const struct doctor_machine machine = machine_of(history, m->probe ? m->probe : CUPTI);
        examine(&machine, true, text);
        assert_string_equal(text, m->faults);
    }
}

static void a_sound_machine_is_described(void **state)
{
    char history[64], text[8192];
    (void)state;
    reset();
    put(&(struct file){"/proc/driver/nvidia/gpus/0000:2a:00.0/information",
                       "Model: \t\t NVIDIA \033[31mL4\nIRQ: 1\n"});
    put(&(struct file){"/proc/self/cgroup", POD ID ".scope\n"});
    (void)setenv("POD_NAME", "trainer-0", 1);
    const struct doctor_machine machine = machine_of(history, CUPTI);
    examine(&machine, false, text);
    assert_string_equal(text, "ok driver: 580.126.09\n"
                              "ok GPUs: NVIDIA H200, NVIDIA ?[31mL4\n"
                              "ok libcupti: /opt/libcupti.so.13 (version 130301, first choice)\n"
                              "ok history: /state/history.db (the first run makes it)\n"
                              "ok disk space: 100.0 GiB free, the history's limit is 20.0 GiB\n"
                              "ok daemon: none; occtrace starts one for each run\n"
                              "ok identity: POD_NAME=trainer-0\n"
                              "ok identity: " ID "\n"
                              "ok clock: synchronised\n");
}

static void facts_that_no_file_states(void **state)
{
    char history[64], text[8192], path[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    reset();
    struct doctor_machine machine = machine_of(history, CUPTI);
    machine.memfd_errno = EPERM;
    machine.clock_synchronised = false;
    file_system = "NFS";
    free_bytes = 4096;
    (void)snprintf(path, sizeof path, "%s/socket",
                   root); /* another type of socket: no daemon answers there */
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    machine.socket = path;
    examine(&machine, true, text);
    assert_string_equal(text, "problem memory files: memfd_create: Operation not permitted\n"
                              "problem history: /state/history.db is on NFS, a network file system\n"
                              "note disk space: 4.0 KiB free, the history's limit is 20.0 GiB\n"
                              "problem daemon: cannot connect to /socket: Protocol wrong type for socket\n"
                              "note clock: not synchronised\n");
    (void)close(fd);
    (void)unlink(path);
}

static void a_daemon_in_the_place_of_the_service(void **state)
{
    char history[64], found[DOCTOR_FOUND_BYTES] = "", path[64], unit[128];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct doctor_check none = {.name = "service"};
    (void)state;
    reset();
    struct doctor_machine machine = machine_of(history, CUPTI);
    put(&(struct file){"/sys/fs/cgroup/system.slice/occtraced.service", NULL});
    put(&(struct file){UNIT, "[Unit]\n"});
    (void)snprintf(path, sizeof path, "%s/service", root);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)snprintf(unit, sizeof unit, "%s" UNIT, root);
    machine.service_socket = path;
    assert_false(doctor_unit(&machine, &none, found));
    assert_string_equal(strstr(found, " does"), " does not run");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    found[0] = '\0';
    assert_true(doctor_unit(&machine, &none, found));
    assert_string_equal(strstr(found, " does"), " does not run; another daemon answers at its socket");
    (void)close(fd);
    (void)unlink(path);
    (void)unlink(unit);
}

static int set_up(void **state)
{
    *state = NULL;
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_has_the_faults_that_it_was_given),
        cmocka_unit_test(a_sound_machine_is_described),
        cmocka_unit_test(facts_that_no_file_states),
        cmocka_unit_test(a_daemon_in_the_place_of_the_service),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
