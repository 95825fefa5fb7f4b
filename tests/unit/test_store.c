/* The history as a whole: exact answers whatever is rolled up, files of all sorts, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/names.h"
#include "test_store_world.h"
#include "sanitized.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define BEGIN  (INT64_C(1700000000) * SECOND)

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_make_directory(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    occ_store_close(w->store);
    world_remove_directory(w);
    free(w);
    return 0;
}

static void commit(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_commit(w->store, &err) != 0)
        fail_msg("%s", err.message);
}

static void finish(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_finish(w->store, &err) != 0)
        fail_msg("%s", err.message);
}

static struct occ_store *open_reader(const struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *reader = NULL;
    if (occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &reader, &err) != 0)
        fail_msg("%s", err.message);
    return reader;
}

static int try_open(const char *path, enum occ_store_mode mode, struct occ_error *err)
{
    struct occ_store *store = NULL;
    int rc =
        occ_store_open(path, &(struct occ_store_options){.mode = mode, .busy_timeout_ms = 50}, &store, err);
    occ_store_close(store);
    return rc;
}

/* ---- answers ---- */

static void answers_are_exact_at_every_moment(void **state)
{
    struct world *w = *state;
    struct occ_filter all = {0};
    w->options.chunk_rows = 700;
    world_open(w);
    struct occ_store *reader = open_reader(w);
    world_check(w, reader, &all);
    for (int step = 0; step < 40; step++) {
        int64_t now = BEGIN + step * 9 * MINUTE;
        world_append(w, step % 2, now, 9 * MINUTE, 300);
        if (step % 3 == 0) /* late ones, some older than an hour */
            world_append(w, step % 2, now - 3 * HOUR, 3 * HOUR, 20);
        commit(w);
        world_check_random(w, reader, 3);
        world_check_rollups(w, reader);
    }
    finish(w);
    world_check(w, reader, &all);
    world_check_random(w, reader, 40);
    world_check_rollups(w, reader);
    assert_int_equal(world_number(reader, "SELECT count(*) FROM stored_chunk WHERE NOT is_full"), 0);
    assert_int_equal(world_number(reader, "SELECT sum(launches) FROM stored_hour"), w->n);
    occ_store_close(reader);
}

static void a_run_that_ended_may_get_more(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 500;
    world_open(w);
    world_append(w, 0, BEGIN, HOUR, 900);
    world_append(w, 1, BEGIN, HOUR, 900);
    finish(w);
    occ_store_close(w->store);
    world_open(w);
    world_append(w, 0, BEGIN - 2 * HOUR, 5 * HOUR, 800);
    commit(w);
    world_check_random(w, w->store, 20);
    world_check_rollups(w, w->store);
    finish(w);
    world_check_random(w, w->store, 20);
    world_check_rollups(w, w->store);
}

static void a_lost_writer_is_continued(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 600;
    for (int life = 0; life < 12; life++) {
        world_open(w);
        int64_t now = BEGIN + life * 25 * MINUTE;
        world_append(w, life % 2, now, 25 * MINUTE, 400);
        commit(w);
        world_append(w, 0, now - HOUR, 2 * HOUR, 50);
        commit(w);
        size_t kept = w->n;
        world_append(w, 0, now, MINUTE, 100); /* not committed: lost */
        w->n = kept;
        world_check_random(w, w->store, 3);
        world_check_rollups(w, w->store);
        occ_store_close(w->store);
        w->store = NULL;
    }
    world_open(w);
    finish(w);
    world_check_random(w, w->store, 20);
    world_check_rollups(w, w->store);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_chunk WHERE NOT is_full"), 0);
}

static void slow_lanes_do_not_fill_the_file_with_chunks(void **state)
{
    struct world *w = *state;
    world_open(w);
    for (int i = 0; i < 400; i++) {
        world_append(w, 0, BEGIN + i * SECOND, SECOND, 3);
        commit(w);
    }
    assert_true(world_number(w->store, "SELECT count(*) FROM stored_chunk") < 140);
    world_check_random(w, w->store, 10);
    finish(w);
    world_check_random(w, w->store, 10);
    assert_int_equal(world_number(w->store, "SELECT sum(launches) FROM stored_chunk"), 1200);
}

static void memory_stays_bounded(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    world_open(w);
    for (int i = 0; i < 30; i++) {
        world_append(w, i % 2, BEGIN + i * SECOND, SECOND, 20000);
        commit(w);
        assert_true(occ_store_memory_bytes(w->store) <= 12u << 20);
    }
    world_check_random(w, w->store, 2);
}

/* ---- facts ---- */

/* A daemon that continues a run of this history after another daemon asks what the history has. */
static void a_run_is_found_by_its_ring(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_loss loss = {"ring_full", 12};
    const struct occ_cost_total cost = {"helper_cpu_ns", 1000};
    const uint8_t uuid[16] = {77}, other[16] = {78};
    struct occ_run run = {.start_ns = BEGIN, .hostname = "node", .source.tool = "trace"};
    const struct occ_period period = {BEGIN, BEGIN + 5, "nothing", OCC_STORE_ELSEWHERE};
    uint64_t total = 9;
    int64_t id = 0, at_ns = 0;
    bool was_elsewhere = true;
    world_open(w);
    memcpy(run.uuid, uuid, sizeof run.uuid);
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(occ_store_put_losses(w->store, id, &loss, 1, &err), 0);
    assert_int_equal(occ_store_put_costs(w->store, id, &cost, 1, &err), 0);
    commit(w);
    assert_int_equal(occ_store_run_total(w->store, OCC_RUN_LOSS, uuid, "ring_full", &total, &err), 0);
    assert_int_equal(total, 12);
    assert_int_equal(occ_store_run_total(w->store, OCC_RUN_COST, uuid, "helper_cpu_ns", &total, &err), 0);
    assert_int_equal(total, 1000);
    assert_int_equal(occ_store_run_total(w->store, OCC_RUN_LOSS, uuid, "log_full", &total, &err), 0);
    assert_int_equal(total, 0);
    assert_int_equal(occ_store_run_total(w->store, OCC_RUN_COST, other, "helper_cpu_ns", &total, &err), 0);
    assert_int_equal(total, 0);
    assert_int_equal(occ_store_run_recorded(w->store, other, &at_ns, &was_elsewhere, &err), OCC_E_NOT_FOUND);
    assert_int_equal(occ_store_run_recorded(w->store, uuid, &at_ns, &was_elsewhere, &err), 0);
    assert_true(at_ns == BEGIN && !was_elsewhere);
    assert_int_equal(occ_store_put_period(w->store, id, &period, &err), 0);
    run.end_ns = BEGIN + MINUTE;
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    commit(w);
    assert_int_equal(occ_store_run_recorded(w->store, uuid, &at_ns, &was_elsewhere, &err), 0);
    assert_true(at_ns == BEGIN + MINUTE && was_elsewhere);
}

static void facts_are_kept_with_the_launches(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const uint8_t ring[16] = {42}, other[16] = {43};
    uint64_t next = 99;
    world_open(w);
    struct occ_loss losses[] = {{"ring_full", 12}, {"bad_times", 0}, {"log_full", 3}};
    struct occ_cost_total costs[] = {{"helper_cpu_ns", 1000}, {"process_cpu_ns", 5000}};
    assert_int_equal(occ_store_put_losses(w->store, w->run[0], losses, 3, &err), 0);
    losses[0].count = 13;
    assert_int_equal(occ_store_put_losses(w->store, w->run[0], losses, 1, &err), 0);
    assert_int_equal(occ_store_put_costs(w->store, w->run[0], costs, 2, &err), 0);
    assert_int_equal(occ_store_put_position(w->store, OCC_POSITION_RING, ring, UINT64_MAX - 5, &err), 0);
    assert_int_equal(occ_store_put_position(w->store, OCC_POSITION_MEASURED, ring, 7, &err), 0);
    world_append(w, 0, BEGIN, MINUTE, 10);
    assert_int_equal(occ_store_position(w->store, OCC_POSITION_RING, ring, &next, &err), 0);
    assert_int_equal(next, 0); /* not committed */
    commit(w);
    assert_int_equal(occ_store_position(w->store, OCC_POSITION_RING, ring, &next, &err), 0);
    assert_true(next == UINT64_MAX - 5);
    assert_int_equal(occ_store_position(w->store, OCC_POSITION_MEASURED, ring, &next, &err), 0);
    assert_int_equal(next, 7);
    assert_int_equal(occ_store_position(w->store, OCC_POSITION_RING, other, &next, &err), 0);
    assert_int_equal(next, 0);
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM run WHERE lost = 16 AND lost_causes = "
                                  "'log_full 3, ring_full 13' AND helper_cpu_ns = 1000 AND "
                                  "process_cpu_ns = 5000 AND overhead_ratio = 0.2 AND launches = 10 AND "
                                  "session_id = 'a'"),
                     1);
    assert_int_equal(occ_store_session_launches(w->store, "a", &next, &err), 0);
    assert_int_equal(next, 10);
    assert_int_equal(occ_store_session_launches(w->store, "none", &next, &err), 0);
    assert_int_equal(next, 0);
}

