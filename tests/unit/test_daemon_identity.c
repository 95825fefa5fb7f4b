/* Owners of launches: the control group names of engines and schedulers, and subordinate uids. */
#include "daemon/owners/identity.h"
#include "daemon/collect/run_texts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define ID     "3f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"
#define OTHER  "4f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"
#define POD2   "1f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define POD    "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define POD_US "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"

/* Control groups of a process of uid 1000, the identifiers found in them, and the owner of its launches. */
static const struct {
    const char *text, *container, *pod, *job, *step, *owner;
} control_groups[] = {
    {"", "", "", "", "", "u1000"},
    {"0::/\n", "", "", "", "", "u1000"},
    {"0::/user.slice/user-1000.slice/session-2.scope\n", "", "", "", "", "u1000"},
    {"12:cpuset:/docker/" ID "\n11:pids:/docker/" ID "\n", ID, "", "", "", "container-" ID},
    {"0::/system.slice/docker-" ID ".scope\n", ID, "", "", "", "container-" ID},
    {"0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "", "", "container-" ID},
    {"0::/docker/" ID "0\n", "", "", "", "", "u1000"}, /* 65 digits */
    {"0::/docker/3F1C0E9A8B7D6C5F4E3D2C1B0A998877\n", "", "", "", "", "u1000"},
    {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_US ".slice/"
     "cri-containerd-" ID ".scope\n",
     ID, POD, "", "", "pod-" POD},
    {"0::/kubepods.slice/kubepods-pod" POD_US ".slice/crio-" ID ".scope\n", ID, POD, "", "", "pod-" POD},
    {"4:memory:/kubepods/besteffort/pod" POD "/" ID "\n", ID, POD, "", "", "pod-" POD},
    /* names that a container chooses within its own control group do not change its owner */
    {"4:memory:/docker/" ID "/pod" POD "/" OTHER "\n", ID, "", "", "", "container-" ID},
    {"0::/kubepods.slice/kubepods-pod" POD_US ".slice/crio-" ID ".scope/pod" POD2 "/" OTHER "\n", ID, POD, "",
     "", "pod-" POD},
    {"0::/kubepods.slice/kubepods-pod0f1e2d3c_4b5a.slice\n", "", "", "", "", "u1000"}, /* not a uuid */
    /* rootless: the engine's control group lies in the user's own slice, where the user chooses the names */
    {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n", ID, "",
     "", "", "u1000"},
    {"0::/user.slice/user-1000.slice/user@1000.service/pod" POD "/" ID "\n", ID, "", "", "", "u1000"},
    /* a daemon in a container reads paths relative to its own control group */
    {"0::/../../../user.slice/user-1000.slice/session-2.scope\n", "", "", "", "", "u1000"},
    {"0::/../../user.slice/user-1000.slice/user@1000.service/pod" POD "\n", "", "", "", "", "u1000"},
    {"0::/../../user.slice/user-1000.slice/user@1000.service/pod" POD "/" ID "\n", ID, "", "", "", "u1000"},
    {"0::/../../system.slice/slurmstepd.scope/job_4711/step_0\n", "", "", "4711", "0", "u1000"},
    {"0::/../../kubepods.slice/kubepods-pod" POD_US ".slice/x\n", "", POD, "", "", "pod-" POD},
    /* a login slice that a container has made is not a login */
    {"0::/docker/" ID "/user-1000.slice/x\n", ID, "", "", "", "container-" ID},
    {"0::/docker/" ID "/user.slice/user-1000.slice/x\n", ID, "", "", "", "container-" ID},
    {"0::/machine.slice/user-1000.slice/libpod-" ID ".scope\n", ID, "", "", "", "container-" ID},
    {"4:memory:/docker/" ID "\n1:name=systemd:/user.slice/user-1000.slice/x\n", ID, "", "", "",
     "container-" ID},
    {"2:cpu:/\n1:name=systemd:/user.slice/user-1000.slice/libpod-" ID ".scope\n", ID, "", "", "", "u1000"},
    {"/user.slice/user-1000.slice/x" ID "\n", ID, "", "", "", "container-" ID}, /* not a valid line */
    {"0::/user.slice/user-1001.slice/libpod-" ID ".scope\n", ID, "", "", "", "container-" ID},
    {"9:cpuset:/slurm/uid_1000/job_4711/step_0/task_2\n", "", "", "4711", "0", "u1000"},
    {"0::/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0\n", "", "", "4711", "batch", "u1000"},
    {"0::/system.slice/node7_slurmstepd.scope/job_12/step_extern\n", "", "", "12", "extern", "u1000"},
    {"0::/system.slice/node7_slurmstepd.scope/job_12/step_extern (deleted)\n", "", "", "12", "extern",
     "u1000"},
    {"9:cpuset:/slurm_node7/uid_1000/job_4711/step_0\n", "", "", "4711", "0", "u1000"},
    {"1:name=systemd:/\n9:cpuset:/slurm/uid_1000/job_4711\n8:pids:/x/step_9\n", "", "", "4711", "", "u1000"},
    {"0::/user.slice/job_4711/step_0\n", "", "", "", "", "u1000"},
    /* below a login, a container or a service the user chooses the names */
    {"0::/user.slice/user-1000.slice/user@1000.service/slurm/job_4711/step_0\n", "", "", "", "", "u1000"},
    {"0::/user.slice/slurm/system.slice/slurmstepd.scope/job_4711/step_0\n", "", "", "", "", "u1000"},
    {"0::/docker/" ID "/system.slice/slurmstepd.scope/job_4711/step_0\n", ID, "", "", "", "container-" ID},
    {"0::/system.slice/ci.service/slurmstepd.scope/job_4711\n", "", "", "", "", "u1000"},
    {"0::/system.slice/notslurmstepd.scope/job_4711\n", "", "", "", "", "u1000"},
    {"0::/slurmlike/job_4711\n", "", "", "", "", "u1000"},
    {"0::/user.slice/user-1000.slice/kubepods-pod" POD_US ".slice/x\n", "", "", "", "", "u1000"},
};

static void test_control_groups(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof control_groups / sizeof *control_groups; i++) {
        struct occ_identity id = {.uid = 1000, .owner_uid = 1000};
        struct occ_owner owner;
        occ_identity_parse_cgroups(control_groups[i].text, &id);
        occ_identity_owner(&id, &owner);
        assert_string_equal(id.container, control_groups[i].container);
        assert_string_equal(id.pod, control_groups[i].pod);
        assert_string_equal(id.slurm_job, control_groups[i].job);
        assert_string_equal(id.slurm_step, control_groups[i].step);
        assert_string_equal(owner.name, control_groups[i].owner);
        assert_int_equal(owner.uid, control_groups[i].owner[0] == 'u' ? 1000 : -1);
    }
}

