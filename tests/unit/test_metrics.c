/*
 * daemon/serve/metrics without a daemon: the text, its escapes and hidden names, and the sums of launches of
 * a real store. The number of series stays below 700 with 8 GPUs, 200 programs, 500 kernels and 50 jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer/bill.h"
#include "daemon/serve/metrics/meter.h"
#include "store/gaps.h"
#include "support/pseudonym.h"

#define MINUTE_NS  INT64_C(60000000000)
#define NOW_NS     INT64_C(1000000000000)
#define EPOCH_NS   INT64_C(1700000000000000000)
#define RUNS       64
#define MS         INT64_C(1000000)
#define S          INT64_C(1000000000)
#define GPUS       32
#define TEXT_BYTES ((size_t)256 * 1024)

struct world {
    char directory[64], path[96];
    struct occ_store *store;
    struct occ_meter *meter;
    struct occ_run run;
    uint8_t gpu[16];
    uint64_t owner;
    struct occ_holes holes;           /* of every run of hold() */
    struct occ_period period;         /* of program 1; from_ns 0: none */
    enum occ_meter_standing standing; /* of every GPU */
    int64_t run_id, device, kernel;
    char text[TEXT_BYTES];
};

static void number_of(void *context, const uint8_t uuid[16], char text[16])
{
    (void)context;
    (void)snprintf(text, 16, "%u", uuid[0]);
}

static enum occ_meter_standing look_up(void *context, const uint8_t uuid[16], bool is_simulated)
{
    const struct world *w = context;
    (void)uuid;
    (void)is_simulated;
    return w->standing;
}

static int64_t wall_now_ns; /* the clock of held time */

static int64_t wall_ns(void)
{
    return wall_now_ns;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const struct occ_meter_options meter = {
        .max_runs = RUNS, .look_up = look_up, .name = number_of, .wall_ns = wall_ns, .context = w};
    if (!w)
        return -1;
    w->standing = OCC_METER_UNKNOWN;
    wall_now_ns = EPOCH_NS;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/occ-metrics-XXXXXX");
    if (!mkdtemp(w->directory))
        return -1;
    (void)snprintf(w->path, sizeof w->path, "%s/history.db", w->directory);
    *state = w;
    w->run = (struct occ_run){.start_ns = EPOCH_NS,
                              .user = "ann",
                              .job = {.slurm_job = "42", .trust = "claimed"},
                              .uuid = {0xab, 1}};
    return occ_store_open(w->path, &options, &w->store, NULL) == 0 &&
                   occ_meter_new(&meter, &w->meter, NULL) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    char command[128];
    occ_meter_free(w->meter);
    occ_holes_free(&w->holes);
    occ_store_close(w->store);
    (void)snprintf(command, sizeof command, "rm -rf %s", w->directory);
    int status = system(command);
    free(w);
    return status;
}

/* An H200, number `n`. */
static void use_device(struct world *w, uint8_t n)
{
    struct occ_store_device device = {.name = "NVIDIA H200", .limits = {.cc = 90, .sm_count = 132}};
    memset(w->gpu, n, sizeof w->gpu);
    memcpy(device.uuid, w->gpu, sizeof device.uuid);
    assert_int_equal(occ_store_put_device(w->store, &device, &w->device, NULL), 0);
}

static void use_kernel(struct world *w, const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    assert_int_equal(occ_store_put_kernel(w->store, name, hash, &w->kernel, NULL), 0);
}

static uint32_t make_config_of(struct world *w, uint32_t blocks, uint32_t registers)
{
    int64_t id = 0;
    const struct occ_launch_config config = {
        .kernel = w->kernel,
        .device = w->device,
        .launch = {.grid = {blocks, 1, 1}, .block = {1024, 1, 1}, .registers_per_thread = registers}};
    assert_int_equal(occ_store_put_config(w->store, &config, &id, NULL), 0);
    return (uint32_t)id;
}

/* A block of 1024 threads (32 warps) with 64 registers each takes all registers of an SM: 32 of 64 warps. */
static uint32_t make_config(struct world *w, uint32_t blocks)
{
    return make_config_of(w, blocks, 64);
}

/* `n` launches of a second each. */
static void launch(struct world *w, uint32_t config, size_t n, int64_t now_ns)
{
    const struct occ_store_launch row = {.start_ns = EPOCH_NS, .duration_ns = 1000000000, .config = config};
    for (size_t i = 0; i < n; i++)
        occ_meter_add(
            w->meter,
            &(struct occ_meter_launches){
                .owner = w->owner, .store = w->store, .gpu = w->gpu, .run = &w->run, .rows = &row, .n = 1},
            now_ns);
}

static const char *written(struct world *w, bool has_identity, int64_t now_ns)
{
    FILE *out = fmemopen(w->text, sizeof w->text, "w");
    assert_non_null(out);
    const struct occ_exposition e = {.out = out, .hostname = "node", .has_identity = has_identity};
    occ_meter_write(w->meter, &e, now_ns);
    assert_int_equal(fclose(out), 0);
    return w->text;
}

#define assert_says(text, what)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, what))                                                                             \
            fail_msg("no '%s' in:\n%s", what, text);                                                         \
    } while (0)

/* ---- the text ---- */

static void format_is_exact(void **state)
{
    struct world *w = *state;
    for (int open = 0; open < 2; open++) {
        FILE *out = fmemopen(w->text, sizeof w->text, "w");
        const struct occ_exposition e = {.out = out, .hostname = "n\"1\\\n", .is_openmetrics = open != 0};
        assert_true(occ_exposition_begin(&e, OCC_METRIC_LOST));
        occ_exposition_put(&e, OCC_METRIC_LOST,
                           (const struct occ_label[]){{"cause", "a"}, {"none", ""}, {NULL, NULL}}, 1.5);
        assert_false(occ_exposition_begin(&e, OCC_METRIC_RUN_INFO));
        occ_exposition_one(&e, OCC_METRIC_KERNEL_WASTED, 1);
        occ_exposition_one(&e, OCC_METRIC_STALLED, 9007199254740991.0);
        occ_exposition_end(&e);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(
            w->text, open ? "# HELP occtrace_launches_lost Launches that programs could not record\n"
                            "# TYPE occtrace_launches_lost counter\n"
                            "occtrace_launches_lost_total{hostname=\"n\\\"1\\\\\\n\",cause=\"a\"} 1.5\n"
                            "# HELP occtrace_store_stalled 1: a history cannot be written at the moment\n"
                            "# TYPE occtrace_store_stalled gauge\n"
                            "occtrace_store_stalled{hostname=\"n\\\"1\\\\\\n\"} 9007199254740991\n# EOF\n"
                          : "# HELP occtrace_launches_lost_total Launches that programs could not record\n"
                            "# TYPE occtrace_launches_lost_total counter\n"
                            "occtrace_launches_lost_total{hostname=\"n\\\"1\\\\\\n\",cause=\"a\"} 1.5\n"
                            "# HELP occtrace_store_stalled 1: a history cannot be written at the moment\n"
                            "# TYPE occtrace_store_stalled gauge\n"
                            "occtrace_store_stalled{hostname=\"n\\\"1\\\\\\n\"} 9007199254740991\n");
    }
}