static void put_period(struct world *w, int64_t from, int64_t until, const char *level, const char *reason)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_period period = {.from_ns = from, .until_ns = until, .level = level, .reason = reason};
    assert_int_equal(occ_store_put_period(w->store, w->run[0], &period, &err), 0);
}

static void periods_with_less_are_kept(void **state)
{
    struct world *w = *state;
    world_open(w);
    put_period(w, BEGIN, 0, "nothing", "paused");
    put_period(w, BEGIN, BEGIN + 5, "nothing", "paused"); /* sets the end of the same period */
    put_period(w, BEGIN + 7, 0, "nothing", "in doubt");
    put_period(w, BEGIN + 7, BEGIN + 7, "nothing", "in doubt"); /* an empty period is withdrawn */
    put_period(w, BEGIN + 9, 0, "configs", "overhead");
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM recording_period"), 2);
    assert_int_equal(world_number(w->store,
                                  "SELECT until_ns - from_ns FROM recording_period WHERE level = 'nothing' "
                                  "AND reason = 'paused'"),
                     5);
    assert_int_equal(
        world_number(w->store, "SELECT until_ns IS NULL FROM recording_period WHERE level = 'configs'"), 1);
    assert_int_equal(world_number(w->store, "UPDATE stored_run SET end_ns = 77 RETURNING 0"), 0);
    assert_int_equal(world_number(w->store, "SELECT until_ns FROM recording_period WHERE level = 'configs'"),
                     77);
}

static uint32_t put_range(struct world *w, int run, const char *path, const char *phase)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint32_t range = 0;
    assert_int_equal(occ_store_put_range(w->store, w->run[run], path, phase, &range, &err), 0);
    return range;
}

static void ranges_are_interned_by_run(void **state)
{
    struct world *w = *state;
    world_open(w);
    assert_int_equal(put_range(w, 0, "step #/decoder", NULL), 3);
    assert_int_equal(put_range(w, 0, "step #/decoder", "backward"), 4);
    assert_int_equal(put_range(w, 0, "step #/decoder", "backward"), 4);
    assert_int_equal(put_range(w, 1, "step #/\x01\xff", NULL), 4);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM range"), 2 * WORLD_RANGES + 2);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM range WHERE phase = 'backward' AND "
                                            "range = 'step #/decoder' AND range_id = 4 AND run_id = 1"),
                     1);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM range WHERE range GLOB '*[^ -~]*' AND "
                                            "range NOT LIKE '%?%' AND range NOT LIKE '%\ufffd%'"),
                     0);
}

/* Ranges beyond the maximum become a single range; a long path keeps its end, the innermost ranges. */
static void ranges_are_bounded(void **state)
{
    struct world *w = *state;
    char path[3 * OCC_STORE_RANGE_BYTES];
    world_open(w);
    memset(path, 'x', sizeof path);
    (void)snprintf(path + sizeof path - 10, 10, "/innermost");
    (void)put_range(w, 0, path, NULL);
    assert_int_equal(world_number(w->store, "SELECT length(range) FROM range WHERE range LIKE '%/innermos'"),
                     OCC_STORE_RANGE_BYTES);
    for (int i = WORLD_RANGES + 1; i < OCC_STORE_RANGES_MAX; i++) {
        (void)snprintf(path, sizeof path, "layer %d", i);
        assert_int_equal(put_range(w, 0, path, "forward"), i + 1);
    }
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "one more %d", i);
        assert_int_equal(put_range(w, 0, path, "forward"), OCC_STORE_RANGES_MAX + 1);
    }
    assert_int_equal(put_range(w, 0, "step #", NULL), 1);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM range WHERE run_id = 1 AND "
                                            "range = '(other ranges)' AND phase IS NULL"),
                     1);
    assert_int_equal(put_range(w, 1, "one more 0", "forward"), WORLD_RANGES + 1); /* another run's */
}

/* The world's launches of a range (0: any or none) by a walk. */
static uint64_t walk_ns(const struct world *w, const struct occ_filter *f, bool (*is_in)(uint32_t range),
                        int64_t range)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct occ_store_launch *l = &w->launches[i].launch;
        if ((f->graphs && l->graph_node == 0) || (f->range_regex && !is_in(l->range)) ||
            (f->run && w->launches[i].run != f->run) || (range >= 0 && l->range != range))
            continue;
        ns += l->duration_ns;
    }
    return ns;
}

static bool is_encoder(uint32_t range)
{
    return range == 2;
}

static bool is_coder(uint32_t range)
{
    return range == 2 || range == 3;
}

static bool is_none(uint32_t range)
{
    (void)range;
    return false;
}

static void check_ranges(struct world *w, const struct occ_filter *filter, bool (*is_in)(uint32_t range))
{
    static const char *const paths[] = {NULL, "step #", "step #/encoder", "step #/decoder"};
    struct occ_top top = {0}, kernels = {0};
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t expected = walk_ns(w, filter, is_in, -1), all = 0, by_kernel = 0;
    assert_int_equal(occ_store_top(w->store, filter, OCC_TOP_BY_RANGE, &top, &err), 0);
    assert_int_equal(occ_store_top(w->store, filter, OCC_TOP_BY_KERNEL, &kernels, &err), 0);
    for (size_t i = 0; i < kernels.n; i++)
        by_kernel += kernels.rows[i].total_ns;
    for (size_t i = 0; i < top.n; i++) {
        const char *path = top.rows[i].kernel.short_name;
        int64_t range = 0;
        while (range < 4 && (path ? !paths[range] || strcmp(path, paths[range]) != 0 : paths[range] != NULL))
            range++;
        assert_true(range < 4);
        assert_true(top.rows[i].total_ns > 0);
        assert_int_equal(top.rows[i].total_ns, walk_ns(w, filter, is_in, range));
        all += top.rows[i].total_ns;
    }
    assert_int_equal(all, expected);
    assert_int_equal(by_kernel, expected);
    occ_top_free(&top);
    occ_top_free(&kernels);
}

static void ranges_and_graphs_are_asked_for(void **state)
{
    struct world *w = *state;
    struct occ_top top = {0};
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (int i = 0; i < 4; i++) {
        world_append(w, i % 2, BEGIN, HOUR, 1500);
        commit(w);
    }
    check_ranges(w, &(struct occ_filter){0}, NULL);
    check_ranges(w, &(struct occ_filter){.graphs = true}, NULL);
    check_ranges(w, &(struct occ_filter){.range_regex = "coder"}, is_coder);
    check_ranges(w, &(struct occ_filter){.range_regex = "/encoder$", .graphs = true, .run = w->run[1]},
                 is_encoder);
    check_ranges(w, &(struct occ_filter){.range_regex = "nothing"}, is_none);
    assert_int_equal(
        occ_store_top(w->store, &(struct occ_filter){.range_regex = "("}, OCC_TOP_BY_KERNEL, &top, &err),
        OCC_E_USAGE);
}

/* The time of launches of a path in a phase, by kernel, against a walk. */
static void launches_are_grouped_by_layer(void **state)
{
    struct world *w = *state;
    struct occ_top top = {0};
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    uint32_t range = put_range(w, 0, "step #/encoder", "backward");
    struct occ_store_launch launch = {
        .start_ns = BEGIN, .duration_ns = 10, .config = (uint32_t)w->config[0], .range = 2};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], &launch, 1, &err), 0);
    launch = (struct occ_store_launch){
        .start_ns = BEGIN + 20, .duration_ns = 7, .config = (uint32_t)w->config[0], .range = range};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], &launch, 1, &err), 0);
    launch =
        (struct occ_store_launch){.start_ns = BEGIN + 40, .duration_ns = 5, .config = (uint32_t)w->config[0]};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], &launch, 1, &err), 0);
    commit(w);
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_LAYER, &top, &err), 0);
    assert_int_equal(top.n, 3);
    for (size_t i = 0; i < top.n; i++) {
        const struct occ_row_kernel *kernel = &top.rows[i].kernel;
        assert_non_null(kernel->demangled);
        assert_int_equal(top.rows[i].total_ns, !kernel->range ? 5 : kernel->is_backward ? 7 : 10);
        assert_true(!kernel->range || strcmp(kernel->range, "step #/encoder") == 0);
    }
    occ_top_free(&top);
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_RANGE, &top, &err), 0);
    assert_int_equal(top.n, 2); /* both phases in one row */
    occ_top_free(&top);
}

static void a_run_lists_its_launches(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    struct occ_store_launch launch = {.start_ns = BEGIN, .duration_ns = 10, .config = (uint32_t)w->config[0]};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], &launch, 1, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM run"), 2);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM run WHERE kernels = 1 AND configs = 1 AND "
                                            "devices = 'Device A' AND gpu_time_ns = 10"),
                     1);
}