static void put_file(const char *root, const char *path, const char *text)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "mkdir -p %s$(dirname %s)", root, path);
    assert_int_equal(system(whole), 0);
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_processes(void **state)
{
    (void)state;
    char root[] = "/tmp/occtrace-identity-XXXXXX", command[64];
    struct occ_identity id;
    struct occ_owner owner;
    struct occ_accounts *accounts;
    assert_non_null(mkdtemp(root));
    assert_int_equal(occ_accounts_new(root, &accounts, NULL), 0);
    put_file(root, "/proc/77/cgroup", "0::/machine.slice/libpod-" ID ".scope/container\n");
    put_file(root, "/etc/subuid", "1000:100000:65536\n");
    put_file(root, "/proc/78/cgroup", "0::/kubepods.slice/kubepods-pod" POD_US ".slice/crio-" ID ".scope\n");
    put_file(root, "/var/log/pods/team-a_trainer-0_" POD "/app/0.log", "");
    put_file(root, "/var/log/pods/team-b_other_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1/app/0.log", "");
    put_file(root, "/var/log/pods/stray_" POD, ""); /* only two parts */
    occ_identity_read(accounts, 78, 0, &id);
    assert_string_equal(id.pod_name, "trainer-0");
    assert_string_equal(id.pod_namespace, "team-a");
    occ_identity_owner(&id, &owner); /* a pod commands no other pod's programs, */
    assert_string_equal(owner.name, "pod-" POD);
    occ_identity_history(&id, &owner); /* but shares the namespace's history */
    assert_string_equal(owner.name, "ns-team-a");
    assert_int_equal(owner.uid, -1);
    occ_identity_read(accounts, 77, 100999, &id); /* rootless: the uid is subordinate to user 1000 */
    occ_identity_owner(&id, &owner);
    assert_string_equal(id.container, ID);
    assert_string_equal(owner.name, "u1000");
    occ_identity_read(accounts, 77, 0, &id); /* root's engine */
    occ_identity_owner(&id, &owner);
    assert_string_equal(owner.name, "container-" ID);
    assert_int_equal(owner.uid, -1);
    for (int pid = -1; pid <= 1; pid++) { /* unknown, or without a file */
        occ_identity_read(accounts, pid, 7, &id);
        occ_identity_owner(&id, &owner);
        assert_string_equal(id.container, "");
        assert_string_equal(owner.name, "u7");
        assert_int_equal(owner.uid, 7);
    }
    occ_accounts_free(accounts);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* An ending process appears in the root of version 1 hierarchies, outside of its container. */
static void test_ending_processes(void **state)
{
    (void)state;
    static const struct {
        const char *cgroups, *stat;
        bool is_uncertain;
    } cases[] = {
        {"0::/a\n", "79 (x) Z 1 1 1 0 -1 4 0", false},
        {"0::/a (deleted)\n", "79 (x) Z 1 1 1 0 -1 4 0", false},
        {"1:name=systemd:/\n0::/\n", "79 (x) S 1 1 1 0 -1 4194304 0", false},
        {"1:name=systemd:/\n0::/\n", "79 (x) Z 1 1 1 0 -1 4227148 0", true},
        {"1:name=systemd:/\n0::/\n", "79 (a b) 0 (c) R 1 1 1 0 -1 4 0",
         true}, /* it has not become a zombie yet */
        {"4:memory:/\n", "79 (x) Z 1 1 1 0 -1 4 0", true},
        {"4:memory:/\n", "79 (x", true},
        {"0::/a", "79 (x) Z 1 1 1 0 -1 4 0", true}, /* cut off */
        {"", "79 (x) Z 1 1 1 0 -1 4 0", true},
    };
    char root[] = "/tmp/occtrace-identity-XXXXXX", command[64];
    struct occ_identity id;
    struct occ_accounts *accounts;
    assert_non_null(mkdtemp(root));
    assert_int_equal(occ_accounts_new(root, &accounts, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(root, "/proc/79/cgroup", cases[i].cgroups);
        put_file(root, "/proc/79/stat", cases[i].stat);
        occ_identity_read(accounts, 79, 7, &id);
        if (id.is_uncertain != cases[i].is_uncertain)
            fail_msg("%s with %s", cases[i].cgroups, cases[i].stat);
    }
    occ_accounts_free(accounts);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* The kernel's view wins over a program's claim, and each run names the source of its job. */
/* A container has a pid namespace even where its control group has no id of an engine. */
static void test_nested_processes(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        bool is_nested;
    } cases[] = {
        {"Name:\tx\nNSpid:\t80\nNSpgid:\t80\n", false},
        {"Name:\tx\nNSpid:\t80\t1\nNSpgid:\t80\t1\n", true},
        {"Name:\tx\nNSpid:\t80\t7\t1\nNSpgid:\t80\t7\t1\n", true},
        {"Name:\tNSpid:\t1\t2\nNSpid:\t80\nNSpgid:\t80\t1\n", false}, /* a name */
        {"Name:\tx\nNSpid:\t80", false},
        {"Name:\tx\n", false}, /* a kernel without namespaces */
        {"", false},
    };
    char root[] = "/tmp/occtrace-identity-XXXXXX", command[64];
    struct occ_identity id;
    struct occ_accounts *accounts;
    assert_non_null(mkdtemp(root));
    assert_int_equal(occ_accounts_new(root, &accounts, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(root, "/proc/80/status", cases[i].status);
        occ_identity_read(accounts, 80, 7, &id);
        if (id.is_nested != cases[i].is_nested)
            fail_msg("%s", cases[i].status);
        assert_false(id.has_control_groups);
    }
    char *long_text = calloc(1, 900000); /* with as many groups as a process may have */
    size_t n = (size_t)sprintf(long_text, "Name:\tx\nGroups:\t");
    for (int i = 0; i < 65536; i++)
        n += (size_t)sprintf(long_text + n, "%u ", 4000000000U);
    (void)sprintf(long_text + n, "\nNSpid:\t80\t1\n");
    put_file(root, "/proc/80/status", long_text);
    occ_identity_read(accounts, 80, 7, &id);
    assert_true(id.is_nested);
    free(long_text);
    put_file(root, "/proc/80/cgroup", "0::/\n");
    occ_identity_read(accounts, 80, 7, &id);
    assert_true(id.has_control_groups);
    occ_accounts_free(accounts);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void test_trust(void **state)
{
    (void)state;
    static const struct {
        const char *cgroups, *claimed_job, *job, *trust;
    } cases[] = {
        {"0::/\n", NULL, NULL, NULL},
        {"0::/\n", "424242", "424242", "claimed"},
        {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "424242", "4711", "kernel"},
        {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", NULL, "4711", "kernel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_identity id = {.uid = 1000, .owner_uid = 1000};
        struct occ_run run = {0};
        if (cases[i].claimed_job)
            assert_int_equal(occ_run_texts_set(&run, "slurm_job", cases[i].claimed_job, NULL), 0);
        occ_identity_parse_cgroups(cases[i].cgroups, &id);
        occ_run_texts_trust(&run.job, &id);
        if (cases[i].job)
            assert_string_equal(run.job.slurm_job, cases[i].job);
        else
            assert_null(run.job.slurm_job);
        if (cases[i].trust)
            assert_string_equal(run.job.trust, cases[i].trust);
        else
            assert_null(run.job.trust);
        occ_run_texts_free(&run);
    }
}

/* ---- the scheduler's jobs of GPUs ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void needs_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: only root's files are believed\n");
    skip();
}

/* Makes a machine of two GPUs below `root`, with the driver's list out of order; jobs are in root/jobs. */
static void make_machine(char root[32], char jobs[64])
{
    static const char *const gpus[][2] = {{"0000:41:00.0", "11111111-2222-3333-4444-555555555555"},
                                          {"0000:0a:00.0", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}};
    char path[160], text[256];
    (void)snprintf(root, 32, "/tmp/occtrace-jobs-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "mkdir -p %s/jobs %s/proc/driver/nvidia/gpus/%s", root, root,
                       gpus[i][0]);
        assert_int_equal(system(path), 0);
        (void)snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, gpus[i][0]);
        (void)snprintf(text, sizeof text,
                       "Model: \t H200\nGPU UUID: \t GPU-%s\nBus Type: \t PCIe\nDevice Minor: \t %u\n",
                       gpus[i][1], i == 0 ? 4 : 5);
        write_text(path, text);
    }
    (void)snprintf(jobs, 64, "%s/jobs", root);
}

static void remove_machine(const char *root)
{
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static void test_jobs_of_gpus(void **state)
{
    (void)state;
    char root[32], jobs[64], path[96];
    struct occ_gpu_jobs gpus[4];
    needs_root();
    make_machine(root, jobs);
    (void)snprintf(path, sizeof path, "%s/0", jobs);
    write_text(path, "4711\n\n4712_3\n");
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 4), 2);
    assert_int_equal(gpus[0].gpu[0], 0xaa); /* GPU 0 has the lower PCI address */
    assert_int_equal(gpus[0].n, 2);
    assert_true(llabs(gpus[0].since_s - time(NULL)) < 600);
    assert_string_equal(gpus[0].names[0], "4711");
    assert_string_equal(gpus[0].names[1], "4712_3");
    assert_int_equal(gpus[1].number, 1);
    assert_int_equal(gpus[1].n, 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 1), 1);
    assert_int_equal(occ_jobs_read(root, "", gpus, 4), 0);
    assert_int_equal(occ_jobs_read(root, root, gpus, 4), 2); /* no files: no jobs */
    assert_int_equal(gpus[0].n, 0);
    assert_int_equal(occ_jobs_read(jobs, jobs, gpus, 4), 0); /* no driver */
    remove_machine(root);
}

static void test_gpus_with_instances_have_no_jobs(void **state)
{
    (void)state;
    char root[32], jobs[64], path[96], command[128];
    struct occ_gpu_jobs gpus[2];
    needs_root();
    make_machine(root, jobs);
    (void)snprintf(path, sizeof path, "%s/0", jobs);
    write_text(path, "4711\n");
    (void)snprintf(command, sizeof command, "mkdir -p %s/proc/driver/nvidia/capabilities/gpu5/mig", root);
    assert_int_equal(system(command), 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 2), 2);
    assert_int_equal(gpus[0].n, 1);
    (void)strcat(command, "/gi2");
    assert_int_equal(system(command), 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 2), 2);
    assert_int_equal(gpus[0].n, 0);
    remove_machine(root);
}