/* ---- sums of launches ---- */

static void one_wave_of_half_the_warps(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    launch(w, make_config(w, 132), 3, NOW_NS);
    const char *text = written(w, true, NOW_NS);
#define GPU                                                                                                  \
    "{hostname=\"node\",gpu=\"7\",UUID=\"GPU-07070707-0707-0707-0707-070707070707\",modelName=\"NVIDIA "     \
    "H200\""
    assert_says(text, "occtrace_gpu_launches_total" GPU "} 3\n");
    assert_says(text, "occtrace_gpu_busy_seconds_total" GPU "} 3\n");
    assert_says(text, "occtrace_gpu_capacity_warp_seconds_total" GPU "} 25344\n"); /* 3 s * 132 * 64 */
    assert_says(text, "occtrace_gpu_wasted_warp_seconds_total" GPU "} 12672\n");
    assert_says(text, "occtrace_gpu_wasted_warp_seconds_by_cause_total" GPU ",cause=\"registers\"} 12672\n");
    assert_says(text, "occtrace_gpu_occupancy_ratio" GPU ",definition=\"theoretical\"} 0.5\n");
    assert_says(text, "occtrace_gpu_occupancy_ratio" GPU ",definition=\"expected_low\"} 0.5\n");
    assert_says(text, "occtrace_gpu_occupancy_ratio" GPU ",definition=\"expected_high\"} 0.5\n");
    assert_says(text, "occtrace_gpu_last_launch_timestamp_seconds" GPU "} 1700000001\n");
    assert_says(text, "occtrace_run_info{hostname=\"node\",run=\"ab010000000000000000000000000000\",UUID="
                      "\"GPU-07070707-0707-0707-0707-"
                      "070707070707\",user=\"ann\",slurm_job=\"42\",job_trust=\"claimed\"} 1\n");
    assert_says(text, "occtrace_kernel_wasted_warp_seconds_total{hostname=\"node\",kernel=\"mul\"} 12672\n");
    assert_null(strstr(text, "cause=\"tail\""));
}

/* ship.users: a hash is the keyed one of the warehouse's rows. */
static void users_are_as_the_setting_says(void **state)
{
    static const struct {
        struct occ_pseudonym users;
        const char *label;
    } rows[] = {
        {{.users = OCC_USERS_NAME}, ",user=\"ann\","},
        {{.users = OCC_USERS_HASH, .key = "Jefe", .key_bytes = 4}, ",user=\"hash:a559bed2d5b25628\","},
        {{.users = OCC_USERS_NONE}, "\",slurm_job=\"42\","}};
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct occ_meter_options options = {
            .max_runs = RUNS, .users = &rows[i].users, .look_up = look_up, .name = number_of, .context = w};
        occ_meter_free(w->meter);
        assert_int_equal(occ_meter_new(&options, &w->meter, NULL), 0);
        launch(w, make_config(w, 132), 3, NOW_NS);
        const char *text = written(w, true, NOW_NS);
        assert_says(text, rows[i].label);
        assert_int_equal(strstr(text, "ann") != NULL, i == 0);
    }
}

static void without_identity_nobody_is_named(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    launch(w, make_config(w, 132), 1, NOW_NS);
    const char *text = written(w, false, NOW_NS);
    assert_says(text, "occtrace_gpu_launches_total" GPU "} 1\n");
    const char *const hidden[] = {"ann", "42\"", "mul", "ab010000", "run", "kernel=", "user"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        assert_null(strstr(text, hidden[i]));
}

/* A scraper that comes every minute sees each launch: the gauge covers the last full minute, too. */
static void occupancy_is_of_more_than_a_minute(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t half = make_config(w, 132), quarter = make_config(w, 66);
    (void)written(w, true, NOW_NS);
    launch(w, half, 10, NOW_NS + 1);
    launch(w, quarter, 10, NOW_NS + MINUTE_NS);
    const char *text = written(w, true, NOW_NS + MINUTE_NS + 1);
    assert_says(text, "definition=\"expected_low\"} 0.375\n");
    text = written(w, true, NOW_NS + 2 * MINUTE_NS); /* the first minute has left */
    assert_says(text, "definition=\"expected_low\"} 0.25\n");
}

/* The gauge forgets launches of two minutes ago; counters do not. */
static void occupancy_is_of_the_last_minutes(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t half = make_config(w, 132), quarter = make_config(w, 66);
    launch(w, half, 10, NOW_NS);
    (void)written(w, true, NOW_NS + 2 * MINUTE_NS);
    (void)written(w, true, NOW_NS + 4 * MINUTE_NS);
    launch(w, quarter, 1, NOW_NS + 4 * MINUTE_NS);
    const char *text = written(w, true, NOW_NS + 4 * MINUTE_NS);
    assert_says(text, "definition=\"expected_low\"} 0.25\n");
    assert_says(text, "definition=\"expected_high\"} 0.25\n");
    assert_says(text, "occtrace_gpu_launches_total" GPU "} 11\n");
}

/* Two blocks per SM, and one in the last wave, which takes between half as long and as long. */
static void a_tail_makes_a_range(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    launch(w, make_config_of(w, 264 + 132, 32), 1, NOW_NS);
    const char *text = written(w, true, NOW_NS);
    assert_says(text, "definition=\"expected_low\"} 0.75\n");
    assert_says(text, "definition=\"expected_high\"} 0.83333");
    assert_says(text, "cause=\"tail\"} 2112\n"); /* a quarter of 132 * 64: wasted at the low end */
}

static size_t count_of(const char *text, const char *what);

/* The first one stays in run_info, so that the series goes on; the others are in series of their own. */
static void a_run_on_several_gpus(void **state)
{
    struct world *w = *state;
    static const uint8_t order[] = {7, 8, 7, 9, 8};
    for (size_t i = 0; i < sizeof order; i++) {
        use_device(w, order[i]);
        use_kernel(w, "_Z3mulPf");
        launch(w, make_config(w, 132), 1, NOW_NS);
        const char *text = written(w, true, NOW_NS);
        assert_int_equal(count_of(text, "occtrace_run_info{"), 1);
        assert_says(text, "occtrace_run_info{hostname=\"node\",run=\"ab010000000000000000000000000000\",UUID="
                          "\"GPU-07070707-");
        size_t gpus = i == 0 ? 0 : i < 3 ? 2 : 3; /* with one GPU run_info is enough */
        assert_int_equal(count_of(text, "occtrace_run_gpu_info{"), gpus);
    }
    assert_says(written(w, true, NOW_NS),
                "occtrace_run_gpu_info{hostname=\"node\",run="
                "\"ab010000000000000000000000000000\",UUID=\"GPU-09090909-0909-0909-"
                "0909-090909090909\"} 1\n");
    assert_null(strstr(written(w, false, NOW_NS), "occtrace_run_gpu_info"));
    for (uint8_t gpu = 10; gpu < 60; gpu++) {
        use_device(w, gpu);
        launch(w, make_config(w, 132), 1, NOW_NS);
    }
    assert_int_equal(count_of(written(w, true, NOW_NS), "occtrace_run_gpu_info{"), 16);
    occ_meter_end_run(w->meter, w->run.uuid, NOW_NS);
    assert_null(strstr(written(w, true, NOW_NS + 5 * MINUTE_NS), "occtrace_run_gpu_info{"));
}

static void a_run_goes_after_five_minutes(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    launch(w, make_config(w, 132), 1, NOW_NS);
    occ_meter_end_run(w->meter, w->run.uuid, NOW_NS);
    assert_says(written(w, true, NOW_NS + 5 * MINUTE_NS - 1), "occtrace_run_info{");
    assert_null(strstr(written(w, true, NOW_NS + 5 * MINUTE_NS), "occtrace_run_info{"));
}

static size_t count_series(const char *text)
{
    size_t n = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        n += *line != '#';
    return n;
}

static double sum_of(const char *text, const char *metric)
{
    double sum = 0;
    size_t n = strlen(metric);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, metric, n) == 0)
            sum += strtod(strstr(line, "} ") + 2, NULL);
    return sum;
}