static void putting_again_updates_a_run(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t id = 0;
    world_open(w);
    struct occ_run run = {.uuid = {1},
                          .pid = 100,
                          .start_ns = 1000,
                          .end_ns = 2000,
                          .level = "trace",
                          .level_reason = "no\x1b[31mcounters"};
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(id, w->run[0]);
#define RUN(condition) "SELECT count(*) FROM run WHERE run_id = 1 AND " condition
#define REASON         "level_reason = 'no?[31mcounters'"
    assert_int_equal(id, 1);
    /* the end is committed with the launches: a daemon killed before the commit leaves no ended run */
    assert_int_equal(world_number(w->store, RUN("end_ns IS NULL")), 1);
    assert_int_equal(occ_store_commit(w->store, &err), 0);
    /* the earlier executable is kept */
    assert_int_equal(world_number(w->store, RUN("end_ns = 2000 AND exe = '/bin/app' AND " REASON)), 1);
    /* account and array are of the job */
    run.job = (struct occ_run_job){.slurm_job = "7", .slurm_account = "phys", .slurm_array_task = "3"};
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    run.job = (struct occ_run_job){.slurm_job = "7"};
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    run.job = (struct occ_run_job){.slurm_job = NULL};
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(world_number(w->store, RUN("slurm_account = 'phys' AND slurm_array_task = '3'")), 1);
    run.job = (struct occ_run_job){.slurm_job = "8", .slurm_partition = "gpu"};
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(world_number(w->store, RUN("slurm_account IS NULL AND slurm_partition = 'gpu'")), 1);
    run.level = run.level_reason = NULL; /* unknown: keeps the earlier level */
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(world_number(w->store, RUN("level = 'trace' AND " REASON)), 1);
    run.level = "full"; /* a higher level, without a reason */
    assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
    assert_int_equal(world_number(w->store, RUN("level = 'full' AND level_reason IS NULL")), 1);
#undef RUN
#undef REASON
}

static void configs_carry_the_models_answer(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_config_rows configs;
    world_open(w);
    for (int i = 0; i < WORLD_CONFIGS; i++) {
        struct occ_store_launch launch = {
            .start_ns = BEGIN, .duration_ns = 1000, .config = (uint32_t)w->config[i]};
        assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[i], &launch, 1, &err), 0);
    }
    commit(w);
    assert_int_equal(occ_store_configs(w->store, &(struct occ_filter){0}, &configs, &err), 0);
    assert_int_equal(configs.n, WORLD_CONFIGS);
    for (size_t i = 0; i < configs.n; i++) {
        const struct occ_config_row *row = &configs.rows[i];
        struct occ_result result;
        memset(&result, 0, sizeof result);
        enum occ_status status = occ_analyse(&row->limits, &row->launch, &result);
        assert_int_equal(row->analysed, status == OCC_OK);
        if (status != OCC_OK) {
            assert_string_equal(row->refused, occ_status_text(status));
            assert_true(isnan(row->waste.warp_seconds));
            continue;
        }
        assert_null(row->refused);
        assert_true(result.theoretical == row->result.theoretical);
        assert_true(result.expected_elapsed_low == row->result.expected_elapsed_low);
        assert_memory_equal(result.limit, row->result.limit, sizeof result.limit);
        assert_memory_equal(result.cause, row->result.cause, sizeof result.cause);
        assert_int_equal(result.limiters, row->result.limiters);
        assert_int_equal(result.full_waves, row->result.full_waves);
        assert_int_equal(result.partial_blocks, row->result.partial_blocks);
        assert_int_equal(result.by_design, row->result.by_design);
    }
    occ_config_rows_free(&configs);
    assert_int_equal(occ_store_configs(w->store, &(struct occ_filter){.below_achieved = 0.3}, &configs, &err),
                     0);
    assert_true(configs.n > 0 && configs.n < WORLD_CONFIGS);
    for (size_t i = 0; i < configs.n; i++)
        assert_true(configs.rows[i].result.expected_achieved_low < 0.3);
    occ_config_rows_free(&configs);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE theoretical IS NULL"), 1);
}

static void add_seen(struct world *w, int config, double achieved, double elapsed, double blocks)
{
    struct occ_error err = OCC_ERROR_INIT;
    const double ns = 1e15; /* all of the time */
    struct occ_measured_sums sums = {.direct = 1};
    const struct {
        enum occ_measured_value which;
        double value;
    } values[] = {{OCC_MEASURED_achieved, achieved},
                  {OCC_MEASURED_elapsed, elapsed},
                  {OCC_MEASURED_resident_blocks, blocks}};
    for (size_t i = 0; i < 3; i++) {
        if (isnan(values[i].value))
            continue;
        sums.sum[values[i].which] = values[i].value * ns;
        sums.ns[values[i].which] = ns;
    }
    assert_int_equal(
        occ_store_add_measured(w->store, BEGIN / MINUTE, w->run[0], (uint32_t)w->config[config], &sums, &err),
        0);
}

static size_t count_configs_below(struct world *w, struct occ_filter filter, int64_t wanted, bool *ret_found)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_config_rows configs;
    assert_int_equal(occ_store_configs(w->store, &filter, &configs, &err), 0);
    *ret_found = false;
    for (size_t i = 0; i < configs.n; i++)
        *ret_found |= configs.rows[i].id == wanted;
    size_t n = configs.n;
    occ_config_rows_free(&configs);
    return n;
}

/* A mean of measured launches is withheld if launches without values of their own ran under other conditions.
 */
static void means_are_said_where_launches_stand_for_all(void **state)
{
    (void)state;
    struct occ_measurement m;
    struct occ_measured_sums sums = {.regression = 10, .grouped = 10};
    sums.sum[OCC_MEASURED_elapsed] = 0.9 * 1e6;
    sums.ns[OCC_MEASURED_elapsed] = 1e6;
    sums.sum[OCC_MEASURED_group_elapsed] = 0.5 * 1.1e6;
    sums.ns[OCC_MEASURED_group_elapsed] = 1.1e6; /* 10 % longer on average counts as alike */
    occ_measured_means(&sums, 0, &m);
    assert_true(m.source == OCC_FROM_REGRESSED && fabs(m.elapsed - 0.9) < 1e-12);
    sums.ns[OCC_MEASURED_group_elapsed] = 2.5e6;
    occ_measured_means(&sums, 0, &m);
    assert_true(m.withheld == OCC_WITHHELD_DURATIONS && isnan(m.elapsed));
    sums.grouped = 1;
    sums.ns[OCC_MEASURED_group_elapsed] = 0.1e6; /* a small part of the time */
    occ_measured_means(&sums, 0, &m);
    assert_true(m.source == OCC_FROM_REGRESSED);
    sums.grouped = 0;
    sums.ns[OCC_MEASURED_group_elapsed] = 0;
    occ_measured_means(&sums, 0, &m);
    assert_true(m.source == OCC_FROM_REGRESSED && fabs(m.elapsed - 0.9) < 1e-12);
}

/* The filter uses a configuration's measured occupancy, from the runs and minutes of the filter, if there is
 * one; otherwise the expected occupancy. */
static void low_occupancy_is_the_measured_one(void **state)
{
    struct world *w = *state;
    struct occ_config_rows configs;
    struct occ_error err = OCC_ERROR_INIT;
    bool found;
    world_open(w);
    world_append(w, 0, BEGIN, 5 * MINUTE, 4000);
    commit(w);
    assert_int_equal(occ_store_configs(w->store, &(struct occ_filter){0}, &configs, &err), 0);
    int best = 0;
    double most = 0;
    for (size_t i = 0; i < configs.n; i++)
        for (int k = 0; k < WORLD_CONFIGS; k++)
            if (w->config[k] == configs.rows[i].id && configs.rows[i].result.expected_achieved_low > most) {
                most = configs.rows[i].result.expected_achieved_low;
                best = k;
            }
    occ_config_rows_free(&configs);
    const struct occ_filter low = {.below_achieved = 0.01};
    (void)count_configs_below(w, low, w->config[best], &found);
    assert_true(most > 0.5 && !found);
    add_seen(w, best, 0.005, 0.004, NAN);
    commit(w);
    (void)count_configs_below(w, low, w->config[best], &found);
    assert_true(found);
    struct occ_filter later = {.below_achieved = 0.01, .since_ns = BEGIN + 2 * MINUTE};
    (void)count_configs_below(w, later, w->config[best], &found);
    assert_false(found);
}

/* All parts and the used part of a kernel sum to 1. `seen`: all its configurations were measured completely.
 */
static void assert_parts_add_up(struct world *w, bool seen)
{
    struct occ_top top;
    struct occ_error err = OCC_ERROR_INIT;
    size_t checked = 0;
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_KERNEL, &top, &err), 0);
    for (size_t i = 0; i < top.n; i++) {
        const struct occ_top_row *row = &top.rows[i];
        double sum = 0;
        for (int part = 0; part < OCC_PART_COUNT; part++)
            sum += part == OCC_CAUSE_PARTIAL_WARP || isnan(row->part[part]) ? 0 : row->part[part];
        bool refused = false; /* a configuration that the model refuses has no parts */
        for (int k = 0; k < WORLD_CONFIGS; k++)
            refused |= k == WORLD_CONFIGS - 1 && w->config_kernel[k] == row->kernel.id;
        if (refused)
            continue;
        checked++;
        assert_true(fabs(sum + row->used - 1) < 1e-9);
        assert_true(row->waste_warp_seconds > 0);
        if (seen) {
            assert_true(fabs(row->measured_ratio - 1) < 1e-9);
            assert_true(fabs(row->used - row->elapsed) < 1e-9);
        }
    }
    assert_true(checked > 0);
    occ_top_free(&top);
}