static void test_files_of_others_name_no_jobs(void **state)
{
    (void)state;
    char root[32], jobs[64], path[96], target[96];
    struct occ_gpu_jobs gpus[2];
    needs_root();
    make_machine(root, jobs);
    (void)snprintf(path, sizeof path, "%s/0", jobs);
    (void)snprintf(target, sizeof target, "%s/job", root);
    write_text(path, "4711\n");
    write_text(target, "4711\n");
    assert_int_equal(chmod(jobs, 0775), 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 2), 0);
    assert_int_equal(chmod(jobs, 0755), 0);
    assert_int_equal(chown(jobs, 65534, 65534), 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 2), 0);
    assert_int_equal(chown(jobs, 0, 0), 0);
    assert_int_equal(occ_jobs_read(root, jobs, gpus, 2), 2);
    assert_int_equal(gpus[0].n, 1);
    assert_int_equal(chown(path, 65534, 0), 0);
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 0);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chmod(path, 0646), 0);
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0); /* must not wait for a writer */
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 0);
    remove_machine(root);
}

static void test_jobs_are_bounded(void **state)
{
    (void)state;
    char root[32], jobs[64], path[96];
    static char text[100001];
    struct occ_gpu_jobs gpus[2];
    needs_root();
    make_machine(root, jobs);
    (void)snprintf(path, sizeof path, "%s/0", jobs);
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 2 ? '\n' : 'a';
    write_text(path, text);
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, OCC_GPU_JOBS_MAX);
    memset(text, 'b', sizeof text - 1);
    text[OCC_JOB_BYTES] = text[2 * OCC_JOB_BYTES] = '\n'; /* lines of 64 and 63 bytes, and a longer one */
    write_text(path, text);
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 1);
    assert_int_equal(strlen(gpus[0].names[0]), OCC_JOB_BYTES - 1);
    write_text(path, "a b\n\033[31m\n\xc3\xa4\n\"quoted\\\"\n7");
    (void)occ_jobs_read(root, jobs, gpus, 2);
    assert_int_equal(gpus[0].n, 2);
    assert_string_equal(gpus[0].names[0], "\"quoted\\\"");
    assert_string_equal(gpus[0].names[1], "7");
    remove_machine(root);
}

