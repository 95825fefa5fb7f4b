/* Detection of other profilers that use the counters, from a fake /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/sampling/counters/competing_profilers.h"

#define AMPERE 8
#define HOPPER 9
#define MODULE "/usr/lib/x86_64-linux-gnu/libdcgmmoduleprofiling.so.4.2.3"
#define MAPS                                                                                                 \
    "7f0000000000-7f0000001000 r--p 00000000 fe:00 17     /usr/lib/libc.so.6\n"                              \
    "7f0000002000-7f0000003000 r-xp 00000000 fe:00 18     "

static char proc[] = "/tmp/test_sampler_competing_XXXXXX";

static void path_of(char path[128], const char *name)
{
    (void)snprintf(path, 128, "%s/%s", proc, name);
}

static void put(const char *name, const char *text)
{
    char path[128];
    path_of(path, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char *find(uint32_t cc_major, const struct occ_profiler_users *users)
{
    return occ_competing_profiler_text(occ_competing_profilers(proc, cc_major, users), cc_major);
}

/* Expects that a process with this name and these maps is reported as `said`, beside a harmless process.
 * `maps` NULL: unreadable; `said` NULL: not reported. */
static void expect(const char *comm, const char *maps, uint32_t cc_major, const char *said)
{
    char path[128], line[32];
    (void)snprintf(line, sizeof line, "%s\n", comm);
    put("42/comm", line);
    if (maps) {
        put("42/maps", maps);
    } else {
        path_of(path, "42/maps");
        (void)unlink(path);
    }
    const char *found = find(cc_major, NULL);
    if (said && (!found || !strstr(found, said)))
        fail_msg("%s is said to be '%s'", comm, found ? found : "nobody");
    if (!said && found)
        fail_msg("%s is taken for '%s'", comm, found);
}

static void nsight_competes_while_it_runs(void **state)
{
    char exe[128], aside[128];
    (void)state;
    expect("ncu", NULL, HOPPER, "Nsight Compute");
    expect("nsys", NULL, AMPERE, "Nsight Systems");
    expect("ncurses", NULL, HOPPER, NULL);
    expect("", NULL, HOPPER, NULL);
    assert_int_equal(occ_competing_profilers("/nowhere", AMPERE, NULL), 0);
    path_of(exe, "42/exe");
    path_of(aside, "42/none");
    assert_int_equal(rename(exe, aside), 0);
    expect("ncu", NULL, HOPPER, NULL); /* a zombie */
    assert_int_equal(rename(aside, exe), 0);
}

static void dcgm_is_one_with_its_profiling_module_before_hopper(void **state)
{
    (void)state;
    expect("nv-hostengine", MAPS MODULE "\n", AMPERE, "DCGM");
    expect("dcgm-exporter", MAPS MODULE "\n", AMPERE, "DCGM");
    expect("nv-hostengine", MAPS MODULE "\n", HOPPER, NULL);
    expect("nv-hostengine", MAPS "/usr/lib/libdcgm.so.4\n", AMPERE, NULL);
    expect("nv-hostengine", NULL, AMPERE, NULL);
    expect("python3", MAPS MODULE "\n", AMPERE, NULL);
}

static int make_proc(void **state)
{
    static const char *const directories[] = {"1", "42", "sys"};
    char path[128];
    (void)state;
    if (!mkdtemp(proc))
        return 1;
    for (size_t i = 0; i < 3; i++) {
        path_of(path, directories[i]);
        if (mkdir(path, 0700) != 0)
            return 1;
    }
    path_of(path, "42/exe");
    if (symlink("/usr/bin/program", path) != 0)
        return 1;
    put("1/comm", "systemd\n");
    put("sys/comm", "ncu\n"); /* no process */
    return 0;
}

static int remove_proc(void **state)
{
    static const char *const names[] = {"1/comm", "42/comm", "42/maps", "42/exe", "sys/comm",
                                        "1",      "42",      "sys",     ""};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(path, names[i]);
        (void)remove(path);
    }
    return 0;
}

/* A profiler's name counts only in processes of root, of the daemon's user and of users with reporting
 * programs. */
static void a_name_alone_is_no_reason(void **state)
{
    (void)state;
    char path[128];
    uint32_t uid = 61001;
    struct occ_profiler_users users = {.n = 1, .uids = &uid};
    if (geteuid() != 0) {
        print_message("skipped: only root can give a file to another user\n");
        skip();
    }
    put("42/comm", "ncu\n");
    path_of(path, "42");
    assert_non_null(find(AMPERE, &users)); /* root's */
    assert_int_equal(chown(path, 61002, 61002), 0);
    assert_null(find(AMPERE, &users));
    assert_int_equal(chown(path, 61001, 61001), 0);
    assert_non_null(find(AMPERE, &users));
    users.n = 0;
    assert_null(find(AMPERE, &users));
    assert_int_equal(chown(path, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nsight_competes_while_it_runs),
        cmocka_unit_test(a_name_alone_is_no_reason),
        cmocka_unit_test(dcgm_is_one_with_its_profiling_module_before_hopper),
    };
    return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
