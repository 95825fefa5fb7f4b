/* Busy time and gaps of a run: timelines made by hand, and random ones against a count by nanosecond. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

#define T0 INT64_C(1700000000000000000)
#define US 1000

struct world {
    char directory[32], path[64];
    struct occ_store *store;
    int64_t run, device, config[2]; /* less than one wave; at least one wave, of another kernel */
    int64_t kernels[2];
};

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->message);
}

static void put_config(struct world *w, int i, int64_t kernel, uint32_t blocks)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_launch_config config = {.kernel = kernel,
                                             .device = w->device,
                                             .launch = {.grid = {blocks, 1, 1},
                                                        .block = {128, 1, 1},
                                                        .registers_per_thread = 32,
                                                        .carveout_percent = -1}};
    check(occ_store_put_config(w->store, &config, &w->config[i], &err), &err);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const struct occ_store_device device = {.name = "T4", .limits = {.cc = 75, .sm_count = 40}};
    const struct occ_run run = {.uuid = {1}, .pid = 1, .start_ns = T0, .level = "trace"};
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/gaps.XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->path, sizeof w->path, "%s/h.db", w->directory);
    check(occ_store_open(w->path, &options, &w->store, &err), &err);
    check(occ_store_put_run(w->store, &run, &w->run, &err), &err);
    check(occ_store_put_device(w->store, &device, &w->device, &err), &err);
    check(occ_store_put_kernel(w->store, "k", 1, &w->kernels[0], &err), &err);
    check(occ_store_put_kernel(w->store, "l", 2, &w->kernels[1], &err), &err);
    put_config(w, 0, w->kernels[0], 12);
    put_config(w, 1, w->kernels[1], 100000);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    char command[64];
    occ_store_close(w->store);
    (void)snprintf(command, sizeof command, "rm -r %s", w->directory);
    assert_int_equal(system(command), 0);
    free(w);
    return 0;
}

/* start and end after T0 */
struct timed {
    int64_t start, end;
    int config;
    uint64_t graph_node;
    uint32_t stream;
};

/* Each in a commit of its own, last first: the order of the file is not that of the starts. */
static void put(struct world *w, const struct timed *launches, size_t n)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = n; i-- > 0;) {
        const struct timed *l = &launches[i];
        const struct occ_store_launch one = {.start_ns = T0 + l->start,
                                             .duration_ns = (uint64_t)(l->end - l->start),
                                             .config = (uint32_t)w->config[l->config],
                                             .graph_node = l->graph_node,
                                             .stream = l->stream};
        check(occ_store_append(w->store, w->run, w->device, &one, 1, &err), &err);
        if (i % 16 == 0)
            check(occ_store_commit(w->store, &err), &err);
    }
}

static struct occ_gpu_use ask(struct world *w, const struct occ_filter *filter, struct occ_gpu_uses *uses)
{
    struct occ_error err = OCC_ERROR_INIT;
    check(occ_store_gpu_uses(w->store, filter, uses, &err), &err);
    assert_int_equal(uses->n_gpus, 1);
    return uses->gpus[0];
}

static void check_same_recorded(struct world *w, const struct occ_gpu_use *use)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_gpu_estimates estimates = {0};
    check(occ_store_gpu_estimates(w->store, &(struct occ_filter){.run = w->run}, NULL, &estimates, &err),
          &err);
    assert_int_equal(estimates.n, 1);
    assert_int_equal(estimates.list[0].recorded_ns, occ_gpu_recorded_ns(use));
    assert_int_equal(estimates.list[0].busy_ns, use->busy_ns);
    assert_int_equal(estimates.list[0].launch_ns, use->launch_ns);
    occ_gpu_estimates_free(&estimates);
}

