/*
 * Tests the daemon's PM sampling (daemon/sampling/counters/pm.c) on the strictest CUPTI double: an object
 * allows one configuration, a full image loses later samples, a Disable ends the sampling of every GPU.
 *
 * No case depends on speed: each waits for samples.
 */
#include "test_child.h"

#include "daemon/sampling/counters/source.h"

#include <cuda.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 4096, WAIT_MS = 30000 };
#define INTERVAL_NS   1000000
#define SHORT_TURN_NS 20000000
#define NO_TURNS      (INT64_MAX / 2)

static char directory[] = "/tmp/simgpu-sampling-XXXXXX", setting[64];
static struct occ_source *sources[2];
static _Thread_local struct occ_sample samples[SAMPLES];
static _Thread_local char message[OCC_ERROR_MESSAGE_BYTES];

static enum occ_source_state open_gpu(uint32_t ordinal, int64_t turn_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_source_options options = {
        .gpu = {.ordinal = ordinal, .sm_count = 132, .max_warps_per_sm = 64},
        .interval_ns = INTERVAL_NS,
        .cupti_path = SIM_TEST_LIBRARIES "/libcupti.so.13",
        .turn_ns = turn_ns};
    CHECK_EQUAL(cuInit(0), 0);
    enum occ_source_state state = occ_source_open(&occ_source_pm, &options, &sources[ordinal], &err);
    memcpy(message, err.message, sizeof message);
    return state;
}

static void open_well(uint32_t ordinal, int64_t turn_ns)
{
    if (open_gpu(ordinal, turn_ns) != OCC_SOURCE_OK) {
        fprintf(stderr, "GPU %u: %s\n", ordinal, message);
        _exit(1);
    }
}

static struct occ_source_stats stats(uint32_t ordinal)
{
    struct occ_source_stats now;
    occ_source_pm.get_stats(sources[ordinal], &now);
    return now;
}

static void close_gpu(uint32_t ordinal)
{
    occ_source_pm.close(sources[ordinal]);
    sources[ordinal] = NULL;
}

static size_t read_once(uint32_t ordinal)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t n;
    if (occ_source_pm.read(sources[ordinal], samples, SAMPLES, &n, &err) != OCC_SOURCE_OK) {
        fprintf(stderr, "GPU %u: %s\n", ordinal, err.message);
        _exit(1);
    }
    return n;
}

