/*
 * gpu_turns: counter sets of PM sampling that alternate in one of two manners, for a comparison in an
 * experiment (E22). daemon/sampling/counters/pm.c has one manner only; this program calls the library itself:
 *
 *   in-place  stop, another configuration, a new image, start: on one object
 *   enable    each turn enables an object of its own and disables it
 *
 * stdout, a line each, `key=value` words:
 *   opened    state=WORD, and the library's message at the end if the counters do not open
 *   turn      a finished turn: its number, counter set, completed samples
 *   turns     last: manner, number of finished turns, of planned turns; the library's message at the end
 *
 * Exit code: 0 all turns are done, 77 the counters cannot be opened here, 1 a turn failed. One thread.
 */
#include "samples/common.h"
#include "stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/sampling/counters/gpus.h"
#include "daemon/sampling/counters/pm_library.h"
#include "support/clock.h"

enum { IMAGE_SAMPLES = 1024, BUFFER_BYTES = 64 << 20 };
#define READ_S 0.05

struct options {
    const char *manner;
    uint64_t turns, turn_ms, interval_us;
};

struct turns {
    struct occ_pm_library library;
    const struct occ_chip_sets *chip;
    struct occ_cupti_host hosts[OCC_SETS_MAX];
    struct occ_cupti_image image;
    uint32_t n_sets, ordinal;
    uint64_t interval_ns;
    bool in_place;
    void *sampling; /* CUPTI's object; NULL: not enabled */
    const char *doing;
};

/* ---- once ---- */

static enum occ_source_state open_sets(struct turns *t, const char *chip, struct occ_error *err)
{
    struct occ_cupti_image availability;
    enum occ_source_state state = OCC_SOURCE_OK;
    uint32_t result = occ_cupti_availability(t->library.pm.availability, t->ordinal, &availability);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&t->library, result, "asking for the chip's counters", err);
    for (uint32_t i = 0; i < t->chip->n && state == OCC_SOURCE_OK; i++) {
        state = occ_pm_configure(&t->library, chip, &availability, t->chip->sets[i], &t->hosts[i], err);
        t->n_sets += state == OCC_SOURCE_OK;
    }
    occ_cupti_image_free(&availability);
    return t->n_sets ? OCC_SOURCE_OK : state; /* a chip may lack some sets */
}

static enum occ_source_state open_turns(struct turns *t, struct occ_error *err)
{
    struct occ_gpu_found gpu;
    size_t gpus = 0;
    struct occ_params_none initialize = {.size = sizeof initialize};
    enum occ_source_state state = occ_gpus_find(&gpu, 1, &gpus, err);
    if (state == OCC_SOURCE_OK)
        state = occ_pm_bind(NULL, NULL, &t->library, err);
    if (state != OCC_SOURCE_OK)
        return state;
    t->ordinal = gpu.ordinal;
    struct occ_params_chip_name name = {.size = sizeof name, .device = t->ordinal};
    uint32_t result = t->library.host.initialize(&initialize);
    if (result == OCC_CUPTI_SUCCESS)
        result = t->library.host.chip_name(&name);
    if (result != OCC_CUPTI_SUCCESS)
        return occ_pm_fail(&t->library, result, "asking for the chip", err);
    t->chip = occ_chip_sets_find(name.name);
    return open_sets(t, name.name, err);
}

/* ---- a turn ---- */

static uint32_t enable(struct turns *t)
{
    struct occ_params_enable p = {.size = sizeof p, .subject = t->ordinal};
    if (t->sampling)
        return OCC_CUPTI_SUCCESS;
    t->doing = "enabling";
    uint32_t result = t->library.pm.enable(&p);
    t->sampling = result == OCC_CUPTI_SUCCESS ? p.object : NULL;
    return result;
}

static uint32_t disable(struct turns *t)
{
    struct occ_params_object p = {.size = sizeof p, .object = t->sampling};
    if (!t->sampling)
        return OCC_CUPTI_SUCCESS;
    t->sampling = NULL;
    t->doing = "disabling";
    return t->library.pm.disable(&p);
}

static uint32_t set_config(struct turns *t, const struct occ_cupti_host *host)
{
    struct occ_params_pm_config p = {
        .size = sizeof p,
        .object = t->sampling,
        .config = host->config,
        .buffer_bytes = BUFFER_BYTES,
        .interval = t->interval_ns,
        .trigger = t->chip->system_clock_only ? OCC_PM_TRIGGER_SYSTEM_CLOCK : OCC_PM_TRIGGER_TIME,
        .append_mode = t->chip->keep_oldest ? OCC_PM_KEEP_OLDEST : OCC_PM_KEEP_LATEST};
    t->doing = "configuring";
    return t->library.pm.set_config(&p);
}

static uint32_t make_image(struct turns *t, const struct occ_cupti_host *host)
{
    struct occ_params_pm_data_size p = {
        .size = sizeof p, .object = t->sampling, .metrics = host->metrics, .max_samples = IMAGE_SAMPLES};
    t->doing = "making an image";
    uint32_t result = t->library.pm.data_size(&p);
    occ_cupti_image_free(&t->image);
    if (result == OCC_CUPTI_SUCCESS && !occ_cupti_image_new(&t->image, p.data_size))
        result = OCC_CUPTI_ERROR_OUT_OF_MEMORY;
    return result;
}