/* The filter's GPU, by a part of its name and by number. */
static void test_asked_gpu(void **state)
{
    struct world *w = *state;
    const struct timed launches[] = {{0, 10 * US, 0, 0, 7}};
    char number[24], other[24];
    put(w, launches, 1);
    (void)snprintf(number, sizeof number, "%lld", (long long)w->device);
    (void)snprintf(other, sizeof other, "%lld", (long long)w->device + 1);
    const struct {
        const char *gpu;
        size_t n;
    } cases[] = {{NULL, 1}, {"t4", 1}, {number, 1}, {"H100", 0}, {other, 0}, {"-1", 0}, {"", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_gpu_uses uses = {0};
        const struct occ_filter filter = {.run = w->run, .gpu = cases[i].gpu};
        check(occ_store_gpu_uses(w->store, &filter, &uses, &err), &err);
        assert_int_equal(uses.n_gpus, cases[i].n);
        occ_gpu_uses_free(&uses);
    }
}

static void test_by_hand(void **state)
{
    struct world *w = *state;
    const struct timed launches[] = {
        {0, 10 * US, 0, 0, 7},         {4 * US, 6 * US, 1, 0, 8}, /* inside the first */
        {8 * US, 14 * US, 1, 0, 8},                               /* overlaps its end */
        {19 * US, 20 * US, 1, 0, 7},                              /* after 5 us: the hardware's */
        {26 * US, 27 * US, 0, 0, 7},                              /* after 6 us: the CPU's */
        {57 * US, 58 * US, 0, 3, 7},                              /* after 30 us, but in a graph */
        {158 * US, 159 * US, 1, 0, 7},                            /* after 100 us: the CPU's */
        {260 * US, 270 * US, 1, 0, 7},                            /* after 101 us: anything */
        {270 * US, 270 * US, 0, 0, 7},                            /* no gap, no time */
    };
    struct occ_gpu_uses uses;
    put(w, launches, 9);
    const struct occ_filter last = {.run = OCC_RUN_LAST};
    struct occ_gpu_use u = ask(w, &last, &uses);
    assert_int_equal(u.launches, 9);
    assert_int_equal(u.first_ns, T0);
    assert_int_equal(u.last_ns, T0 + 270 * US);
    assert_int_equal(u.busy_ns, 28 * US);
    assert_int_equal(u.gaps, 5);
    assert_int_equal(u.max_ns, 101 * US);
    assert_int_equal(u.queued_ns, 5 * US);
    assert_int_equal(u.launch_ns, 106 * US);
    assert_int_equal(u.short_ns, 141 * US);
    assert_int_equal(u.small_alone_ns, (4 + 2 + 1 + 1) * US);
    assert_float_equal(occ_gpu_launch_ratio(&u), 106.0 / 169, 1e-12);
    assert_true(occ_gpu_is_launch_bound(&u));
    assert_int_equal(uses.n_configs, 2);
    for (size_t i = 0; i < 2; i++) {
        bool small = uses.configs[i].config == w->config[0];
        assert_int_equal(uses.configs[i].launches, small ? 4 : 5);
        assert_int_equal(uses.configs[i].total_ns, (small ? 12 : 20) * US);
        assert_int_equal(uses.configs[i].alone_ns, (small ? 8 : 4 + 1 + 1 + 10) * US);
        assert_int_equal(uses.configs[i].launch_ns, (small ? 6 : 100) * US);
        assert_true(uses.configs[i].launch_bound);
    }
    occ_gpu_uses_free(&uses);
}

/* --since leaves out launches that began earlier; a hole in the recording is no gap. */
static void test_time_and_holes(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct timed launches[] = {
        {0, 10 * US, 1, 0, 7},
        {30 * US, 40 * US, 1, 0, 7},
        {60 * US, 70 * US, 1, 0, 7},
        {90 * US, 100 * US, 1, 0, 7},
    };
    const struct occ_period periods[] = {
        {.from_ns = T0 + 65 * US, .until_ns = T0 + 71 * US, .level = "nothing", .reason = "paused"},
        {.from_ns = T0 + 15 * US, .until_ns = T0 + 20 * US, .level = "trace", .reason = "no counters"},
        /* unordered, nested, and before the gap: they hide no later gap */
        {.from_ns = T0 + 1 * US, .until_ns = T0 + 9 * US, .level = "nothing", .reason = "paused"},
        {.from_ns = T0 + 2 * US, .until_ns = T0 + 3 * US, .level = "configs", .reason = "overhead"},
    };
    struct occ_gpu_uses uses;
    put(w, launches, 4);
    for (size_t i = 0; i < 4; i++)
        check(occ_store_put_period(w->store, w->run, &periods[i], &err), &err);
    struct occ_gpu_use u = ask(w, &(struct occ_filter){.run = w->run}, &uses);
    assert_int_equal(u.gaps, 2);
    assert_int_equal(u.launch_ns, 40 * US);
    assert_int_equal(u.unrecorded_ns, 20 * US);
    assert_int_equal(u.busy_ns, 40 * US);
    assert_int_equal(occ_gpu_recorded_ns(&u), 80 * US);
    check_same_recorded(w, &u);
    occ_gpu_uses_free(&uses);
    const struct occ_filter part = {.run = w->run, .since_ns = T0 + 1, .until_ns = T0 + 90 * US};
    u = ask(w, &part, &uses);
    assert_int_equal(u.launches, 2);
    assert_int_equal(u.gaps, 1);
    occ_gpu_uses_free(&uses);
    check(occ_store_gpu_uses(w->store, &(struct occ_filter){.run = w->run + 1}, &uses, &err), &err);
    assert_int_equal(uses.n_gpus, 0);
    occ_gpu_uses_free(&uses);
}

/* Sampling records 1 s in 10: gaps lie between that second's launches, and the other nine seconds are a hole.
 * A pause right after the second is a hole of any length. */
static void test_sampled(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000000000;
    const struct timed launches[] = {
        {0, 400 * US, 1, 0, 7},
        {450 * US, 850 * US, 1, 0, 7},
        {9 * second, 9 * second + 400 * US, 1, 0, 7},
        {9 * second + 600 * US, 9 * second + 700 * US, 1, 0, 7},
        {9 * second + 900 * US, 9 * second + 1000 * US, 1, 0, 7},
    };
    const struct occ_period periods[] = {
        {.from_ns = T0, .until_ns = T0 + 9 * second + 800 * US, .level = "configs", .reason = "sampled"},
        {.from_ns = T0 + 9 * second + 800 * US,
         .until_ns = T0 + 9 * second + 850 * US,
         .level = "nothing",
         .reason = "paused"},
    };
    struct occ_gpu_uses uses;
    put(w, launches, 5);
    for (size_t i = 0; i < 2; i++)
        check(occ_store_put_period(w->store, w->run, &periods[i], &err), &err);
    struct occ_gpu_use u = ask(w, &(struct occ_filter){.run = w->run}, &uses);
    assert_int_equal(u.gaps, 2);
    assert_int_equal(u.launch_ns, 50 * US);
    assert_int_equal(u.long_ns, 200 * US);
    assert_int_equal(u.unrecorded_ns, 9 * second - 850 * US + 200 * US);
    assert_int_equal(occ_gpu_recorded_ns(&u), 1650 * US);
    assert_int_equal(u.busy_ns, 1400 * US);
    check_same_recorded(w, &u);
    occ_gpu_uses_free(&uses);
}

/* ---- random timelines ---- */

enum { SPAN = 4000, N = 60 };

static void check_by_nanosecond(const struct timed *launches, size_t n, const struct occ_gpu_uses *uses,
                                const struct world *w)
{
    uint64_t busy = 0, alone[2] = {0}, gaps = 0, idle = 0, max = 0, run = 0;
    for (int64_t t = launches[0].start; t < SPAN; t++) {
        int active = 0, config = 0;
        for (size_t i = 0; i < n; i++)
            if (launches[i].start <= t && t < launches[i].end) {
                active++;
                config = launches[i].config;
            }
        busy += active > 0;
        alone[config] += active == 1;
        gaps += active > 0 && run > 0;
        idle += active > 0 ? run : 0; /* idle time before a kernel; idle time at the end is no gap */
        max = active > 0 && run > max ? run : max;
        run = active > 0 ? 0 : run + 1;
    }
    assert_int_equal(uses->gpus[0].busy_ns, busy);
    assert_int_equal(uses->gpus[0].gaps, gaps);
    assert_int_equal(uses->gpus[0].max_ns, max);
    assert_int_equal(uses->gpus[0].queued_ns, idle); /* all are short */
    assert_int_equal(uses->gpus[0].small_alone_ns, alone[0]);
    for (size_t i = 0; i < uses->n_configs; i++)
        assert_int_equal(uses->configs[i].alone_ns, alone[uses->configs[i].config != w->config[0]]);
}

/* The estimate of a short run is exact. */
static void check_estimate(const struct timed *launches, size_t n, struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_gpu_estimates estimates = {0};
    struct occ_map without = {0};
    uint64_t busy = 0, others = 0, duration = 0;
    int64_t end = 0;
    for (int64_t t = 0; t < SPAN; t++) {
        unsigned active = 0;
        for (size_t i = 0; i < n; i++)
            if (launches[i].start <= t && t < launches[i].end)
                active |= 1u << launches[i].config;
        busy += active != 0;
        others += (active & 1) != 0;
    }
    for (size_t i = 0; i < n; i++) {
        duration += (uint64_t)(launches[i].end - launches[i].start);
        end = launches[i].end > end ? launches[i].end : end;
    }
    assert_true(occ_map_put(&without, (uint64_t)w->kernels[1], 0) != OCC_MAP_NONE);
    check(occ_store_gpu_estimates(w->store, &(struct occ_filter){.run = w->run}, &without, &estimates, &err),
          &err);
    assert_int_equal(estimates.n, 1);
    assert_int_equal(estimates.list[0].run, w->run);
    assert_int_equal(estimates.list[0].device, w->device);
    assert_int_equal(estimates.list[0].launches, n);
    assert_int_equal(estimates.list[0].read, n);
    assert_int_equal(estimates.list[0].recorded_ns, end - launches[0].start);
    assert_int_equal(estimates.list[0].duration_ns, duration);
    assert_int_equal(estimates.list[0].busy_ns, busy);
    assert_int_equal(estimates.list[0].others_busy_ns, others);
    occ_gpu_estimates_free(&estimates);
    occ_map_free(&without);
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const struct timed *)a)->start, y = ((const struct timed *)b)->start;
    return (x > y) - (x < y);
}