/* Reads until there is a sample. */
static void await_sample(uint32_t ordinal)
{
    for (unsigned ms = 0; read_once(ordinal) == 0; ms++) {
        CHECK(ms < WAIT_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void await_rotations(uint32_t ordinal, uint64_t n)
{
    for (uint64_t until = stats(ordinal).rotations + n; stats(ordinal).rotations < until;)
        await_sample(ordinal);
}

/* ---- cases ---- */

static void sets_take_turns(void)
{
    open_well(0, SHORT_TURN_NS);
    await_rotations(0, 7);
    CHECK(stats(0).failed_changes == 0 && stats(0).bytes_per_sample >= 23301);
    await_sample(0);
    CHECK_EQUAL(occ_source_pm.set_interval(sources[0], 50000, NULL), OCC_SOURCE_OK);
    await_sample(0);
    CHECK_EQUAL(samples[0].end_ns - samples[0].start_ns, 50000);
    CHECK_EQUAL(occ_source_pm.set_interval(sources[0], INTERVAL_NS, NULL), OCC_SOURCE_OK);
    await_sample(0);
    CHECK_EQUAL(samples[0].end_ns - samples[0].start_ns, INTERVAL_NS);
    CHECK(stats(0).failed_changes == 0 && occ_source_pm.get_note(sources[0])[0] == '\0');
    close_gpu(0);
}

/* Sampling that was closed on an idle GPU starts again. */
static void begins_again(void)
{
    for (int i = 0; i < 3; i++) {
        open_well(0, SHORT_TURN_NS);
        await_rotations(0, 3);
        close_gpu(0);
    }
}

/* The other GPU continues, with a gap. Afterwards sets and intervals stay unchanged while both GPUs sample,
 * because a change would end the other GPU's sampling; a single GPU may change them. */
static void the_end_of_one_gpu_is_not_that_of_another(void)
{
    open_well(0, NO_TURNS);
    open_well(1, NO_TURNS);
    await_sample(0);
    await_sample(1);
    for (uint64_t i = 1; i <= 3; i++) {
        close_gpu(0);
        await_sample(1);
        await_sample(1);
        CHECK_EQUAL(stats(1).renewals, i);
        open_well(0, NO_TURNS);
        await_sample(0);
        await_sample(1);
        CHECK_EQUAL(stats(1).renewals, i);
    }
    CHECK(stats(1).failed_changes == 0 && stats(1).gaps <= stats(1).renewals);
    CHECK_EQUAL(occ_source_pm.set_interval(sources[1], 50000, NULL), OCC_SOURCE_NOT_SUPPORTED);
    close_gpu(0);
    await_sample(1);
    CHECK_EQUAL(occ_source_pm.set_interval(sources[1], 50000, NULL), OCC_SOURCE_OK);
    await_sample(1);
    close_gpu(1);
}

/* Set changes of two GPUs end each other's sampling until the daemon detects it. */
static void turns_stop_where_they_end_others(void)
{
    open_well(0, SHORT_TURN_NS);
    open_well(1, SHORT_TURN_NS);
    for (int i = 0; i < 200; i++) {
        await_sample(0);
        await_sample(1);
    }
    uint64_t renewals = stats(0).renewals + stats(1).renewals;
    CHECK(renewals > 0 && renewals < 10);
    CHECK(stats(0).failed_changes == 0 && stats(1).failed_changes == 0);
    close_gpu(0);
    await_rotations(1, 3);
    close_gpu(1);
}

static void *sample_in_a_thread(void *ordinal)
{
    for (int again = 0; again < 3; again++) {
        open_well((uint32_t)(uintptr_t)ordinal, SHORT_TURN_NS);
        for (int i = 0; i < 40; i++)
            await_sample((uint32_t)(uintptr_t)ordinal);
        CHECK(stats((uint32_t)(uintptr_t)ordinal).failed_changes == 0);
        close_gpu((uint32_t)(uintptr_t)ordinal);
    }
    return NULL;
}

/* Each GPU has its own thread, as in the daemon, and is closed and opened while the other one samples. */
static void gpus_have_threads(void)
{
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, sample_in_a_thread, (void *)i), 0);
    for (size_t i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
}

static void the_gpu_says_what_it_lacks(void)
{
    open_well(0, NO_TURNS);
    await_sample(0);
    CHECK(!isnan(samples[0].value[OCC_COUNTER_WARPS]) && !isnan(samples[0].value[OCC_COUNTER_BLOCKS]));
    CHECK(isnan(samples[0].value[OCC_COUNTER_LAUNCHED]) && isnan(samples[0].value[OCC_COUNTER_STALL_WARPS]));
    CHECK(strstr(occ_source_pm.get_note(sources[0]), "not in one pass: tpc__warp_launch") != NULL);
    close_gpu(0);
}

static void a_vgpu_says_so(void)
{
    CHECK_EQUAL(open_gpu(0, NO_TURNS), OCC_SOURCE_NOT_SUPPORTED);
    CHECK(strstr(message, "vGPU") != NULL);
}

/* While another process samples, CUPTI refuses the availability of counters too. */
static void another_process_is_named_as_the_cause(void)
{
    int opened[2], done[2];
    char byte;
    CHECK_EQUAL(pipe(opened), 0);
    CHECK_EQUAL(pipe(done), 0);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        close(done[1]);
        open_well(0, NO_TURNS);
        CHECK_EQUAL(write(opened[1], "", 1), 1);
        _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(opened[1]);
    CHECK_EQUAL(read(opened[0], &byte, 1), 1);
    CHECK_EQUAL(open_gpu(0, NO_TURNS), OCC_SOURCE_BUSY);
    close(done[1]);
    CHECK_EQUAL(waitpid(other, NULL, 0), other);
    open_well(0, NO_TURNS);
    close_gpu(0);
}

#define COUNTERS(function, ...) RUN(function, setting __VA_OPT__(, ) __VA_ARGS__)

static void one_gpu(void **state)
{
    (void)state;
    COUNTERS(sets_take_turns, "OCCSIM_FAULT=pm_reuse:999,pm_noresume:1");
    COUNTERS(begins_again);
    COUNTERS(begins_again, "OCCSIM_FAULT=pm_finalizes:15");
    COUNTERS(another_process_is_named_as_the_cause);
}

static void two_gpus(void **state)
{
    (void)state;
    COUNTERS(the_end_of_one_gpu_is_not_that_of_another, "OCCSIM_GPU=h200,h200",
             "OCCSIM_FAULT=pm_finalizes:15,pm_reuse:999");
    COUNTERS(turns_stop_where_they_end_others, "OCCSIM_GPU=h200,h200",
             "OCCSIM_FAULT=pm_finalizes:999,pm_reuse:999");
    COUNTERS(gpus_have_threads, "OCCSIM_GPU=h200,h200", "OCCSIM_FAULT=pm_finalizes:999,pm_reuse:999");
    COUNTERS(gpus_have_threads, "OCCSIM_GPU=h200,h200", "OCCSIM_FAULT=pm_reuse:999");
}

static void limits_of_a_gpu(void **state)
{
    (void)state;
    COUNTERS(the_gpu_says_what_it_lacks, "OCCSIM_FAULT=unavailable:266112"); /* launched blocks, reasons */
    COUNTERS(a_vgpu_says_so, "OCCSIM_FAULT=unsupported:3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpu),
        cmocka_unit_test(two_gpus),
        cmocka_unit_test(limits_of_a_gpu),
    };
    if (!mkdtemp(directory))
        return 1;
    snprintf(setting, sizeof setting, "OCCSIM_COUNTERS=%s", directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) == 0 ? failed : 1;
}