static uint32_t begin_turn(struct turns *t, const struct occ_cupti_host *host)
{
    uint32_t result = enable(t);
    if (result == OCC_CUPTI_SUCCESS)
        result = set_config(t, host);
    if (result == OCC_CUPTI_SUCCESS)
        result = make_image(t, host);
    struct occ_params_object p = {.size = sizeof p, .object = t->sampling};
    if (result == OCC_CUPTI_SUCCESS) {
        t->doing = "starting";
        result = t->library.pm.start(&p);
    }
    return result;
}

/* Adds the completed samples of one decode. */
static uint32_t read_samples(struct turns *t, size_t *samples)
{
    struct occ_params_data empty = {.size = sizeof empty, .object = t->sampling, .data = t->image};
    struct occ_params_pm_decode decode = {.size = OCC_PM_DECODE_SIZE,
                                          .object = t->sampling,
                                          .data = t->image.bytes,
                                          .data_size = t->image.size};
    struct occ_params_pm_info info = {
        .size = sizeof info, .data = t->image.bytes, .data_size = t->image.size};
    t->doing = "decoding";
    uint32_t result = t->library.pm.data(&empty);
    if (result == OCC_CUPTI_SUCCESS)
        result = t->library.pm.decode(&decode);
    if (result == OCC_CUPTI_SUCCESS)
        result = t->library.pm.info(&info);
    *samples += result == OCC_CUPTI_SUCCESS ? info.completed : 0;
    return result;
}

static uint32_t end_turn(struct turns *t)
{
    struct occ_params_object p = {.size = sizeof p, .object = t->sampling};
    t->doing = "stopping";
    uint32_t result = t->library.pm.stop(&p);
    return result == OCC_CUPTI_SUCCESS && !t->in_place ? disable(t) : result;
}

/* Does a turn; a turn without samples has failed without an error. */
static uint32_t do_turn(struct turns *t, uint64_t number, uint64_t turn_ms)
{
    uint32_t set = (uint32_t)(number % t->n_sets);
    int64_t until_ns = occ_monotonic_ns() + (int64_t)turn_ms * 1000000;
    size_t samples = 0;
    uint32_t result = begin_turn(t, &t->hosts[set]);
    bool more = result == OCC_CUPTI_SUCCESS; /* reads at least once, even if late */
    while (more && gpu_sleep(READ_S)) {
        result = read_samples(t, &samples);
        more = result == OCC_CUPTI_SUCCESS && occ_monotonic_ns() < until_ns;
    }
    if (result == OCC_CUPTI_SUCCESS)
        result = end_turn(t);
    if (result == OCC_CUPTI_SUCCESS && samples == 0 && !gpu_stopped()) {
        t->doing = "a turn without any sample";
        result = OCC_CUPTI_ERROR_UNKNOWN;
    }
    printf("turn number=%" PRIu64 " set=%u samples=%zu\n", number, set, samples);
    fflush(stdout);
    return result;
}

/* Runs the turns; returns the exit code. */
static int run(struct turns *t, const struct options *o)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t done = 0;
    uint32_t result = OCC_CUPTI_SUCCESS;
    while (done < o->turns && !gpu_stopped()) {
        result = do_turn(t, done, o->turn_ms);
        if (result != OCC_CUPTI_SUCCESS)
            break;
        done++;
    }
    if (result != OCC_CUPTI_SUCCESS)
        (void)occ_pm_fail(&t->library, result, t->doing, &err);
    printf("turns manner=%s done=%" PRIu64 " of=%" PRIu64 " sets=%u %s\n", o->manner, done, o->turns,
           t->n_sets, err.message);
    return done == o->turns ? 0 : SAMPLE_FAILED;
}

static void close_turns(struct turns *t)
{
    (void)disable(t);
    for (uint32_t i = 0; i < OCC_SETS_MAX; i++)
        occ_cupti_host_close(&t->hosts[i]);
    occ_cupti_image_free(&t->image);
}

static void parse(char **argv, struct options *o)
{
    const struct sample_option known[] = {
        {"--manner", "NAME", "in-place or enable (in-place)", .text = &o->manner},
        {"--turns", "N", "turns in all (6)", .number = &o->turns, .min = 1, .max = 1000},
        {"--turn-ms", "MS", "how long each lasts (700)", .number = &o->turn_ms, .min = 50, .max = 60000},
        {"--interval-us", "US", "sampling interval (1000)", .number = &o->interval_us, .min = 10,
         .max = 1000000},
        {.name = NULL}};
    sample_parse(argv, "gpu_turns: lets the counter sets of PM sampling take turns.", known);
    if (strcmp(o->manner, "in-place") != 0 && strcmp(o->manner, "enable") != 0)
        sample_die(SAMPLE_USAGE, "--manner is in-place or enable");
}

int main(int argc, char **argv)
{
    struct options o = {.manner = "in-place", .turns = 6, .turn_ms = 700, .interval_us = 1000};
    struct turns turns = {.n_sets = 0};
    struct occ_error err = OCC_ERROR_INIT;
    (void)argc;
    parse(argv, &o);
    gpu_stop_catch();
    gpu_stop_with_parent();
    turns.in_place = strcmp(o.manner, "in-place") == 0;
    turns.interval_ns = o.interval_us * 1000;
    enum occ_source_state state = open_turns(&turns, &err);
    printf("opened state=%s %s\n", occ_source_state_word(state), state == OCC_SOURCE_OK ? "" : err.message);
    fflush(stdout);
    int code = state == OCC_SOURCE_OK ? run(&turns, &o) : SAMPLE_NO_DEVICE;
    close_turns(&turns);
    return fflush(stdout) == 0 ? code : SAMPLE_FAILED;
}