/* Each launch counts for one job: a Slurm job with its account, a namespace, or none. */
static void jobs_add_up(void **state)
{
    static const char *const pairs[][2] = {
        {"occtrace_job_launches_total", "occtrace_gpu_launches_total"},
        {"occtrace_job_busy_seconds_total", "occtrace_gpu_busy_seconds_total"},
        {"occtrace_job_capacity_warp_seconds_total", "occtrace_gpu_capacity_warp_seconds_total"},
        {"occtrace_job_wasted_warp_seconds_total", "occtrace_gpu_wasted_warp_seconds_total"},
        {"occtrace_job_kernel_wasted_warp_seconds_total", "occtrace_kernel_wasted_warp_seconds_total"}};
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t mul = make_config(w, 132);
    use_kernel(w, "_Z3addPf");
    uint32_t add = make_config(w, 66);
    w->run.job.slurm_account = "phys";
    w->run.job.slurm_partition = "gpu\x1b\"";
    launch(w, mul, 3, NOW_NS);
    launch(w, add, 1, NOW_NS);
    w->run.job = (struct occ_run_job){.k8s_namespace = "team", .trust = "kernel"};
    launch(w, mul, 2, NOW_NS);
    w->run.job = (struct occ_run_job){.claims = "SLURM_JOB_ACCOUNT=none"}; /* of no job */
    launch(w, add, 5, NOW_NS);
    const char *text = written(w, true, NOW_NS);
    assert_says(text, "occtrace_job_launches_total{hostname=\"node\",slurm_job=\"42\",slurm_account=\"phys\","
                      "slurm_partition=\"gpu?\\\"\",job_trust=\"claimed\"} 4\n");
    assert_says(text, "user=\"ann\",slurm_job=\"42\",slurm_account=\"phys\",slurm_partition=\"gpu?\\\"\",");
    assert_says(text,
                "occtrace_job_launches_total{hostname=\"node\",namespace=\"team\",job_trust=\"kernel\"} 2\n");
    assert_says(text, "occtrace_job_launches_total{hostname=\"node\",slurm_job=\"(none)\"} 5\n");
    assert_says(text, "job_trust=\"kernel\",kernel=\"mul\"}");
    assert_null(strstr(text, "job_trust=\"kernel\",kernel=\"add\"}"));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_float_equal(sum_of(text, pairs[i][0]), sum_of(text, pairs[i][1]), 1e-6);
    text = written(w, true, NOW_NS + 61 * MINUTE_NS); /* an hour without a launch ends a job's series */
    assert_int_equal(count_of(text, "occtrace_job_launches_total{"), 1);
    assert_null(strstr(written(w, false, NOW_NS), "occtrace_job_"));
}

/* A job that takes the entry of another begins at 0, also in its kernels. */
static void an_entry_is_cleared(void **state)
{
    struct world *w = *state;
    char job[16];
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t mul = make_config(w, 132);
    w->run.job = (struct occ_run_job){.slurm_job = job};
    for (int i = 0; i < 16; i++) {
        (void)snprintf(job, sizeof job, "%d", i);
        launch(w, mul, 1, NOW_NS + i / 8 * 70 * MINUTE_NS);
        occ_meter_end_run(w->meter, w->run.uuid, NOW_NS); /* else it holds its GPU, and its job an entry */
    }
    const char *text = written(w, true, NOW_NS + 70 * MINUTE_NS);
    assert_int_equal(count_of(text, "occtrace_job_launches_total{"), 8);
    assert_float_equal(sum_of(text, "occtrace_job_launches_total"), 8, 0);
    assert_float_equal(sum_of(text, "occtrace_job_kernel_wasted_warp_seconds_total"),
                       sum_of(text, "occtrace_job_wasted_warp_seconds_total"), 1e-6);
    assert_says(text, "slurm_job=\"15\"");
}

#define PROGRAMS     200
#define KERNELS      500
#define SERVICE_MOST 92 /* series beside the meter's: 16 of the service, losses, samplers, 29 of coverage */
#define MOST         700