/* A configuration is filed under the cause that its own row has, measured or not. */
static void assert_causes_are_those_of_configs(struct world *w)
{
    static const enum occ_top_by by[] = {OCC_TOP_BY_CAUSE, OCC_TOP_BY_CONFIG};
    struct occ_top tops[2];
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_store_tops(w->store, &(struct occ_filter){0}, by, 2, tops, &err), 0);
    for (size_t i = 0; i < tops[0].n; i++) {
        const char *cause = tops[0].rows[i].kernel.short_name;
        uint64_t configs = 0;
        for (size_t k = 0; k < tops[1].n; k++)
            configs +=
                strcmp(tops[1].rows[k].main_cause ? tops[1].rows[k].main_cause : "", cause ? cause : "") == 0;
        assert_int_equal(tops[0].rows[i].configs, configs);
    }
    occ_top_free(&tops[0]);
    occ_top_free(&tops[1]);
}

static void what_counters_saw_adds_up_by_kernel(void **state)
{
    struct world *w = *state;
    world_open(w);
    world_append(w, 0, BEGIN, 5 * MINUTE, 4000);
    for (int half = 0; half < 2; half++) {
        for (int i = half; i < WORLD_CONFIGS; i += 2)
            add_seen(w, i, i % 3 == 0 ? NAN : 0.3, 0.2 + i * 0.01, i % 3 == 1 ? 1.5 : NAN);
        commit(w);
        assert_parts_add_up(w, half == 1);
        assert_causes_are_those_of_configs(w);
    }
}

/* Measures a launch with a probability that depends on its run and minute; returns the launch's waste by the
 * measurement, or else by the model. */
static double measure(struct world *w, const struct world_launch *l)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_launch *launch = &l->launch;
    int64_t minute = launch->start_ns / MINUTE;
    double ns = (double)launch->duration_ns, elapsed = (double)(world_random(w) % 1000) / 1000;
    bool is_measured = minute % 3 && world_random(w) % 10 < (l->run == w->run[0] ? 7 : 2);
    struct occ_measured_sums sums = {.regression = 1};
    sums.ns[OCC_MEASURED_elapsed] = sums.ns[OCC_MEASURED_achieved] = ns;
    sums.sum[OCC_MEASURED_elapsed] = ns * elapsed;
    sums.sum[OCC_MEASURED_achieved] = ns * (elapsed + 0.001);
    if (!is_measured && minute % 2) { /* with others alone */
        sums = (struct occ_measured_sums){.grouped = 1};
        sums.ns[OCC_MEASURED_group_elapsed] = ns;
    }
    if (is_measured || minute % 2)
        assert_int_equal(occ_store_add_measured(w->store, minute, l->run, launch->config, &sums, &err), 0);
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(d.sm_count * c.max_warps_per_sm * (1 - iif(%d, %f, "
                   "c.expected_elapsed_low)), 0) FROM stored_launch_config AS c JOIN stored_device AS d "
                   "USING(device_id) WHERE config_id = %u AND expected_elapsed_low IS NOT NULL",
                   is_measured, elapsed, launch->config);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(w->store), sql, -1, &stmt, NULL), SQLITE_OK);
    double warps = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_double(stmt, 0) : 0;
    (void)sqlite3_finalize(stmt);
    return ns * 1e-9 * warps;
}

static double waste_by(struct world *w, const struct occ_filter *filter, enum occ_top_by by)
{
    struct occ_top top;
    struct occ_error err = OCC_ERROR_INIT;
    double waste = 0;
    assert_int_equal(occ_store_top(w->store, filter, by, &top, &err), 0);
    for (size_t i = 0; i < top.n; i++)
        waste += top.rows[i].waste_warp_seconds;
    occ_top_free(&top);
    return waste;
}

static bool is_nearly(double a, double b)
{
    return fabs(a - b) < 1e-9 * b;
}

static void waste_adds_up_however_launches_are_grouped(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter all = {0};
    double waste = 0, of_runs = 0, of_streams = 0, of_configs = 0, of_hours = 0;
    struct occ_config_rows configs;
    world_open(w);
    for (int run = 0; run < WORLD_RUNS; run++)
        world_append(w, run, BEGIN + run * 20 * MINUTE, 150 * MINUTE, 3000);
    commit(w);
    for (size_t i = 0; i < w->n; i++)
        waste += measure(w, &w->launches[i]);
    commit(w);
    for (int by = OCC_TOP_BY_KERNEL; by <= OCC_TOP_BY_DAY; by++)
        if (!is_nearly(waste_by(w, &all, (enum occ_top_by)by), waste))
            fail_msg("by %d: %.17g, not %.17g", by, waste_by(w, &all, (enum occ_top_by)by), waste);
    assert_parts_add_up(w, false);
    for (int run = 0; run < WORLD_RUNS; run++)
        of_runs += waste_by(w, &(struct occ_filter){.run = w->run[run]}, OCC_TOP_BY_KERNEL);
    for (int stream = 7; stream < 10; stream++)
        of_streams += waste_by(w, &(struct occ_filter){.stream = stream}, OCC_TOP_BY_KERNEL);
    for (int64_t hour = BEGIN / HOUR; hour < BEGIN / HOUR + 4; hour++)
        of_hours += waste_by(w, &(struct occ_filter){.since_ns = hour * HOUR, .until_ns = (hour + 1) * HOUR},
                             OCC_TOP_BY_MINUTE);
    assert_int_equal(occ_store_configs(w->store, &all, &configs, &err), 0);
    for (size_t i = 0; i < configs.n; i++)
        of_configs += configs.rows[i].analysed ? configs.rows[i].waste.warp_seconds : 0;
    occ_config_rows_free(&configs);
    assert_true(is_nearly(of_runs, waste) && is_nearly(of_streams, waste));
    assert_true(is_nearly(of_hours, waste) && is_nearly(of_configs, waste));
    finish(w);
}

/* A program's absurd counts hide no part of the history. */
static void sums_that_overflow_are_read(void **state)
{
    struct world *w = *state;
    struct occ_top top;
    struct occ_error err = OCC_ERROR_INIT;
    bool found;
    world_open(w);
    world_append(w, 0, BEGIN, 5 * MINUTE, 4000);
    for (int i = 0; i < 3; i++) {
        const struct occ_measured_sums sums = {.exact = UINT64_C(1) << 62};
        assert_int_equal(occ_store_add_measured(w->store, BEGIN / MINUTE + i, w->run[0],
                                                (uint32_t)w->config[0], &sums, &err),
                         0);
    }
    commit(w);
    assert_true(count_configs_below(w, (struct occ_filter){0}, w->config[0], &found) > 0 && found);
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_KERNEL, &top, &err), 0);
    assert_true(top.n > 0);
    occ_top_free(&top);
}

/* Rows of a warehouse are identified by the answer: a minute that is sent again must have the same one. */
static void another_models_answer_stays(void **state)
{
    static const char *const others[] = {"UPDATE stored_launch_config SET model_version = 0, theoretical = 7",
                                         /* as a program of the next version writes it */
                                         "UPDATE stored_launch_config SET theoretical = 7, key = CAST(key || "
                                         "char(model_version + 1) AS BLOB), "
                                         "model_version = model_version + 1"};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        world_open(w);
        assert_int_equal(sqlite3_exec(occ_store_sqlite(w->store), others[i], NULL, NULL, NULL), SQLITE_OK);
        int64_t other = w->config[3];
        occ_store_close(w->store);
        world_open(w);
        int64_t own = w->config[3];
        assert_int_not_equal(own, other);
        occ_store_close(w->store);
        world_open(w);
        assert_int_equal(w->config[3], own);
        assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_launch_config WHERE "
                                                "theoretical = 7"),
                         WORLD_CONFIGS);
        assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_launch_config"),
                         2 * WORLD_CONFIGS);
        assert_int_equal(
            sqlite3_exec(occ_store_sqlite(w->store), "DELETE FROM stored_launch_config", NULL, NULL, NULL),
            SQLITE_OK);
        occ_store_close(w->store);
        w->store = NULL;
    }
    world_open(w);
}

