/* Container ids in the texts of /proc/PID/cgroup as container engines write them. */
#include "daemon/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define ID "3f1c0e9a8b7d6c5f4e3d2c1b0a99887766554433221100ffeeddccbbaa998877"

static void test_engines(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "12:cpuset:/docker/" ID "\n11:pids:/docker/" ID "\n",
        "0::/system.slice/docker-" ID ".scope\n",
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f1e2d3c_4b5a.slice/"
        "cri-containerd-" ID ".scope\n",
        "0::/machine.slice/libpod-" ID ".scope/container\n",
    };
    char id[OCC_CONTAINER_ID_DIGITS + 1];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(id, 0, sizeof id);
        assert_true(occ_container_find(texts[i], id));
        assert_string_equal(id, ID);
    }
}

static void test_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "0::/\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/docker/" ID "0\n",                          /* 65 digits */
        "0::/docker/3F1C0E9A8B7D6C5F4E3D2C1B0A998877\n", /* not as engines write it */
    };
    char id[OCC_CONTAINER_ID_DIGITS + 1] = "untouched";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(occ_container_find(texts[i], id));
    assert_string_equal(id, "untouched");
}

static void test_processes(void **state)
{
    (void)state;
    assert_null(occ_container_of(0));
    assert_null(occ_container_of(-1));
    free(occ_container_of((int32_t)getpid())); /* whatever it is, here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