/* Each kernel's waste counts once, whether it has a series or not, and after an hour the worst have one. */
static void series_are_bounded(void **state)
{
    struct world *w = *state;
    char name[32], job[16];
    uint32_t last = 0;
    for (uint8_t gpu = 1; gpu <= 8; gpu++) {
        use_device(w, gpu);
        for (int k = 0; k < KERNELS; k++) {
            (void)snprintf(name, sizeof name, "_Z9kernel%03dPf", k);
            (void)snprintf(job, sizeof job, "%d", k % 50);
            w->run.job.slurm_job = job;
            w->run.uuid[0] = (uint8_t)(k % PROGRAMS);
            use_kernel(w, name);
            last = make_config(w, k % 2 ? 66 : 140);
            launch(w, last, 1, NOW_NS);
        }
    }
    wall_now_ns += 60 * S;
    const char *text = written(w, true, NOW_NS + 60 * S);
    double wasted = sum_of(text, "occtrace_gpu_wasted_warp_seconds_total");
    assert_true(count_of(text, "occtrace_job_held_seconds_total{") > 2 * 9);
    assert_true(count_series(text) + SERVICE_MOST < MOST);
    assert_true(count_series(text) > 8 * 8 + 2 * 64 + 21);
    assert_float_equal(sum_of(text, "occtrace_kernel_wasted_warp_seconds_total"), wasted, 1);
    assert_float_equal(sum_of(text, "occtrace_job_wasted_warp_seconds_total"), wasted, 1);
    assert_float_equal(sum_of(text, "occtrace_job_kernel_wasted_warp_seconds_total"), wasted, 1);
    assert_says(text, "slurm_job=\"(other)\"");
    assert_int_equal(count_of(text, "occtrace_job_launches_total{"), 9); /* 8 jobs and all others */
    assert_float_equal(sum_of(text, "occtrace_gpu_wasted_warp_seconds_by_cause_total"), wasted, 1);
    assert_null(strstr(text, "kernel499"));
    launch(w, last, 20, NOW_NS);
    assert_says(written(w, true, NOW_NS + 60 * MINUTE_NS), "kernel499");
    launch(w, last, 1, NOW_NS + 60 * MINUTE_NS);
    text = written(w, true, NOW_NS + 60 * MINUTE_NS);
    assert_says(text, "kernel=\"kernel499\"} 6336\n"); /* 132 * 64 * 3/4: one launch since the series began */
    assert_true(count_series(text) + SERVICE_MOST < MOST);
}

/* ---- places of series ---- */

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* `n` runs of an owner, with a launch each, named after the owner. */
static void launch_runs(struct world *w, uint64_t owner, uint32_t config, uint8_t n, int64_t now_ns)
{
    char user[16];
    (void)snprintf(user, sizeof user, "user%u", (unsigned)owner);
    w->owner = owner;
    w->run.user = user;
    for (uint8_t i = 0; i < n; i++) {
        memcpy(w->run.uuid, (uint8_t[16]){(uint8_t)owner, [15] = i}, 16);
        launch(w, config, 1, now_ns);
    }
    w->run.user = NULL;
}

static void assert_runs(struct world *w, int64_t now_ns, uint64_t owner, size_t n)
{
    char label[32];
    (void)snprintf(label, sizeof label, "user=\"user%u\"", (unsigned)owner);
    assert_int_equal(count_of(written(w, true, now_ns), label), n);
}

static void one_owner_does_not_have_all_runs(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    launch_runs(w, 1, config, 200, NOW_NS);
    assert_runs(w, NOW_NS, 1, RUNS);
    launch_runs(w, 2, config, 3, NOW_NS + 1);
    launch_runs(w, 1, config, 200, NOW_NS + 2); /* takes nothing back */
    assert_runs(w, NOW_NS + 2, 2, 3);
    assert_runs(w, NOW_NS + 2, 1, RUNS - 3);
    launch_runs(w, 3, config, 100, NOW_NS + 3);
    assert_runs(w, NOW_NS + 3, 2, 3);
    assert_in_range(count_of(written(w, true, NOW_NS + 3), "user=\"user3\""), RUNS / 2 - 2, RUNS / 2 - 1);
}

/* Run ids that differ only in the last byte make two series. */
static void ids_are_whole(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    launch_runs(w, 1, make_config(w, 132), 2, NOW_NS);
    const char *text = written(w, true, NOW_NS);
    assert_says(text, "run=\"01000000000000000000000000000000\",UUID=");
    assert_says(text, "run=\"01000000000000000000000000000001\",UUID=");
}

/* Launches once on each of `n` GPUs, from number `first` on. */
static void launch_gpus(struct world *w, uint64_t owner, uint8_t first, uint8_t n, int64_t now_ns)
{
    w->owner = owner;
    for (uint8_t i = 0; i < n; i++) {
        use_device(w, (uint8_t)(first + i));
        launch(w, make_config(w, 132), 1, now_ns);
    }
}

static void assert_gpu(struct world *w, int64_t now_ns, const char *number, const char *launches)
{
    char start[64], *line;
    (void)snprintf(start, sizeof start, "occtrace_gpu_launches_total{hostname=\"node\",%s", number);
    line = strstr(written(w, false, now_ns), start);
    if (!line)
        fail_msg("no %s in:\n%s", start, w->text);
    line = strstr(line, "} ") + 2;
    *strchr(line, '\n') = '\0';
    assert_string_equal(line, launches);
}

#define SERIES "occtrace_gpu_launches_total{"

/* An owner that comes first with invented GPUs leaves series for other owners' GPUs, and each launch counts
 * once. */
static void one_owner_does_not_have_all_gpus(void **state)
{
    struct world *w = *state;
    use_kernel(w, "_Z3mulPf");
    launch_gpus(w, 1, 100, GPUS + 8, NOW_NS);
    assert_int_equal(count_of(written(w, false, NOW_NS), SERIES), GPUS + 1);
    assert_gpu(w, NOW_NS, "UUID=\"(other)\"", "8");
    launch_gpus(w, 2, 10, 2, NOW_NS + 1);
    launch_gpus(w, 2, 10, 2, NOW_NS + 2);
    launch_gpus(w, 1, 100, GPUS + 8, NOW_NS + 3);
    assert_gpu(w, NOW_NS + 3, "gpu=\"10\"", "2");
    assert_gpu(w, NOW_NS + 3, "gpu=\"11\"", "2");
    assert_int_equal(count_of(written(w, false, NOW_NS + 3), SERIES), GPUS + 1);
    assert_gpu(w, NOW_NS + 3, "UUID=\"(other)\"", "18"); /* 8 twice, and 2 on GPUs that lost their places */
}

static void gpus_of_the_driver_come_first(void **state)
{
    struct world *w = *state;
    use_kernel(w, "_Z3mulPf");
    launch_gpus(w, 1, 100, GPUS, NOW_NS);
    w->standing = OCC_METER_LISTED;
    launch_gpus(w, 1, 10, 8, NOW_NS);
    w->standing = OCC_METER_UNKNOWN;
    launch_gpus(w, 2, 50, 40, NOW_NS);
    w->standing = OCC_METER_INVENTED;
    launch_gpus(w, 3, 200, 1, NOW_NS);
    const char *text = written(w, false, NOW_NS);
    for (int i = 10; i < 18; i++) {
        char gpu[64];
        (void)snprintf(gpu, sizeof gpu, SERIES "hostname=\"node\",gpu=\"%d\"", i);
        assert_says(text, gpu);
    }
    assert_null(strstr(text, "gpu=\"200\""));
    assert_float_equal(sum_of(text, SERIES), GPUS - 8 - 12 + 8 + 40 + 1, 0); /* 20 series have ended */
}

/* A day without launches ends the series of a GPU that the driver does not list. A program that lives keeps
 * its own. */