/* The launches are recorded, with the answer that is there. */
static void an_older_models_answer_serves_where_there_is_no_room(void **state)
{
    struct world *w = *state;
    world_open(w);
    int64_t older = w->config[3];
    assert_int_equal(sqlite3_exec(occ_store_sqlite(w->store),
                                  "UPDATE stored_launch_config SET model_version = 0; "
                                  "UPDATE stored_retention SET name_bytes = 1 << 30",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    occ_store_close(w->store);
    w->options.max_bytes = 1 << 24;
    world_open(w);
    assert_int_equal(w->config[3], older);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_launch_config"), WORLD_CONFIGS);
}

static void names_are_made_readable(void **state)
{
    static const struct {
        const char *mangled, *shorter, *demangled;
    } cases[] = {
        {"_Z6vecAddPKfS0_Pfi", "vecAdd", "vecAdd(float const*, float const*, float*, int)"},
        {"gemm_tn", "gemm_tn", "gemm_tn"},
        {"_ZN12_GLOBAL__N_17softmaxEPf", "softmax", "(anonymous namespace)::softmax(float*)"},
        {"_ZN2ns7reduce1ILi4EEEvPf", "reduce1", "void ns::reduce1<4>(float*)"},
        {"_ZN1AclEv", "operator()", "A::operator()()"},
        {"bad\033[31m\xff", "bad?[31m?", "bad?[31m?"},
        {"_Z", "_Z", "_Z"},
        {"", "", ""},
    };
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t id = 0;
        char sql[200];
        assert_int_equal(occ_store_put_kernel(w->store, cases[i].mangled, 1000 + i, &id, &err), 0);
        (void)snprintf(sql, sizeof sql, "SELECT short = '%s' FROM stored_kernel WHERE kernel_id = %lld",
                       cases[i].shorter, (long long)id);
        assert_int_equal(world_number(w->store, sql), 1);
        (void)snprintf(sql, sizeof sql, "SELECT demangled = '%s' FROM stored_kernel WHERE kernel_id = %lld",
                       cases[i].demangled, (long long)id);
        if (i < 5 && world_number(w->store, sql) == 0)
            print_message("[  note    ] no demangler in this build\n");
    }
}

/* 270 bytes that stand for gigabytes. */
static void a_name_cannot_explode(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    char name[1024] = "_Z1f1AIiiE";
    int64_t id = 0;
    world_open(w);
    for (int i = 0; i < 26; i++) {
        char part[32];
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        (void)snprintf(part, sizeof part, "S_IS%c_S%c_E", digits[i], digits[i]);
        strncat(name, part, sizeof name - strlen(name) - 1);
    }
    assert_int_equal(occ_store_put_kernel(w->store, name, 5, &id, &err), 0);
    assert_true(world_number(w->store, "SELECT max(length(demangled)) FROM stored_kernel") <= 16384);
    char *huge = malloc(40001);
    assert_non_null(huge);
    memset(huge, 'x', 40000);
    huge[40000] = '\0';
    assert_int_equal(occ_store_put_kernel(w->store, huge, 6, &id, &err), 0);
    assert_int_equal(world_number(w->store, "SELECT max(length(mangled)) FROM stored_kernel"), 16384);
    free(huge);
}

/* ---- the table launch ---- */

static void launch_compares_as_sql_does(void **state)
{
    struct world *w = *state;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 500);
    commit(w);
    /* the second form hides the column from the planner */
    static const char *const conditions[][2] = {
        {"correlation_id > 9.5", "+correlation_id > 9.5"},
        {"correlation_id >= '10'", "+correlation_id >= 10"},
        {"correlation_id < 'x'", "+correlation_id < 10000"},
        {"correlation_id = 'x'", "0"},
        {"correlation_id > x'00'", "0"},
        {"correlation_id = NULL", "0"},
        {"correlation_id > -1e300", "1"},
        {"correlation_id < -1e300", "0"},
        {"correlation_id = 1e300", "0"},
        {"correlation_id <= 9.0", "+correlation_id <= 9"},
        {"correlation_id > -0.5", "1"},
        {"correlation_id < 9223372036854775807", "1"},
        {"correlation_id > 9223372036854775807", "0"},
        {"correlation_id BETWEEN 10 AND 19", "+correlation_id BETWEEN 10 AND 19"},
        {"correlation_id IN (1, 3, 5, 5)", "+correlation_id IN (1, 3, 5)"},
        {"kernel_id = 1 AND config_id > 3", "+kernel_id = 1 AND +config_id > 3"},
        {"kernel_id < 3 OR run_id = 2", "+kernel_id < 3 OR +run_id = 2"},
        {"start_ns > 1700000030000000000 AND device_id = 1",
         "+start_ns > 1700000030000000000 AND +device_id = 1"},
        {"run_id = 1 AND run_id = 2", "0"},
        {"stream_id = 7", "+stream_id = 7"},
        {"graph_node_id IS NULL", "+graph_node_id IS NULL"},
        {"kernel = 'vecAdd'", "+kernel_id = 1"},
    };
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        char first[160], second[160];
        (void)snprintf(first, sizeof first, "SELECT count(*) FROM launch WHERE %s", conditions[i][0]);
        (void)snprintf(second, sizeof second, "SELECT count(*) FROM launch WHERE %s", conditions[i][1]);
        if (world_number(w->store, first) != world_number(w->store, second))
            fail_msg("%s differs from %s", first, second);
    }
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM launch a JOIN launch b USING(correlation_id)"), 500);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM stored_launch_config s JOIN launch l USING(config_id)"),
        500);
}

/* SQLite turns "a OR b" into two scans and counts a row that both find once, by rowid. */
static void either_of_two_conditions(void **state)
{
    struct world *w = *state;
    world_open(w);
    for (int i = 0; i < 6; i++) {
        world_append(w, i % 2, BEGIN + i * MINUTE, MINUTE, 50);
        commit(w);
    }
    for (int i = 0; i < 300; i += 7) {
        char first[160], second[160];
        (void)snprintf(first, sizeof first,
                       "SELECT count(*) FROM launch WHERE run_id = 2 OR correlation_id = %d", i);
        (void)snprintf(second, sizeof second,
                       "SELECT count(*) FROM launch WHERE +run_id = 2 OR +correlation_id = %d", i);
        assert_int_equal(world_number(w->store, first), world_number(w->store, second));
    }
    assert_int_equal(world_number(w->store, "SELECT count(DISTINCT rowid) FROM launch"), 300);
}

static void launch_gives_back_every_column(void **state)
{
    struct world *w = *state;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 700);
    commit(w);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(
            occ_store_sqlite(w->store),
            "SELECT start_ns, end_ns, duration_ns, run_id, device_id, context_id, stream_id, correlation_id, "
            "coalesce(graph_node_id, 0), config_id, coalesce(range_id, 0), range_id IS NULL, block_x, "
            "theoretical FROM launch ORDER BY correlation_id",
            -1, &stmt, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < w->n; i++) {
        const struct world_launch *l = &w->launches[i];
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        const int64_t expected[] = {l->launch.start_ns,
                                    l->launch.start_ns + (int64_t)l->launch.duration_ns,
                                    (int64_t)l->launch.duration_ns,
                                    l->run,
                                    l->device,
                                    l->launch.context,
                                    l->launch.stream,
                                    l->launch.correlation,
                                    (int64_t)l->launch.graph_node,
                                    l->launch.config,
                                    l->launch.range,
                                    l->launch.range == 0};
        for (int k = 0; k < 12; k++)
            assert_int_equal(sqlite3_column_int64(stmt, k), expected[k]);
    }
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
}

/* The file returns all `n` launches by start; launches with equal starts come in the order of appending. */
static void assert_ordered(struct world *w, int64_t n)
{
    sqlite3_stmt *stmt = NULL;
    int64_t last_ns = 0, last_id = 0, rows = 0;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(w->store),
                                        "SELECT start_ns, correlation_id FROM launch", -1, &stmt, NULL),
                     SQLITE_OK);
    for (; sqlite3_step(stmt) == SQLITE_ROW; rows++) {
        int64_t start_ns = sqlite3_column_int64(stmt, 0), id = sqlite3_column_int64(stmt, 1);
        assert_true(start_ns > last_ns || (start_ns == last_ns && id > last_id));
        last_ns = start_ns;
        last_id = id;
    }
    (void)sqlite3_finalize(stmt);
    assert_int_equal(rows, n);
}

/* Buffers of several threads come one after the other, each nearly in order. */
static void chunks_are_ordered_by_start(void **state)
{
    struct world *w = *state;
    enum { STREAMS = 5, BUFFER = 70, ROUNDS = 9 };
    struct occ_error err = OCC_ERROR_INIT;
    uint32_t id = 0;
    world_open(w);
    for (int round = 0; round < ROUNDS; round++)
        for (int stream = 0; stream < STREAMS; stream++) {
            struct occ_store_launch rows[BUFFER];
            for (int i = 0; i < BUFFER; i++)
                rows[i] = (struct occ_store_launch){.start_ns = BEGIN + (round * BUFFER + (i ^ 3)) / 2 * 1000,
                                                    .duration_ns = 500,
                                                    .config = (uint32_t)w->config[0],
                                                    .correlation = ++id};
            assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], rows, BUFFER, &err),
                             0);
        }
    commit(w);
    assert_ordered(w, id); /* a level-0 chunk */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_chunk WHERE NOT is_full"), 1);
    finish(w);
    assert_ordered(w, id); /* packed */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_chunk WHERE NOT is_full"), 0);
}

