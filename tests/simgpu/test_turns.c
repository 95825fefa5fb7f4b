/*
 * Two processes on one simulated device: without MPS the second process's kernel waits for all queued kernels
 * of the first one, with MPS it does not. No call waits here (OCCSIM_CLOCK=ahead): times are from the truth
 * file.
 */
#include "test_child.h"

#include <cuda.h>
#include <stdbool.h>
#include <string.h>

#define OK(call) CHECK_EQUAL(call, 0)

enum { QUEUED = 20 };

static char directory[] = "/tmp/test_turns_XXXXXX";

static void launch(unsigned n)
{
    CUcontext context;
    CUmodule module;
    CUfunction function;
    OK(cuInit(0));
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuModuleLoad(&module, SIM_TEST_IMAGES "/plain.fatbin"));
    OK(cuModuleGetFunction(&function, module, "plain"));
    for (unsigned i = 0; i < n; i++)
        OK(cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
}

static void launch_many(void)
{
    launch(QUEUED);
}

static void launch_one(void)
{
    launch(1);
}

struct span {
    unsigned long long start_ns, end_ns;
    unsigned n;
};

/* Reads columns 15 and 16 of all launches. */
static struct span read_truth(const char *path)
{
    struct span span = {.start_ns = UINT64_MAX};
    char line[4096];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file)); /* column names */
    while (fgets(line, sizeof line, file)) {
        char *at = line;
        for (int column = 1; column < 15 && at; column++)
            at = (at = strchr(at, ',')) ? at + 1 : NULL;
        unsigned long long start = 0, end = 0;
        assert_true(at && sscanf(at, "%llu,%llu", &start, &end) == 2);
        span.start_ns = start < span.start_ns ? start : span.start_ns;
        span.end_ns = end > span.end_ns ? end : span.end_ns;
        span.n++;
    }
    (void)fclose(file);
    return span;
}

/* True if the second process waited for the first one. */
static bool waited(const char *mps)
{
    char counters[128], truth[2][128], path[128], clean[64];
    (void)snprintf(counters, sizeof counters, "OCCSIM_COUNTERS=%s", directory);
    struct span spans[2];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(truth[i], sizeof truth[i], "OCCSIM_TRUTH=%s/truth%d", directory, i);
        RUN(i == 0 ? launch_many : launch_one, "OCCSIM_CLOCK=ahead", "OCCSIM_BLOCK_NS=1000000000",
            "OCCSIM_EXACT_BLOCKS=1", counters, truth[i], mps);
        (void)snprintf(path, sizeof path, "%s/truth%d", directory, i);
        spans[i] = read_truth(path);
    }
    assert_int_equal(spans[0].n, QUEUED);
    assert_int_equal(spans[1].n, 1);
    assert_int_equal(spans[1].end_ns - spans[1].start_ns, 1000000000); /* the requested duration */
    (void)snprintf(clean, sizeof clean, "rm -f %s/*", directory);
    assert_int_equal(system(clean), 0);
    return spans[1].start_ns >= spans[0].end_ns;
}

static void processes_take_turns(void **state)
{
    (void)state;
    assert_true(waited("OCCSIM_MPS=0"));
}

static void under_mps_they_run_side_by_side(void **state)
{
    (void)state;
    assert_false(waited("OCCSIM_MPS=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_take_turns),
        cmocka_unit_test(under_mps_they_run_side_by_side),
    };
    if (!mkdtemp(directory))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(directory);
    return failed;
}