/* A run's job, step and trust, before and after the scheduler's jobs of its GPU are known. */
static void test_the_schedulers_word(void **state)
{
    (void)state;
    static const struct {
        const char *job, *step, *trust, *of_gpu[2];
        const char *new_job, *new_step, *new_trust;
    } cases[] = {
        {NULL, NULL, NULL, {"4711"}, "4711", NULL, "scheduler"},
        {"4711", "0", "claimed", {"4711"}, "4711", "0", "scheduler"},
        {"4712", "0", "claimed", {"4711", "4712"}, "4712", "0", "scheduler"},
        {"13", "0", "claimed", {"4711"}, "4711", NULL, "scheduler"},
        {"13", "0", "claimed", {"4711", "4712"}, "13", "0", "claimed"},
        {"13", "0", "claimed", {NULL}, "13", "0", "claimed"},
        {"13", "0", "kernel", {"4711"}, "13", "0", "kernel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_run row = {.job = {.trust = cases[i].trust}};
        struct occ_gpu_jobs jobs = {.n = 0};
        if (cases[i].job)
            assert_int_equal(occ_run_texts_set(&row, "slurm_job", cases[i].job, NULL), 0);
        if (cases[i].step)
            assert_int_equal(occ_run_texts_set(&row, "slurm_step", cases[i].step, NULL), 0);
        for (; jobs.n < 2 && cases[i].of_gpu[jobs.n]; jobs.n++)
            (void)snprintf(jobs.names[jobs.n], OCC_JOB_BYTES, "%s", cases[i].of_gpu[jobs.n]);
        bool is_changed = strcmp(cases[i].new_trust, "scheduler") == 0;
        assert_int_equal(occ_run_texts_schedule(&row.job, &jobs), is_changed);
        assert_string_equal(row.job.slurm_job, cases[i].new_job);
        assert_string_equal(row.job.slurm_step ? row.job.slurm_step : "",
                            cases[i].new_step ? cases[i].new_step : "");
        assert_string_equal(row.job.trust, cases[i].new_trust);
        occ_run_texts_free(&row);
    }
}

#define LONGEST                                                                                              \
    "123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_1234567"

/* Account, partition, QOS and array are those of a program that claims the run's job, cut nowhere. */
static void test_texts_of_a_slurm_job(void **state)
{
    (void)state;
    static const struct {
        const char *claims, *job, *texts[5];
    } cases[] = {
        {"SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=6 SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ACCOUNT=phys "
         "SLURM_JOB_PARTITION=gpu SLURM_JOB_QOS=high",
         "7",
         {"phys", "gpu", "high", "6", "3"}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=phys", "7", {"phys"}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=phys", "8", {NULL}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=phys", "70", {NULL}},
        {"SLURM_JOB_ACCOUNT=phys", "7", {NULL}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=", "7", {NULL}},
        {"SLURM_JOB_ID=7 XSLURM_JOB_ACCOUNT=phys SLURM_JOB_ACCOUNTS=x", "7", {NULL}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=a SLURM_JOB_NAME=n SLURM_JOB_ACCOUNT=b", "7", {"a"}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=a\x1b[2J SLURM_JOB_QOS=\xff", "7", {"a?[2J", NULL, "?"}},
        {"SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=" LONGEST " SLURM_JOB_QOS=" LONGEST "_" LONGEST, "7", {LONGEST}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_identity id = {.uid = 1000, .owner_uid = 1000};
        struct occ_run run = {.start_ns = 1};
        const struct occ_run_job *job = &run.job;
        (void)snprintf(id.slurm_job, sizeof id.slurm_job, "%s", cases[i].job);
        assert_int_equal(occ_run_texts_set(&run, "claims", cases[i].claims, NULL), 0);
        for (int again = 0; again < 2; again++)
            occ_run_texts_trust(&run.job, &id);
        const char *const texts[] = {job->slurm_account, job->slurm_partition, job->slurm_qos,
                                     job->slurm_array_job, job->slurm_array_task};
        for (size_t k = 0; k < 5; k++)
            if (cases[i].texts[k])
                assert_string_equal(texts[k], cases[i].texts[k]);
            else
                assert_null(texts[k]);
        occ_run_texts_free(&run);
    }
}

/* The scheduler's job is another one than the program claims: so are its account and partition. */
static void test_texts_of_the_schedulers_job(void **state)
{
    (void)state;
    struct occ_identity id = {.uid = 1000, .owner_uid = 1000};
    struct occ_run run = {.start_ns = 1};
    const struct occ_gpu_jobs jobs = {.n = 1, .names = {"8"}};
    assert_int_equal(occ_run_texts_set(&run, "slurm_job", "7", NULL), 0);
    assert_int_equal(occ_run_texts_set(&run, "claims", "SLURM_JOB_ID=7 SLURM_JOB_ACCOUNT=phys", NULL), 0);
    occ_run_texts_trust(&run.job, &id);
    assert_string_equal(run.job.slurm_account, "phys");
    assert_true(occ_run_texts_schedule(&run.job, &jobs));
    assert_null(run.job.slurm_account);
    occ_run_texts_free(&run);
}

/* A pod's namespace comes only from directories that kubelet may have made. */
static void test_namespaces(void **state)
{
    (void)state;
    static const struct {
        const char *directory, *command, *owner;
    } cases[] = {
        {"team-a_trainer-0_" POD, "true", "ns-team-a"},
        {"team-a_trainer-0_" POD2, "true", "pod-" POD},
        {"0_x_" POD, "true", "ns-0"},
        {"../x_" POD, "true", "pod-" POD},
        {".._x_" POD, "true", "pod-" POD},
        {"_x_" POD, "true", "pod-" POD},
        {"-a_x_" POD, "true", "pod-" POD},
        {"a-_x_" POD, "true", "pod-" POD},
        {"Team_x_" POD, "true", "pod-" POD},
        {"a.b_x_" POD, "true", "pod-" POD},
        {"a123456789a123456789a123456789a123456789a123456789a123456789abc_x_" POD, "true",
         "ns-a123456789a123456789a123456789a123456789a123456789a123456789abc"},
        {"a123456789a123456789a123456789a123456789a123456789a123456789abcd_x_" POD, "true", "pod-" POD},
        {"team-a_x_" POD, "chmod o+w .", "pod-" POD},
        {"team-a_x_" POD, "chmod o+w team-a_*", "pod-" POD},
        {"team-a_x_" POD, "chmod g+w .", "pod-" POD},
        {"team-a_x_" POD, "chmod g+w team-a_*", "pod-" POD},
        {"team-a_x_" POD, "mv team-a_* old && ln -s old team-a_x_" POD, "pod-" POD},
        {"team-a_x_" POD, "rmdir team-a_* && touch team-a_x_" POD, "pod-" POD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[] = "/tmp/occtrace-identity-XXXXXX", command[512];
        struct occ_accounts *accounts;
        struct occ_identity id;
        struct occ_owner owner;
        assert_non_null(mkdtemp(root));
        assert_int_equal(occ_accounts_new(root, &accounts, NULL), 0);
        put_file(root, "/proc/78/cgroup",
                 "0::/kubepods.slice/kubepods-pod" POD_US ".slice/crio-" ID ".scope\n");
        (void)snprintf(command, sizeof command,
                       "umask 022; mkdir -p '%s/var/log/pods/%s' && cd '%s/var/log/pods' && %s", root,
                       cases[i].directory, root, cases[i].command);
        assert_int_equal(system(command), 0);
        occ_identity_read(accounts, 78, 0, &id);
        occ_identity_history(&id, &owner);
        assert_string_equal(owner.name, cases[i].owner);
        occ_accounts_free(accounts);
        (void)snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
    }
}

/* A user's own engine chooses control group names, so the user's pods have no namespace. */
static void test_a_users_pods_have_no_namespace(void **state)
{
    (void)state;
    struct occ_identity id = {.uid = 1000, .owner_uid = 1000, .pod_namespace = "team-a"};
    struct occ_owner owner;
    occ_identity_parse_cgroups("0::/user.slice/user-1000.slice/user@1000.service/pod" POD "/" ID "\n", &id);
    occ_identity_history(&id, &owner);
    assert_string_equal(owner.name, "u1000");
}

static void owners_have_names(void **state)
{
    struct occ_owner owner;
    (void)state;
    assert_true(occ_identity_parse_owner("u1000", &owner));
    assert_string_equal(owner.name, "u1000");
    assert_int_equal(owner.uid, 1000);
    assert_true(occ_identity_parse_owner("pod-c1f2", &owner));
    assert_int_equal(owner.uid, -1);
    assert_true(occ_identity_parse_owner("container-0a", &owner));
    assert_true(occ_identity_parse_owner("ns-team-a", &owner));
    assert_int_equal(owner.uid, -1);
    static const char *const none[] = {"", ".", "u", "u-1", "u1x", "u4294967296", "lost+found", "history.db"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(occ_identity_parse_owner(none[i], &owner));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_groups),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_a_users_pods_have_no_namespace),
        cmocka_unit_test(test_ending_processes),
        cmocka_unit_test(test_nested_processes),
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_jobs_of_gpus),
        cmocka_unit_test(test_gpus_with_instances_have_no_jobs),
        cmocka_unit_test(test_files_of_others_name_no_jobs),
        cmocka_unit_test(test_jobs_are_bounded),
        cmocka_unit_test(test_the_schedulers_word),
        cmocka_unit_test(test_texts_of_a_slurm_job),
        cmocka_unit_test(test_texts_of_the_schedulers_job),
        cmocka_unit_test(owners_have_names),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