static void launch_survives_hostile_files(void **state)
{
    struct world *w = *state;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 300);
    finish(w);
    static const char *const damage[] = {
        "UPDATE stored_chunk SET launches = launches + 1",
        "UPDATE stored_chunk SET launches = -1",
        "UPDATE stored_chunk SET launches = 1 << 40",
        "UPDATE stored_chunk SET launches = 'many'",
        "UPDATE stored_chunk_data SET data = x'01'",
        "UPDATE stored_chunk_data SET data = zeroblob(1000)",
        "DELETE FROM stored_chunk_data",
        "UPDATE stored_chunk_data SET data = 7",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        sqlite3 *db = occ_store_sqlite(w->store);
        char *message = NULL;
        assert_int_equal(sqlite3_exec(db, "PRAGMA foreign_keys=OFF; BEGIN", NULL, NULL, NULL), SQLITE_OK);
        world_loosen(w->store, "stored_chunk");
        world_loosen(w->store, "stored_chunk_data");
        assert_int_equal(sqlite3_exec(db, damage[i], NULL, NULL, NULL), SQLITE_OK);
        assert_int_not_equal(sqlite3_exec(db, "SELECT sum(start_ns) FROM launch", NULL, NULL, &message),
                             SQLITE_OK);
        sqlite3_free(message);
        assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch"), 300);
}

/* On a connection that trusts schemas, which ours do not. */
static void a_view_cannot_trap_the_table(void **state)
{
    struct world *w = *state;
    sqlite3 *db = NULL;
    char *message = NULL;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 10);
    finish(w);
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "DROP TABLE stored_chunk; CREATE VIEW stored_chunk AS SELECT 1 AS chunk_id, "
                     "run_id, device_id, 1 AS launches, 1 AS first_start_ns, 1 AS last_start_ns "
                     "FROM launch",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM launch", NULL, NULL, &message), SQLITE_OK);
    assert_non_null(strstr(message, "refers to itself"));
    sqlite3_free(message);
    (void)sqlite3_close(db);
}

static void without_the_module_the_file_says_what_to_load(void **state)
{
    struct world *w = *state;
    sqlite3 *db = NULL;
    char *message = NULL;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 10);
    finish(w);
    assert_int_equal(sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM launch", NULL, NULL, &message), SQLITE_OK);
    assert_string_equal(message, "no such module: occtrace_launch_needs_the_occtrace_extension");
    sqlite3_free(message);
    assert_int_equal(sqlite3_exec(db,
                                  "SELECT * FROM launch_config; SELECT * FROM hour; SELECT * FROM run; "
                                  "SELECT * FROM measured_minute; SELECT * FROM device_second",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(world_number_in(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    (void)sqlite3_close(db);
}

static void the_module_works_in_any_sqlite(void **state)
{
    struct world *w = *state;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char *message = NULL;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 321);
    finish(w);
    assert_int_equal(sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_enable_load_extension(db, 1), SQLITE_OK);
    if (sqlite3_load_extension(db, OCC_SQLITE_MODULE, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT count(*), count(theoretical) FROM launch", -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(stmt, 0), 321);
    assert_true(sqlite3_column_int64(stmt, 1) > 200);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    /* in a database that is no history, the table says so */
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "CREATE VIRTUAL TABLE launch USING "
                                  "occtrace_launch_needs_the_occtrace_extension; SELECT * FROM launch",
                                  NULL, NULL, &message),
                     SQLITE_ERROR);
    assert_non_null(strstr(message, "main.stored_chunk"));
    sqlite3_free(message);
    (void)sqlite3_close(db);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void strange_files_are_refused_and_untouched(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    char text[200], back[200] = "";
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    write_file(w->path, text);
    assert_int_equal(try_open(w->path, OCC_STORE_WRITE, &err), OCC_E_CORRUPT);
    assert_non_null(strstr(err.message, w->path));
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), OCC_E_CORRUPT);
    FILE *file = fopen(w->path, "r");
    assert_non_null(file);
    assert_non_null(fgets(back, sizeof back, file));
    assert_string_equal(back, text);
    (void)fclose(file);
    assert_int_equal(unlink(w->path), 0);
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), OCC_E_NOT_FOUND);
    assert_int_equal(try_open(w->directory, OCC_STORE_READ, &err), OCC_E_INVALID);
    assert_int_equal(try_open(w->directory, OCC_STORE_WRITE, &err), OCC_E_INVALID);
}

static void make_database(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void other_databases_are_refused(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    make_database(w->path, "CREATE TABLE mine(a)");
    assert_int_equal(try_open(w->path, OCC_STORE_WRITE, &err), OCC_E_CORRUPT);
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), OCC_E_CORRUPT);
    make_database(w->path, "DROP TABLE mine; PRAGMA journal_mode=DELETE");
}

static void newer_files_are_refused(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    occ_store_close(w->store);
    w->store = NULL;
    make_database(w->path, "PRAGMA user_version=9999");
    assert_int_equal(try_open(w->path, OCC_STORE_WRITE, &err), OCC_E_VERSION);
    assert_non_null(strstr(err.message, "newer"));
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), OCC_E_VERSION);
}

static void files_from_before_the_first_release_are_refused(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    make_database(w->path, "CREATE TABLE run(id); PRAGMA application_id=0x6f636374; PRAGMA user_version=4");
    for (enum occ_store_mode mode = OCC_STORE_READ; mode <= OCC_STORE_WRITE; mode++) {
        assert_int_equal(try_open(w->path, mode, &err), OCC_E_VERSION);
        assert_non_null(strstr(err.message, "before occtrace's first release"));
        assert_non_null(strstr(err.message, "move the file away")); /* the remedy */
    }
    make_database(w->path, "INSERT INTO run VALUES(1); PRAGMA journal_mode=DELETE");
}

static void an_empty_file_becomes_a_history(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat status;
    assert_int_equal(try_open(w->path, OCC_STORE_WRITE, &err), 0);
    assert_int_equal(stat(w->path, &status), 0);
    assert_int_equal(status.st_mode & 0777 & ~(unsigned)0640, 0);
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), 0);
    assert_int_equal(unlink(w->path), 0);
    write_file(w->path, "");
    assert_int_equal(try_open(w->path, OCC_STORE_READ, &err), OCC_E_CORRUPT);
    assert_int_equal(try_open(w->path, OCC_STORE_WRITE, &err), 0);
}

static void a_locked_file_is_busy(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *other = NULL;
    w->options.busy_timeout_ms = 50;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 50);
    assert_int_equal(sqlite3_open(w->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(occ_store_commit(w->store, &err), OCC_E_BUSY);
    struct occ_store *reader = open_reader(w); /* readers are not blocked */
    assert_int_equal(world_number(reader, "SELECT count(*) FROM launch"), 0);
    occ_store_close(reader);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    commit(w); /* the failed commit lost nothing */
    world_check(w, w->store, &(struct occ_filter){0});
}

static void reading_writes_nothing(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t id = 0;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 50);
    finish(w);
    occ_store_close(w->store);
    w->store = NULL;
    struct occ_store *reader = open_reader(w);
    struct occ_run run = {.uuid = {77}};
    struct occ_store_launch launch = {.start_ns = BEGIN, .config = 1};
    assert_int_equal(occ_store_put_run(reader, &run, &id, &err), OCC_E_READ_ONLY);
    assert_int_equal(occ_store_append(reader, 1, 1, &launch, 1, &err), OCC_E_READ_ONLY);
    assert_int_equal(occ_store_commit(reader, &err), OCC_E_READ_ONLY);
    assert_int_equal(sqlite3_exec(occ_store_sqlite(reader), "DELETE FROM stored_chunk", NULL, NULL, NULL) &
                         0xff,
                     SQLITE_READONLY);
    occ_store_close(reader);
}

static void a_read_only_file_is_said_to_be(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 50);
    finish(w);
    occ_store_close(w->store);
    w->store = NULL;
    if (geteuid() == 0)
        skip(); /* root may write everything */
    assert_int_equal(chmod(w->path, 0440), 0);
    assert_int_equal(chmod(w->directory, 0550), 0);
    int written = try_open(w->path, OCC_STORE_WRITE, &err);
    struct occ_store *reader = open_reader(w);
    int64_t n = world_number(reader, "SELECT count(*) FROM launch");
    occ_store_close(reader);
    assert_int_equal(chmod(w->directory, 0750), 0);
    assert_int_equal(written, OCC_E_READ_ONLY);
    assert_int_equal(n, 50);
}