static void silent_series_end(void **state)
{
    struct world *w = *state;
    const int64_t day_ns = 24 * 60 * MINUTE_NS;
    use_kernel(w, "_Z3mulPf");
    launch_gpus(w, 1, 100, 2, NOW_NS);
    w->standing = OCC_METER_LISTED;
    launch_gpus(w, 1, 10, 1, NOW_NS);
    (void)written(w, true, NOW_NS + day_ns - 1);
    assert_says(w->text, "gpu=\"100\"");
    assert_says(w->text, "gpu=\"101\"");
    (void)written(w, true, NOW_NS + day_ns);
    assert_null(strstr(w->text, "gpu=\"100\""));
    assert_null(strstr(w->text, "gpu=\"101\""));
    assert_says(w->text, "occtrace_run_info{");
    assert_gpu(w, NOW_NS + day_ns, "gpu=\"10\"", "1");
    w->standing = OCC_METER_UNKNOWN;
    launch_gpus(w, 1, 101, 1, NOW_NS + day_ns + 1); /* it comes back */
    assert_gpu(w, NOW_NS + day_ns + 1, "gpu=\"101\"", "1");
}

/* ---- held time ---- */

/* A GPU, number `n`, of a model. */
static void use_model(struct world *w, uint8_t n, const char *model)
{
    struct occ_store_device device = {.name = model, .limits = {.cc = 90, .sm_count = 132}};
    memset(w->gpu, n, sizeof w->gpu);
    memcpy(device.uuid, w->gpu, sizeof device.uuid);
    assert_int_equal(occ_store_put_device(w->store, &device, &w->device, NULL), 0);
}

/* A launch of program `program` of job `program`, at milliseconds since EPOCH_NS. */
static void hold(struct world *w, uint8_t program, uint32_t config, int64_t start_ms, int64_t duration_ms)
{
    char job[8];
    const struct occ_store_launch row = {
        .start_ns = EPOCH_NS + start_ms * MS, .duration_ns = (uint64_t)(duration_ms * MS), .config = config};
    (void)snprintf(job, sizeof job, "%u", program);
    const struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = job}, .uuid = {0xcd, program}};
    occ_meter_add(w->meter,
                  &(struct occ_meter_launches){.owner = w->owner,
                                               .store = w->store,
                                               .gpu = w->gpu,
                                               .run = &run,
                                               .holes = &w->holes,
                                               .rows = &row,
                                               .n = 1},
                  NOW_NS + wall_now_ns - EPOCH_NS);
}

static void end_program(struct world *w, uint8_t program)
{
    const uint8_t uuid[16] = {0xcd, program};
    occ_meter_end_run(w->meter, uuid, NOW_NS + wall_now_ns - EPOCH_NS);
}

/* Returns the held seconds of a job ("": of all) in a part ("": in all), `at_ms` after EPOCH_NS. */
static double held(struct world *w, int64_t at_ms, const char *job, const char *part)
{
    static const char name[] = "\nocctrace_job_held_seconds_total{";
    char label[32], part_label[32];
    double sum = 0;
    wall_now_ns = EPOCH_NS + at_ms * MS;
    const char *at = written(w, true, NOW_NS + at_ms * MS);
    (void)snprintf(label, sizeof label, "slurm_job=\"%s%s", job, job[0] ? "\"" : "");
    (void)snprintf(part_label, sizeof part_label, "part=\"%s%s", part, part[0] ? "\"" : "");
    while ((at = strstr(at, name)) != NULL) {
        char line[512];
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
        if (strstr(line, label) && strstr(line, part_label))
            sum += strtod(strrchr(line, ' '), NULL);
        at++;
    }
    return sum;
}

static void assert_seconds(double value, double expected)
{
    if (!(value > expected - 1e-6 && value < expected + 1e-6))
        fail_msg("%.9g s instead of %.9g s", value, expected);
}

/* Two programs share a GPU for four of ten seconds; half of the warp slots are used, by the model. */
static void shared_time_is_held_once(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    for (int i = 0; i < 10; i++)
        hold(w, 1, config, 1000 * i, 500);
    hold(w, 1, config, 9900, 100);
    hold(w, 2, config, 4000, 4000);
    end_program(w, 1);
    end_program(w, 2);
    assert_seconds(held(w, 60000, "1", ""), 8);
    assert_seconds(held(w, 60000, "2", ""), 2);
    assert_seconds(held(w, 60000, "1", "idle"), 8 * 0.49);
    assert_seconds(held(w, 60000, "1", "lost"), 8 * 0.51 / 2);
    assert_seconds(held(w, 60000, "1", "used"), 8 * 0.51 / 2);
    assert_seconds(held(w, 60000, "2", "idle"), 0);
    assert_seconds(held(w, 600000, "", ""), 10); /* ended programs hold nothing */
    assert_says(w->text, "modelName=\"NVIDIA H200\",part=\"used\"} ");
}

/* A loss has no time: from the arrival of launches before it to the next arrival, gaps are unknown. */
static void gaps_with_lost_launches_are_unknown(void **state)
{
    struct world *w = *state;
    const struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = "1"}, .uuid = {0xcd, 1}};
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    for (int second = 0; second < 60; second += 10) {
        const struct occ_store_launch row = {
            .start_ns = EPOCH_NS + second * 1000 * MS, .duration_ns = 1000 * MS, .config = config};
        wall_now_ns = EPOCH_NS + (second + 1) * 1000 * MS;
        occ_meter_add(w->meter,
                      &(struct occ_meter_launches){.store = w->store,
                                                   .gpu = w->gpu,
                                                   .run = &run,
                                                   .rows = &row,
                                                   .n = 1,
                                                   .lost = second >= 30 ? 7 : 0},
                      NOW_NS + wall_now_ns - EPOCH_NS);
    }
    double idle_s = held(w, 65000, "1", "idle"), unknown_s = held(w, 65000, "1", "unknown");
    assert_seconds(held(w, 65000, "1", ""), 60);
    assert_seconds(idle_s + unknown_s, 54);
    assert_true(unknown_s >= 9 && unknown_s <= 27); /* lost between the arrivals at 21 s and 31 s */
    assert_true(idle_s >= 27);
}

/* A program that launches nothing goes on to hold the GPU, until its end; its job's series stays. */
static void an_idle_program_holds_its_gpu(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    hold(w, 1, make_config(w, 132), 0, 1000);
    assert_seconds(held(w, 65000, "1", ""), 60);
    assert_seconds(held(w, 65000, "1", "idle"), 59);
    assert_seconds(held(w, 4 * 3600000 + 5000, "1", ""), 4 * 3600);
    end_program(w, 1);
    assert_seconds(held(w, 5 * 3600000, "1", ""), 4 * 3600);
}