static void test_random(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    srand(15);
    for (int round = 0; round < 20; round++) {
        struct timed launches[N];
        struct occ_gpu_uses uses;
        const struct occ_run run = {.uuid = {2, (uint8_t)round}, .pid = 2, .start_ns = T0, .level = "trace"};
        check(occ_store_put_run(w->store, &run, &w->run, &err), &err);
        for (int i = 0; i < N; i++) {
            int64_t start = 1 + rand() % (SPAN - 200);
            launches[i] = (struct timed){start, start + 1 + rand() % 150, rand() % 2, 0, 7};
        }
        qsort(launches, N, sizeof *launches, by_start);
        put(w, launches, N);
        (void)ask(w, &(struct occ_filter){.run = w->run}, &uses);
        check_by_nanosecond(launches, N, &uses, w);
        check_estimate(launches, N, w);
        occ_gpu_uses_free(&uses);
    }
}

static struct occ_gpu_estimate estimate_of(struct world *w, int64_t since, int64_t until)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter filter = {.since_ns = since ? T0 + since : 0, .until_ns = until ? T0 + until : 0};
    struct occ_gpu_estimates estimates = {0};
    struct occ_gpu_estimate one = {0};
    check(occ_store_gpu_estimates(w->store, &filter, NULL, &estimates, &err), &err);
    assert_true(estimates.n <= 1);
    if (estimates.n)
        one = estimates.list[0];
    occ_gpu_estimates_free(&estimates);
    return one;
}