static void impossible_launches_are_refused(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    const struct occ_store_launch bad[] = {
        {.start_ns = 0, .config = 1},
        {.start_ns = -5, .config = 1},
        {.start_ns = 5, .duration_ns = INT64_MAX, .config = 1},
        {.start_ns = 5, .duration_ns = UINT64_MAX, .config = 1},
        {.start_ns = INT64_MAX, .config = 1},
        {.start_ns = OCC_STORE_START_MAX_NS + 1, .config = 1},
        {.start_ns = OCC_STORE_START_MAX_NS, .duration_ns = 86400000000001, .config = 1},
        {.start_ns = 5, .config = 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], &bad[i], 1, &err),
                         OCC_E_INVALID);
    assert_int_equal(occ_store_append(w->store, 999, w->device[0],
                                      &(struct occ_store_launch){.start_ns = 5, .config = 1}, 1, &err),
                     OCC_E_NOT_FOUND);
    /* the extremes that are possible */
    const struct occ_store_launch odd[] = {
        {.start_ns = 1,
         .duration_ns = INT64_MAX - 1,
         .config = (uint32_t)w->config[0],
         .graph_node = UINT64_MAX,
         .stream = UINT32_MAX,
         .context = UINT32_MAX,
         .correlation = UINT32_MAX},
        {.start_ns = OCC_STORE_START_MAX_NS, .duration_ns = 86400000000000, .config = (uint32_t)w->config[0]},
        {.start_ns = 1, .config = (uint32_t)w->config[0]},
    };
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], odd, 3, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE end_ns = 9223372036854775807"),
                     2);
    finish(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE end_ns = 9223372036854775807"),
                     2);
    struct occ_top top;
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_KERNEL, &top, &err), 0);
    assert_int_equal(top.rows[0].launches, 3);
    occ_top_free(&top);
}

static void a_bad_pattern_is_named(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_top top;
    world_open(w);
    assert_int_equal(
        occ_store_top(w->store, &(struct occ_filter){.kernel_regex = "a(b"}, OCC_TOP_BY_KERNEL, &top, &err),
        OCC_E_USAGE);
    assert_non_null(strstr(err.message, "a(b"));
    world_check(w, w->store, &(struct occ_filter){0}); /* and the store goes on */
}

/* ---- limits ---- */

static void the_quota_gives_back_the_oldest(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat status;
    struct occ_top top;
    w->options.chunk_rows = 4000;
    w->options.max_bytes = 3u << 20;
    world_open(w);
    for (int i = 0; i < 120; i++) {
        world_append(w, i % 2, BEGIN + i * 4 * MINUTE, 4 * MINUTE, 6000);
        commit(w);
        assert_int_equal(stat(w->path, &status), 0);
        assert_true(status.st_size <= 3 << 20);
    }
    /* old launches are evicted, their totals are kept */
    assert_true(world_number(w->store, "SELECT sum(launches) FROM stored_chunk") < (int64_t)w->n);
    assert_int_equal(world_number(w->store, "SELECT sum(launches) FROM stored_run"), w->n);
    assert_int_equal(occ_store_top(w->store, &(struct occ_filter){0}, OCC_TOP_BY_KERNEL, &top, &err), 0);
    uint64_t launches = 0;
    for (size_t i = 0; i < top.n; i++)
        launches += top.rows[i].launches;
    assert_int_equal(launches, w->n);
    occ_top_free(&top);
    /* and to the minute */
    int64_t minute = BEGIN / MINUTE * MINUTE;
    assert_true(world_number(w->store, "SELECT min(first_start_ns) FROM stored_chunk") >
                minute + 60 * MINUTE);
    for (int i = 0; i < 30; i++) {
        struct occ_filter old = {.since_ns = minute + i * 3 * MINUTE,
                                 .until_ns = minute + (i * 3 + 25) * MINUTE};
        world_check_questions(w, w->store, &old);
    }
    struct occ_filter recent = {.since_ns = BEGIN + 118 * 4 * MINUTE};
    world_check(w, w->store, &recent);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
}

/* Launches with starts in the future do not outlast other runs' launches: eviction follows the order of
 * arrival. */
static void the_quota_evicts_by_arrival(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 4000;
    w->options.max_bytes = 3u << 20;
    world_open(w);
    for (int i = 0; i < 40; i++) {
        world_append(w, 0, INT64_C(9214646400000000000) + i * MINUTE, MINUTE, 6000); /* the year 2262 */
        commit(w);
    }
    assert_true(world_number(w->store, "SELECT count(*) FROM stored_chunk WHERE run_id = 1") > 10);
    for (int i = 0; i < 60; i++) {
        world_append(w, 1, BEGIN + i * MINUTE, MINUTE, 6000);
        commit(w);
    }
    assert_true(world_number(w->store, "SELECT count(*) FROM stored_chunk WHERE run_id = 1 AND is_full") <=
                2);
    assert_true(world_number(w->store, "SELECT total(launches) FROM stored_chunk WHERE run_id = 2") > 50000);
}

/* Keeps kernel and configuration 10 and the third run after the world's, as if a program used them. */
static void keep_some(const void *context, enum occ_name name, const int64_t *ids, size_t n, bool *kept)
{
    (void)context;
    for (size_t i = 0; i < n; i++)
        kept[i] = ids[i] == (name == OCC_NAME_RUN ? WORLD_RUNS + 3 : 10);
}

/* Kernels without launches until they are refused, and runs without any: unused ones go. The ones that were
 * launched or that a program holds stay, and so does the kernel with the largest id. */
static void names_that_nothing_refers_to_are_collected(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_name_keeper keeper = {.keep = keep_some};
    static char name[4000];
    int64_t id = 0;
    bool more = true;
    int rc = 0;
    w->options.max_bytes = 8u << 20;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 6000);
    commit(w);
    int64_t configs = world_number(w->store, "SELECT count(*) FROM stored_run_config");
    memset(name, 'x', sizeof name - 1);
    for (uint64_t i = 0; rc == 0; i++) {
        assert_true(i < 1000);
        (void)snprintf(name, 16, "k%012llu", (unsigned long long)i);
        name[13] = '_';
        rc = occ_store_put_kernel(w->store, name, i, &id, &err);
    }
    assert_int_equal(rc, OCC_E_DENIED);
    for (int i = 0; i < 50; i++) {
        struct occ_run run = {.uuid = {1, (uint8_t)i, 2}, .start_ns = BEGIN, .end_ns = BEGIN};
        assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
        assert_int_equal(occ_store_put_position(w->store, OCC_POSITION_RING, run.uuid, 1, &err), 0);
        uint32_t range = 0, other = 0; /* of a run without room for names: one for all */
        assert_int_equal(occ_store_put_range(w->store, id, "range", NULL, &range, &err), 0);
        assert_int_equal(occ_store_put_range(w->store, id, "another range", "backward", &other, &err), 0);
        assert_true(range == 1 && other == 1);
        assert_int_equal(occ_store_end_run(w->store, id, &err), 0);
    }
    commit(w);
    for (int steps = 0; more; steps++) {
        more = false;
        assert_true(steps < 100);
        assert_int_equal(occ_store_collect_names(w->store, &keeper, &more, &err), 0);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_run"), WORLD_RUNS + 1);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_range"),
                     WORLD_RUNS * WORLD_RANGES + 1);
    const struct occ_run next = {.uuid = {1, 99, 2}, .start_ns = BEGIN, .end_ns = BEGIN};
    int64_t last = id;
    assert_int_equal(occ_store_put_run(w->store, &next, &id, &err), 0);
    assert_int_equal(id, last + 1); /* the number of a run is not given again */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_run_config"), configs);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_in_range(world_number(w->store, "SELECT count(*) FROM stored_kernel"), 3, WORLD_KERNELS + 2);
    assert_true(world_number(w->store, "SELECT name_bytes FROM stored_retention") < 1 << 20);
    assert_int_equal(occ_store_put_kernel(w->store, name, 0, &id, &err), 0);
    assert_true(world_number(w->store, "SELECT count(DISTINCT config_id) FROM launch") > 0);
}

/* Another process that reads and does not stop. */
static pid_t start_reader(const struct world *w, int leave[2])
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(leave), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        sqlite3 *db = NULL;
        (void)close(leave[1]);
        int rc = sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL);
        rc = rc ? rc : sqlite3_exec(db, "BEGIN; SELECT count(*) FROM stored_run", NULL, NULL, NULL);
        ssize_t n = write(ready[1], &byte, 1);
        n += read(leave[0], &byte, 1);
        _exit(rc != 0 || n != 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(leave[0]);
    return reader;
}

/* The log that a reader keeps from being emptied counts to the quota; when it has left, all goes on. */
static void a_reader_does_not_make_the_log_grow_without_end(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat log;
    char path[300];
    int leave[2], rc = 0, status = 0;
    w->options.chunk_rows = 4000;
    w->options.max_bytes = 1u << 20;
    world_open(w);
    commit(w);
    pid_t reader = start_reader(w, leave);
    for (int i = 0; rc == 0; i++) {
        assert_true(i < 5000);
        world_append(w, 0, BEGIN + i * 4 * MINUTE, 4 * MINUTE, 6000);
        rc = occ_store_commit(w->store, &err);
    }
    assert_int_equal(rc, OCC_E_FULL);
    assert_non_null(strstr(err.message, "write-ahead log"));
    assert_int_equal(occ_store_commit(w->store, &err), OCC_E_FULL); /* for as long as it reads */
    (void)snprintf(path, sizeof path, "%s-wal", w->path);
    assert_int_equal(stat(path, &log), 0);
    assert_in_range(log.st_size, 32 << 20, 36 << 20);
    (void)close(leave[1]);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(occ_store_commit(w->store, &err), 0);
    assert_int_equal(stat(path, &log), 0);
    assert_in_range(log.st_size, 0, 4 << 20);
}