static void waits_and_communication_are_parts(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z38ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
    uint32_t communication = make_config(w, 132);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    hold(w, 1, communication, 0, 1000);
    hold(w, 1, config, 500, 1500); /* half of the communication is overlapped */
    const struct occ_store_launch late = {
        .start_ns = EPOCH_NS + 2000 * MS + 50000, .duration_ns = 1000 * MS - 50000, .config = config};
    const struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = "1"}, .uuid = {0xcd, 1}};
    occ_meter_add(
        w->meter,
        &(struct occ_meter_launches){.store = w->store, .gpu = w->gpu, .run = &run, .rows = &late, .n = 1},
        NOW_NS);
    end_program(w, 1);
    assert_seconds(held(w, 60000, "1", ""), 3);
    assert_seconds(held(w, 60000, "1", "communication"), 0.5);
    assert_seconds(held(w, 60000, "1", "waiting"), 50e-6);
    assert_seconds(held(w, 60000, "1", "idle"), 0);
}

/* Random programs: counters never fall, parts are never negative, and a GPU is held at most all the time. */
static void held_time_only_grows(void **state)
{
    struct world *w = *state;
    double last = 0;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    srand48(48);
    for (int64_t ms = 0; ms < 600000; ms += 700) {
        uint8_t program = (uint8_t)(lrand48() % 6);
        wall_now_ns = EPOCH_NS + ms * MS;
        if (lrand48() % 5 == 0)
            end_program(w, program);
        else if (lrand48() % 20 == 0 && ms > 60000) /* recorded at its end */
            hold(w, program, config, ms - 60000, 60000);
        else
            hold(w, program, config, ms > 2000 ? ms - lrand48() % 2000 : ms, lrand48() % 900);
        double now = held(w, ms, "", "");
        assert_true(now >= last - 1e-9 && now <= (double)ms / 1000 + 1e-6);
        last = now;
    }
    assert_true(last > 500);
}

static void a_clock_that_is_set_holds_nothing(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    hold(w, 1, make_config(w, 132), 0, 1000);
    assert_seconds(held(w, 15000, "1", ""), 10);
    wall_now_ns = EPOCH_NS + 86400 * S;
    (void)written(w, true, NOW_NS + 16 * S);
    wall_now_ns += 10 * S;
    const char *text = written(w, true, NOW_NS + 26 * S);
    assert_says(text, "part=\"idle\"} 19\n"); /* 9 before, 10 after */
}

/* Many short programs hold their own time only, and no memory after their end. */
static void short_programs_add_up(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    for (int64_t i = 0; i < 20000; i++) {
        const struct occ_store_launch row = {
            .start_ns = EPOCH_NS + i * 25 * MS, .duration_ns = 20 * MS, .config = config};
        struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = "1"}};
        memcpy(run.uuid, &i, sizeof i);
        wall_now_ns = EPOCH_NS + i * 25 * MS + S;
        occ_meter_add(
            w->meter,
            &(struct occ_meter_launches){.store = w->store, .gpu = w->gpu, .run = &run, .rows = &row, .n = 1},
            NOW_NS + wall_now_ns - EPOCH_NS);
        occ_meter_end_run(w->meter, run.uuid, NOW_NS + wall_now_ns - EPOCH_NS);
    }
    assert_seconds(held(w, 600000, "1", ""), 400);
    assert_seconds(held(w, 600000, "1", "idle"), 0);
}

/* Kernels are recorded after their end: time that nobody held before counts then, in any order of scrapes and
 * launches, and a GPU is never held twice. */
static void a_long_kernel_counts_at_its_end(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    for (int64_t s = 0; s < 600; s += 15)
        assert_seconds(held(w, s * 1000, "", ""), 0);
    wall_now_ns = EPOCH_NS + 600 * S;
    hold(w, 1, config, 0, 600000);
    hold(w, 2, config, 300000, 300000); /* also late; the GPU's time is counted */
    assert_seconds(held(w, 600000, "", ""), 595);
    end_program(w, 1);
    end_program(w, 2);
    assert_seconds(held(w, 700000, "", ""), 600);
    assert_seconds(held(w, 700000, "1", ""), 595 + 2.5);
    assert_seconds(held(w, 700000, "1", "used") + held(w, 700000, "1", "lost"), 595 + 2.5);
    wall_now_ns = EPOCH_NS + 800 * S;
    hold(w, 3, config, 650000, 150000); /* nobody held the GPU from 600 s to 650 s */
    end_program(w, 3);
    assert_seconds(held(w, 900000, "3", ""), 150);
}

/* A program that is known is idle while its kernel runs; later idle time makes up for the difference. */
static void a_later_long_kernel_is_made_up_for(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    hold(w, 1, config, 0, 1000);
    for (int64_t s = 2; s < 310; s += 15)
        (void)held(w, s * 1000, "", "");
    wall_now_ns = EPOCH_NS + 310 * S;
    hold(w, 1, config, 10000, 300000);
    assert_seconds(held(w, 310000, "1", ""), 305);
    assert_seconds(held(w, 705000, "1", ""), 700);
    assert_seconds(held(w, 705000, "1", "idle"), 700 - 301);
}

/* A scrape before the daemon reads the rings of programs that ran without it. */
static void a_daemon_that_was_away_counts(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    assert_seconds(held(w, 120000, "", ""), 0);
    for (int64_t s = 0; s < 120; s++)
        hold(w, 1, config, s * 1000, 1000);
    assert_seconds(held(w, 305000, "1", ""), 300);
    assert_seconds(held(w, 305000, "1", "idle"), 180);
}

static void a_forged_start_holds_a_day(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    (void)held(w, 1000, "", "");
    hold(w, 2, config, INT64_C(86400000) * 365, 1000); /* the future */
    assert_seconds(held(w, 15000, "2", ""), 0);
    hold(w, 1, config, 1 - EPOCH_NS / MS, 1);
    assert_seconds(held(w, 20000, "1", ""), 86400);
    assert_seconds(held(w, 20000, "2", ""), 0);
}

/* Programs of an owner with hundreds of GPUs each: there are no such GPUs, or only perhaps. */
static void one_owner_does_not_hold_all(void **state)
{
    static const enum occ_meter_standing standings[] = {OCC_METER_INVENTED, OCC_METER_UNKNOWN};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        w->standing = standings[i];
        use_device(w, 7);
        use_kernel(w, "_Z3mulPf");
        uint32_t config = make_config(w, 132);
        wall_now_ns = EPOCH_NS + S;
        w->owner = 666;
        for (int j = 0; j < 4096; j++) {
            w->gpu[0] = (uint8_t)j;
            w->gpu[1] = (uint8_t)(j >> 8);
            w->gpu[2] = 1;
            hold(w, (uint8_t)(66 + j / 256), config, 0, 1);
        }
        w->standing = OCC_METER_LISTED;
        w->owner = 1;
        use_device(w, 9);
        hold(w, 1, make_config(w, 132), 0, 1000);
        assert_seconds(held(w, 60000, "1", ""), 55);
        if (standings[i] == OCC_METER_INVENTED)
            assert_seconds(held(w, 60000, "", ""), 55);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
        w = *state;
    }
}

/* ---- held time without recording ---- */