/* Launches that run across the ends of the question's time are busy inside it. */
static void test_cut_launches(void **state)
{
    struct world *w = *state;
    const struct timed launches[] = {{0, 100 * US, 0, 0, 7}, {110 * US, 150 * US, 0, 0, 7}};
    put(w, launches, 2);
    const struct {
        int64_t since, until;
        uint64_t read, busy, recorded, entering, leaving, wait;
    } cases[] = {
        {0, 0, 2, 140, 150, 0, 0, 10}, {40, 0, 1, 100, 110, 60, 0, 10}, {0, 40, 1, 40, 40, 0, 60, 0},
        {40, 60, 0, 20, 20, 20, 0, 0}, {120, 130, 0, 10, 10, 10, 0, 0}, {40, 120, 1, 70, 80, 60, 30, 10},
        {120, 0, 0, 30, 30, 30, 0, 0}, {150, 0, 0, 0, 0, 0, 0, 0},      {100, 0, 1, 40, 50, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_gpu_estimate e = estimate_of(w, cases[i].since * US, cases[i].until * US);
        assert_int_equal(e.read, cases[i].read);
        assert_int_equal(e.busy_ns, cases[i].busy * US);
        assert_int_equal(e.entering_ns, cases[i].entering * US);
        assert_int_equal(e.leaving_ns, cases[i].leaving * US);
        assert_int_equal(e.launch_ns, cases[i].wait * US);
        if (i + 1 < sizeof cases / sizeof *cases) /* the last begins in a pause */
            assert_int_equal(e.recorded_ns, cases[i].recorded * US);
    }
}

/* The GPU uses that `show` adds to its rows cover only the last seconds. */
static void test_uses_of_configs(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct timed launches[] = {
        {0, 10 * US, 0, 0, 7},
        {INT64_C(20000000000), INT64_C(20000000000) + 10 * US, 0, 0, 7},
        {INT64_C(20000000000) + 30 * US, INT64_C(20000000000) + 40 * US, 0, 0, 7},
    };
    const struct occ_filter any = {0};
    struct occ_config_rows rows;
    put(w, launches, 3);
    check(occ_store_configs(w->store, &any, &rows, &err), &err);
    assert_int_equal(rows.n, 1);
    assert_int_equal(rows.rows[0].use.launches, 0);
    check(occ_store_add_uses(w->store, &any, &rows, &err), &err);
    assert_int_equal(rows.rows[0].launches, 3);
    assert_int_equal(rows.rows[0].use.launches, 2);
    assert_int_equal(rows.rows[0].use.launch_ns, 20 * US);
    assert_int_equal(rows.rows[0].use.alone_ns, 20 * US);
    occ_config_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_by_hand, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_asked_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_time_and_holes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut_launches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uses_of_configs, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