static void a_full_file_without_a_quota_keeps_what_waits(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    w->options.chunk_rows = 1000;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 2000);
    commit(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    assert_int_equal(sqlite3_exec(db, "PRAGMA max_page_count=1", NULL, NULL, NULL),
                     SQLITE_OK); /* = as it is now */
    world_append(w, 0, BEGIN + MINUTE, MINUTE, 20000);
    assert_int_equal(occ_store_commit(w->store, &err), OCC_E_FULL);
    assert_int_equal(occ_store_commit(w->store, &err), OCC_E_FULL);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch"), 2000);
    assert_int_equal(sqlite3_exec(db, "PRAGMA max_page_count=1000000", NULL, NULL, NULL), SQLITE_OK);
    commit(w);
    world_check_random(w, w->store, 10);
    world_check_rollups(w, w->store);
}

static void two_writers_share_a_file(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *other = NULL;
    int64_t run = 0;
    w->options.chunk_rows = 500;
    world_open(w);
    assert_int_equal(occ_store_open(w->path, &w->options, &other, &err), 0);
    struct occ_run description = {.uuid = {200}, .start_ns = 5};
    assert_int_equal(occ_store_put_run(other, &description, &run, &err), 0);
    for (int i = 0; i < 30; i++) {
        struct occ_store_launch launch = {
            .start_ns = BEGIN + i * MINUTE, .duration_ns = 10, .config = (uint32_t)w->config[0]};
        world_append(w, 0, BEGIN + i * 10 * MINUTE, MINUTE, 60);
        assert_int_equal(occ_store_append(other, run, w->config_device[0], &launch, 1, &err), 0);
        commit(w);
        assert_int_equal(occ_store_commit(other, &err), 0);
    }
    assert_int_equal(occ_store_finish(other, &err), 0);
    occ_store_close(other);
    finish(w);
    world_check(w, w->store, &(struct occ_filter){.run = w->run[0]});
    assert_int_equal(world_number(w->store, "SELECT launches FROM stored_run ORDER BY run_id DESC LIMIT 1"),
                     30);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch"), w->n + 30);
}

/* The commits return although a reader holds a snapshot; a wait for the reader would last an hour. */
static void a_quota_does_not_wait_for_readers(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 4000;
    w->options.max_bytes = 1u << 20;
    w->options.busy_timeout_ms = 3600000;
    world_open(w);
    struct occ_store *reader = open_reader(w);
    assert_int_equal(
        sqlite3_exec(occ_store_sqlite(reader), "BEGIN; SELECT count(*) FROM stored_chunk", NULL, NULL, NULL),
        SQLITE_OK);
    for (int i = 0; i < 40; i++) {
        world_append(w, 0, BEGIN + i * 4 * MINUTE, 4 * MINUTE, 6000);
        commit(w);
    }
    assert_true(world_number(w->store, "SELECT sum(launches) FROM stored_chunk") < (int64_t)w->n);
    occ_store_close(reader);
}

static int64_t chunk_rows_of(struct occ_store *store, int64_t run)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT coalesce(sum(launches), 0) FROM stored_chunk WHERE run_id = %lld",
                   (long long)run);
    return world_number(store, sql);
}

/* The chunks of a run's last minute, which only its own writer would roll up: it may have been killed, or be
 * idle. */
static void a_quota_takes_from_other_writers(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *other = NULL;
    struct occ_store_options options = {.mode = OCC_STORE_WRITE, .chunk_rows = 2000, .max_bytes = 2u << 20};
    int64_t run = 0, minute = BEGIN / MINUTE * MINUTE;
    w->options.chunk_rows = 1000;
    world_open(w);
    world_append(w, 0, minute, MINUTE / 2, 20500);
    commit(w);
    int64_t before = chunk_rows_of(w->store, w->run[0]);
    assert_int_equal(before, 20500);
    assert_int_equal(occ_store_open(w->path, &options, &other, &err), 0);
    struct occ_run description = {.uuid = {200}, .start_ns = 5};
    assert_int_equal(occ_store_put_run(other, &description, &run, &err), 0);
    for (int64_t i = 0; i < 400000; i++) {
        struct occ_store_launch launch = {.start_ns =
                                              minute + HOUR + i * 1000 + (int64_t)(world_random(w) % 1000),
                                          .duration_ns = world_random(w) % 100000,
                                          .config = (uint32_t)w->config[0],
                                          .correlation = (uint32_t)world_random(w)};
        assert_int_equal(occ_store_append(other, run, w->config_device[0], &launch, 1, &err), 0);
        if (i % 2000 == 0 && occ_store_commit(other, &err) != 0)
            fail_msg("%s", err.message);
    }
    assert_true(chunk_rows_of(w->store, w->run[0]) < before / 2);
    const struct occ_filter mine = {.run = w->run[0]};
    world_check_questions(w, w->store, &mine);
    /* and its own writer goes on */
    for (int i = 0; i < 4; i++) {
        world_append(w, 0, minute + i * MINUTE / 2, MINUTE, 700);
        commit(w);
        world_check_questions(w, w->store, &mine);
    }
    finish(w);
    world_check_questions(w, w->store, &mine);
    occ_store_close(other);
}

/* Several daemons that start at once on a machine that has no history yet. */
static void processes_make_the_same_file_at_once(void **state)
{
    enum { ROUNDS = 10, PROCESSES = 4 };
    struct world *w = *state;
    w->options.mode = OCC_STORE_WRITE;
    for (int round = 0; round < ROUNDS; round++) {
        static const char *const suffixes[] = {"", "-wal", "-shm"};
        char path[128], byte;
        int gate[2], status = 0;
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
            (void)snprintf(path, sizeof path, "%s%s", w->path, suffixes[i]);
            (void)unlink(path);
        }
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < PROCESSES; i++) {
            if (fork() != 0)
                continue;
            (void)close(gate[1]);
            ssize_t n = read(gate[0], &byte, 1); /* all go when it is closed */
            _exit(n == 0 && occ_store_open(w->path, &w->options, &w->store, NULL) == 0 ? 0 : 1);
        }
        (void)close(gate[0]);
        (void)close(gate[1]);
        for (int i = 0; i < PROCESSES; i++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_are_exact_at_every_moment),
        TEST(a_run_that_ended_may_get_more),
        TEST(a_lost_writer_is_continued),
        TEST(slow_lanes_do_not_fill_the_file_with_chunks),
        TEST(memory_stays_bounded),
        TEST(a_run_is_found_by_its_ring),
        TEST(facts_are_kept_with_the_launches),
        TEST(periods_with_less_are_kept),
        TEST(ranges_are_interned_by_run),
        TEST(ranges_are_bounded),
        TEST(ranges_and_graphs_are_asked_for),
        TEST(launches_are_grouped_by_layer),
        TEST(a_run_lists_its_launches),
        TEST(putting_again_updates_a_run),
        TEST(configs_carry_the_models_answer),
        TEST(means_are_said_where_launches_stand_for_all),
        TEST(low_occupancy_is_the_measured_one),
        TEST(what_counters_saw_adds_up_by_kernel),
        TEST(waste_adds_up_however_launches_are_grouped),
        TEST(sums_that_overflow_are_read),
        TEST(another_models_answer_stays),
        TEST(an_older_models_answer_serves_where_there_is_no_room),
        TEST(names_are_made_readable),
        TEST(a_name_cannot_explode),
        TEST(launch_compares_as_sql_does),
        TEST(either_of_two_conditions),
        TEST(launch_gives_back_every_column),
        TEST(chunks_are_ordered_by_start),
        TEST(launch_survives_hostile_files),
        TEST(a_view_cannot_trap_the_table),
        TEST(without_the_module_the_file_says_what_to_load),
        TEST(the_module_works_in_any_sqlite),
        TEST(strange_files_are_refused_and_untouched),
        TEST(other_databases_are_refused),
        TEST(newer_files_are_refused),
        TEST(files_from_before_the_first_release_are_refused),
        TEST(an_empty_file_becomes_a_history),
        TEST(a_locked_file_is_busy),
        TEST(reading_writes_nothing),
        TEST(a_read_only_file_is_said_to_be),
        TEST(impossible_launches_are_refused),
        TEST(a_bad_pattern_is_named),
        TEST(the_quota_gives_back_the_oldest),
        TEST(the_quota_evicts_by_arrival),
        TEST(names_that_nothing_refers_to_are_collected),
        TEST(a_reader_does_not_make_the_log_grow_without_end),
        TEST(a_full_file_without_a_quota_keeps_what_waits),
        TEST(two_writers_share_a_file),
        TEST(a_quota_does_not_wait_for_readers),
        TEST(a_quota_takes_from_other_writers),
        TEST(processes_make_the_same_file_at_once),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