/* The level of program 1 changes: the daemon tells the meter and the history. */
static void change_level(struct world *w, int64_t at_ms, const char *level)
{
    const uint8_t uuid[16] = {0xcd, 1};
    int64_t at_ns = EPOCH_NS + at_ms * MS;
    if (w->period.from_ns) {
        w->period.until_ns = at_ns;
        assert_int_equal(occ_store_put_period(w->store, w->run_id, &w->period, NULL), 0);
        occ_holes_end(&w->holes, at_ns);
    }
    w->period = (struct occ_period){.from_ns = 0};
    if (strcmp(level, "trace") != 0) {
        const struct occ_hole hole = {{at_ns, INT64_MAX},
                                      strcmp(level, "configs") == 0 ? OCC_GAP_SAMPLED_NS : 0};
        w->period = (struct occ_period){.from_ns = at_ns, .level = level, .reason = "paused"};
        assert_int_equal(occ_store_put_period(w->store, w->run_id, &w->period, NULL), 0);
        assert_int_equal(occ_holes_add(&w->holes, hole, NULL), 0);
    }
    occ_meter_set_holes(w->meter, w->owner, uuid, &w->holes);
}

static void store_program(struct world *w)
{
    const struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = "1"}, .uuid = {0xcd, 1}};
    assert_int_equal(occ_store_put_run(w->store, &run, &w->run_id, NULL), 0);
}

/* A launch of program 1, for the meter and the history. */
static void hold_and_store(struct world *w, uint32_t config, int64_t start_ms, int64_t duration_ms)
{
    const struct occ_store_launch row = {
        .start_ns = EPOCH_NS + start_ms * MS, .duration_ns = (uint64_t)(duration_ms * MS), .config = config};
    assert_int_equal(occ_store_append(w->store, w->run_id, w->device, &row, 1, NULL), 0);
    hold(w, 1, config, start_ms, duration_ms);
}

/* Each part of the series, `at_ms` after EPOCH_NS, is the bill's. */
static void assert_is_bill(struct world *w, int64_t at_ms)
{
#define PART_WORD(name, word, text) word,
    static const char *const words[] = {OCC_BILL_PARTS(PART_WORD)};
    const struct occ_bill_run run = {.run = w->run_id, .key = "1", .has_epoch = true, .is_billed = true};
    const struct occ_bill_history history = {.store = w->store, .runs = &run, .n_runs = 1};
    const struct occ_prices no_prices = {.n = 0};
    const struct occ_bill_question question = {.until_ns = INT64_MAX,
                                               .histories = &history,
                                               .n_histories = 1,
                                               .by = OCC_BILL_BY_RUN,
                                               .prices = &no_prices};
    struct occ_bill bill = {0};
    assert_int_equal(occ_store_commit(w->store, NULL), 0);
    assert_int_equal(occ_bill_make(&question, &bill, NULL), 0);
    assert_int_equal(bill.n, 1);
    assert_seconds(held(w, at_ms, "1", ""), bill.rows[0].held_s);
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        assert_seconds(held(w, at_ms, "1", words[i]), bill.rows[0].part_s[i]);
    occ_bill_free(&bill);
}

/* Five busy seconds, ten seconds without recording, and a recorded pause: read each second, as Prometheus
 * does. */
static void time_without_recording_is_as_in_the_bill(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    store_program(w);
    for (int64_t s = 0; s < 40; s++) {
        wall_now_ns = EPOCH_NS + s * S;
        if (s >= 1 && s <= 5)
            hold_and_store(w, config, (s - 1) * 1000, 1000);
        if (s == 5)
            change_level(w, 5000, "nothing");
        if (s == 15)
            change_level(w, 15000, "trace");
        if (s == 17)
            hold_and_store(w, config, 15500, 1000);
        if (s == 25)
            hold_and_store(w, config, 24000, 1000);
        if (s == 25)
            end_program(w, 1);
        (void)held(w, s * 1000, "", "");
        if (s == 14)
            assert_seconds(held(w, s * 1000, "1", "unknown"), 4);
        if (s == 14)
            assert_seconds(held(w, s * 1000, "1", "idle"), 0);
    }
    assert_seconds(held(w, 60000, "1", "unknown"), 10.5);
    assert_seconds(held(w, 60000, "1", "idle"), 7.5);
    assert_is_bill(w, 60000);
}

/* A program without launches after the begin of a pause holds its GPU, and nobody knows whether it is idle.
 */
static void an_unfinished_pause_is_unknown(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    store_program(w);
    hold(w, 1, config, 0, 1000);
    assert_seconds(held(w, 15000, "1", "idle"), 9);
    change_level(w, 12000, "nothing");
    assert_seconds(held(w, 105000, "1", "unknown"), 88);
    assert_seconds(held(w, 105000, "1", "idle"), 11);
    end_program(w, 1);
    assert_seconds(held(w, 200000, "1", ""), 100);
}

/* The log of a ring is ahead of its launches, as after a start of the daemon: the rule is that of the holes,
 * whatever the order. */
static void levels_are_known_before_their_launches(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    store_program(w);
    change_level(w, 1000, "nothing");
    change_level(w, 2000, "trace");
    change_level(w, 5000, "configs");
    change_level(w, 9000, "trace");
    wall_now_ns = EPOCH_NS; /* no time is divided before all launches are read */
    for (int64_t ms = 0; ms < 1000; ms += 250)
        hold_and_store(w, config, ms, 200);
    hold_and_store(w, config, 2100, 900);  /* 1.15 s are unknown */
    hold_and_store(w, config, 5100, 100);  /* 2.1 s */
    hold_and_store(w, config, 5600, 100);  /* 0.4 s are a pause of the program */
    hold_and_store(w, config, 6200, 2900); /* 0.5 s */
    hold_and_store(w, config, 10000, 1000);
    end_program(w, 1);
    assert_seconds(held(w, 60000, "1", "unknown"), 1.15 + 2.1 + 0.5);
    assert_is_bill(w, 60000);
}

/* Random launches and levels: the bill's parts, once later idle time has made up for gaps that began before
 * the period. */
static void random_levels_are_as_in_the_bill(void **state)
{
    static const char *const levels[] = {"nothing", "configs", "trace"};
    for (int trial = 0; trial < 5; trial++) {
        struct world *w = *state;
        int64_t end_ms = 0;
        srand48(61 + trial);
        use_device(w, 7);
        use_kernel(w, "_Z3mulPf");
        uint32_t config = make_config(w, 132);
        store_program(w);
        for (int64_t ms = 500; ms < 120000; ms += 500) {
            wall_now_ns = EPOCH_NS + ms * MS;
            if (lrand48() % 12 == 0)
                change_level(w, ms - 100, levels[lrand48() % 3]);
            int64_t duration_ms = 1 + lrand48() % 300, start_ms = ms - 100 - duration_ms;
            if (lrand48() % 3 == 0 && start_ms >= end_ms) {
                hold_and_store(w, config, start_ms, duration_ms);
                end_ms = start_ms + duration_ms;
            }
            (void)held(w, ms, "", "");
        }
        change_level(w, 120000, "trace");
        wall_now_ns = EPOCH_NS + 120 * S;
        hold_and_store(w, config, 119999, 1);
        wall_now_ns = EPOCH_NS + 1000 * S;
        hold_and_store(w, config, 999000, 1000);
        end_program(w, 1);
        assert_is_bill(w, 1020000);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static size_t held_models(struct world *w, int64_t at_ms, const char *model)
{
    char series[128];
    (void)held(w, at_ms, "", "");
    (void)snprintf(series, sizeof series, ",modelName=\"%s\",part=\"used\"} ", model);
    return count_of(w->text, series);
}

/* Invented models do not keep the driver's from their series, and no name makes a series twice. */
static void one_owner_does_not_have_all_models(void **state)
{
    static const char *const invented[] = {"(other)", "A", "B", "C", "D", "E"};
    struct world *w = *state;
    use_kernel(w, "_Z3mulPf");
    wall_now_ns = EPOCH_NS + S;
    w->owner = 666;
    for (uint8_t i = 0; i < 6; i++) {
        use_model(w, (uint8_t)(10 + i), invented[i]);
        hold(w, 66, make_config(w, 132), 0, 1000);
    }
    assert_int_equal(held_models(w, 10000, "(other)"), 1);
    assert_int_equal(held_models(w, 10000, "D"), 1);
    assert_int_equal(held_models(w, 10000, "E"), 0);
    w->owner = 1;
    use_model(w, 50, "F"); /* unlisted, of another owner */
    hold(w, 1, make_config(w, 132), 10000, 1000);
    assert_int_equal(held_models(w, 20000, "F"), 1);
    w->standing = OCC_METER_LISTED;
    use_model(w, 60, "G");
    hold(w, 1, make_config(w, 132), 20000, 1000);
    assert_int_equal(held_models(w, 30000, "G"), 1);
    assert_int_equal(held_models(w, 30000, "(other)"), 1);
    assert_true(held(w, 30000, "", "") < 8 * 25 + 1);
}

/* The series of a model end an hour after its last program; a later program begins at 0. */
static void a_model_is_released(void **state)
{
    struct world *w = *state;
    const int64_t hour_ms = 3600000;
    use_kernel(w, "_Z3mulPf");
    wall_now_ns = EPOCH_NS + S;
    w->standing = OCC_METER_LISTED;
    for (uint8_t i = 0; i < 4; i++) {
        use_model(w, (uint8_t)(10 + i), (const char *const[]){"A", "B", "C", "D"}[i]);
        hold(w, (uint8_t)(1 + i), make_config(w, 132), 0, 1000);
    }
    end_program(w, 1);
    use_model(w, 20, "E"); /* a listed model leaves no other one */
    hold(w, 5, make_config(w, 132), 0, 1000);
    assert_int_equal(held_models(w, 10000, "A"), 1);
    assert_int_equal(held_models(w, 10000, "E"), 0);
    (void)held(w, 120000, "", "");
    assert_int_equal(held_models(w, 120000 + hour_ms, "A"), 0);
    assert_int_equal(held_models(w, 120000 + hour_ms, "B"), 1);
    use_model(w, 21, "F");
    hold(w, 6, make_config(w, 132), hour_ms + 120000, 1000);
    assert_int_equal(held_models(w, 140000 + hour_ms, "F"), 1);
    assert_seconds(held(w, 140000 + hour_ms, "1", ""), 0);
    assert_int_equal(held_models(w, 140000 + hour_ms, "D"), 1); /* its program is idle */
}

/* Kernels of a second without pauses, while the clock is set back by an hour; some records are late. */
static void a_clock_set_back_leaves_programs_busy(void **state)
{
    struct world *w = *state;
    use_device(w, 7);
    use_kernel(w, "_Z3mulPf");
    uint32_t config = make_config(w, 132);
    const char *text = NULL;
    for (int64_t s = 0; s < 700; s++) {
        int64_t set_s = s < 100 ? 0 : -3600;
        const struct occ_store_launch row = {.start_ns = EPOCH_NS + (s + (s < 102 ? 0 : set_s)) * S,
                                             .duration_ns = (uint64_t)S,
                                             .config = config};
        const struct occ_run run = {.start_ns = EPOCH_NS, .job = {.slurm_job = "1"}, .uuid = {0xcd, 1}};
        wall_now_ns = EPOCH_NS + (s + 1 + set_s) * S;
        text = written(w, true, NOW_NS + (s + 1) * S);
        occ_meter_add(
            w->meter,
            &(struct occ_meter_launches){.store = w->store, .gpu = w->gpu, .run = &run, .rows = &row, .n = 1},
            NOW_NS + (s + 1) * S);
    }
    text = written(w, true, NOW_NS + 700 * S);
    double all_s = sum_of(text, "occtrace_job_held_seconds_total");
    assert_in_range((int)all_s, 685, 695);
    const char *idle = strstr(text, "part=\"idle\"} ");
    assert_true(!idle || strtod(strstr(idle, "} ") + 2, NULL) < 10);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(format_is_exact),
        T(one_wave_of_half_the_warps),
        T(users_are_as_the_setting_says),
        T(without_identity_nobody_is_named),
        T(occupancy_is_of_more_than_a_minute),
        T(occupancy_is_of_the_last_minutes),
        T(a_tail_makes_a_range),
        T(a_run_on_several_gpus),
        T(a_run_goes_after_five_minutes),
        T(jobs_add_up),
        T(an_entry_is_cleared),
        T(series_are_bounded),
        T(one_owner_does_not_have_all_runs),
        T(ids_are_whole),
        T(one_owner_does_not_have_all_gpus),
        T(gpus_of_the_driver_come_first),
        T(silent_series_end),
        T(shared_time_is_held_once),
        T(gaps_with_lost_launches_are_unknown),
        T(an_idle_program_holds_its_gpu),
        T(waits_and_communication_are_parts),
        T(held_time_only_grows),
        T(a_clock_that_is_set_holds_nothing),
        T(short_programs_add_up),
        T(a_long_kernel_counts_at_its_end),
        T(a_later_long_kernel_is_made_up_for),
        T(a_daemon_that_was_away_counts),
        T(a_forged_start_holds_a_day),
        T(one_owner_does_not_hold_all),
        T(time_without_recording_is_as_in_the_bill),
        T(an_unfinished_pause_is_unknown),
        T(levels_are_known_before_their_launches),
        T(random_levels_are_as_in_the_bill),
        T(one_owner_does_not_have_all_models),
        T(a_model_is_released),
        T(a_clock_set_back_leaves_programs_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
