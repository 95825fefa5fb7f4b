/*
 * The daemon's side of the sampler: finds the GPUs (in a thread of its own, since starting the driver can take a second),
 * makes a track for each, hands launches in and takes sums out.
 *
 * Threads: the daemon's loop; scout() runs in its own and shares only what `mutex` guards.
 */
#include "sampler.h"

#include <pthread.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/array.h"
#include "support/clock.h"
#include "support/log.h"
#include "gpu_worker.h"

#define WANTED_NS  INT64_C(10000000000)
#define PAIRS_MOST (1u << 20)
#define PAIRS_MANY (1u << 16)
#define SCOUT_NS   INT64_C(30000000000) /* after which GPUs are looked for again, if there were none */

enum scout { SCOUT_NONE, SCOUT_RUNS, SCOUT_HOME };

struct occ_sampler {
    struct occ_sampler_options options;
    struct occ_track *tracks[OCC_GPUS_MAX];
    const char *said[OCC_GPUS_MAX]; /* state of each track that was logged last */
    size_t n_tracks;
    int64_t wanted_until_ns, paused_until_ns;
    bool scouted; /* tracks are made, or there is nothing to make them of */
    int64_t scouted_ns;
    pthread_t scout_thread;

    pthread_mutex_t mutex; /* guards what follows */
    enum scout scout;
    struct occ_gpu_found found[OCC_GPUS_MAX];
    size_t n_found;
    enum occ_source_state found_state;
    struct occ_error found_error;
};

static const char *const mode_words[] = {
#define X(name, word, text) [OCC_SAMPLER_##name] = word,
    OCC_SAMPLER_MODES(X)
#undef X
};

enum occ_sampler_mode occ_sampler_mode_parse(const char *word)
{
    int mode = 0;
    while (mode < OCC_SAMPLER_MODE_COUNT && strcmp(word, mode_words[mode]) != 0)
        mode++;
    return (enum occ_sampler_mode)mode;
}

const char *occ_sampler_mode_word(enum occ_sampler_mode mode)
{
    return (unsigned)mode < OCC_SAMPLER_MODE_COUNT ? mode_words[mode] : "unknown";
}

enum occ_sampler_mode occ_sampler_mode(const struct occ_sampler *s)
{
    return s->options.mode;
}

/* ---- GPUs ---- */

static void *scout(void *argument)
{
    struct occ_sampler *s = argument;
    struct occ_gpu_found found[OCC_GPUS_MAX];
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    enum occ_source_state state = occ_gpus_find(found, OCC_GPUS_MAX, &n, &err);
    (void)pthread_mutex_lock(&s->mutex);
    memcpy(s->found, found, n * sizeof *found);
    s->n_found = n;
    s->found_state = state;
    s->found_error = err;
    s->scout = SCOUT_HOME;
    (void)pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void send_scout(struct occ_sampler *s)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_mutex_lock(&s->mutex); /* the scout's last step waits for it */
    s->scout = SCOUT_RUNS;
    if (pthread_create(&s->scout_thread, NULL, scout, s) != 0) {
        s->scout = SCOUT_NONE;
        s->scouted = true;
        s->scouted_ns = occ_monotonic_ns();
        s->found_state = OCC_SOURCE_FAILED;
    }
    (void)pthread_mutex_unlock(&s->mutex);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void make_tracks(struct occ_sampler *s)
{
    s->scouted = true;
    s->scouted_ns = occ_monotonic_ns();
    for (size_t i = 0; i < s->n_found; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_track *track = NULL;
        if (occ_track_new(&s->found[i], &s->options, &track, &err) == 0)
            s->tracks[s->n_tracks++] = track;
        else
            occ_log(OCC_LOG_WARNING, "GPU %u has no sampler: %s", s->found[i].ordinal, err.message);
    }
    if (s->found_state != OCC_SOURCE_OK)
        occ_log(OCC_LOG_INFO, "no hardware counters: %s: %s", occ_source_state_text(s->found_state),
                s->found_error.message);
    else if (s->n_found == 0)
        occ_log(OCC_LOG_INFO, "no hardware counters: the driver shows this daemon no GPU");
}

static void want(struct occ_track *track, int64_t wanted_until_ns, int64_t paused_until_ns)
{
    (void)pthread_mutex_lock(&track->mutex);
    if (wanted_until_ns > track->wanted_until_ns)
        track->wanted_until_ns = wanted_until_ns;
    track->hurry |= track->paused_until_ns != paused_until_ns;
    track->paused_until_ns = paused_until_ns;
    (void)pthread_cond_signal(&track->wake);
    (void)pthread_mutex_unlock(&track->mutex);
}

static void want_all(struct occ_sampler *s, int64_t wanted_until_ns)
{
    for (size_t i = 0; i < s->n_tracks; i++)
        want(s->tracks[i], wanted_until_ns, s->paused_until_ns);
}

/* Looks whether the scout is back. */
static bool is_ready(struct occ_sampler *s)
{
    if (s->scouted || s->options.mode == OCC_SAMPLER_NONE)
        return s->scouted;
    (void)pthread_mutex_lock(&s->mutex);
    bool home = s->scout == SCOUT_HOME;
    (void)pthread_mutex_unlock(&s->mutex);
    if (!home)
        return false;
    (void)pthread_join(s->scout_thread, NULL);
    make_tracks(s);
    want_all(s, s->wanted_until_ns);
    return true;
}

static struct occ_track *find(struct occ_sampler *s, const uint8_t uuid[16])
{
    for (size_t i = 0; i < s->n_tracks; i++)
        if (memcmp(s->tracks[i]->gpu.uuid, uuid, 16) == 0)
            return s->tracks[i];
    return NULL;
}

void occ_sampler_begin(struct occ_sampler *s)
{
    (void)pthread_mutex_lock(&s->mutex);
    bool due = s->options.mode != OCC_SAMPLER_NONE && !s->scouted && s->scout == SCOUT_NONE;
    (void)pthread_mutex_unlock(&s->mutex);
    if (due)
        send_scout(s);
}

/* With the mutex held. Samples of a GPU that no launch has named yet stay. */
static bool has_results(const struct occ_track *t)
{
    return t->n_outbox > 0 || t->n_values > 0 || (t->device != 0 && (t->n_samples > 0 || t->n_seconds > 0));
}

bool occ_sampler_is_busy(struct occ_sampler *s)
{
    (void)pthread_mutex_lock(&s->mutex);
    bool busy = !s->scouted && s->scout != SCOUT_NONE;
    (void)pthread_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < s->n_tracks && !busy; i++) {
        struct occ_track *t = s->tracks[i];
        (void)pthread_mutex_lock(&t->mutex);
        busy = t->at_work || has_results(t);
        (void)pthread_mutex_unlock(&t->mutex);
    }
    return busy;
}

bool occ_sampler_tend(struct occ_sampler *s, bool programs)
{
    bool results = false;
    int64_t now_ns = occ_monotonic_ns();
    for (size_t i = 0; is_ready(s) && i < s->n_tracks; i++) {
        struct occ_track *t = s->tracks[i];
        (void)pthread_mutex_lock(&t->mutex);
        results |= has_results(t);
        if (programs && t->device != 0 && t->active_ns > now_ns - WANTED_NS)
            t->wanted_until_ns = now_ns + WANTED_NS;
        (void)pthread_mutex_unlock(&t->mutex);
    }
    return results;
}

void occ_sampler_wake(struct occ_sampler *s)
{
    if (s->options.mode == OCC_SAMPLER_NONE)
        return;
    s->wanted_until_ns = occ_monotonic_ns() + WANTED_NS;
    if (s->scouted && s->n_tracks == 0 && occ_monotonic_ns() - s->scouted_ns > SCOUT_NS) {
        s->scouted = false; /* a driver may have been loaded since */
        s->scout = SCOUT_NONE;
    }
    occ_sampler_begin(s);
    if (is_ready(s))
        want_all(s, s->wanted_until_ns);
}

void occ_sampler_pause(struct occ_sampler *s, int64_t duration_ns)
{
    s->paused_until_ns = duration_ns > 0 ? occ_monotonic_ns() + duration_ns : 0;
    if (is_ready(s))
        want_all(s, 0);
}

int64_t occ_sampler_paused_ns(const struct occ_sampler *s)
{
    int64_t left_ns = s->paused_until_ns - occ_monotonic_ns();
    return left_ns > 0 ? left_ns : 0;
}

static bool all_have_tried(struct occ_sampler *s)
{
    bool all = true;
    for (size_t i = 0; i < s->n_tracks; i++) {
        (void)pthread_mutex_lock(&s->tracks[i]->mutex);
        all &= s->tracks[i]->has_tried;
        (void)pthread_mutex_unlock(&s->tracks[i]->mutex);
    }
    return all;
}

void occ_sampler_await(struct occ_sampler *s, int64_t patience_ns)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until_ns = occ_monotonic_ns() + patience_ns;
    while (s->options.mode != OCC_SAMPLER_NONE && !(is_ready(s) && all_have_tried(s)) &&
           occ_monotonic_ns() < until_ns)
        (void)nanosleep(&pause, NULL);
}

/* ---- launches in ---- */

/* What the attribution has to know of a shape. Shapes that the model refuses have no bound. */
static struct occ_attribution_key key_of(struct occ_store *store, uint32_t shape)
{
    struct occ_result model = {0};
    struct occ_attribution_key key = {.shape = shape, .theoretical = NAN};
    if (occ_store_shape_model(store, shape, &model, NULL) != 0)
        return key;
    key.theoretical = model.theoretical;
    key.grid_blocks = model.grid_blocks;
    key.wave_blocks = model.wave_blocks;
    key.warps_per_block = model.warps_per_block;
    key.blocks_per_sm = model.blocks_per_sm;
    return key;
}

/* Runs come and go for weeks: when nothing refers to them, many pairs are forgotten. */
static void forget_pairs(struct occ_track *t)
{
    if (t->n_pairs < PAIRS_MANY)
        return;
    (void)pthread_mutex_lock(&t->mutex);
    bool unused = !t->at_work && t->n_inbox == 0 && t->n_outbox == 0 && t->n_values == 0;
    if (unused) {
        t->n_pairs = 0;
        occ_map_clear(&t->pair_index);
    }
    (void)pthread_mutex_unlock(&t->mutex);
}

/* OCC_MAP_NONE: too many. Called without the mutex: only the loop adds pairs. */
static uint32_t pair_of(struct occ_track *t, struct occ_store *store, int64_t run, uint32_t shape)
{
    uint64_t id = (uint64_t)run << 32 | shape;
    uint32_t at = occ_map_get(&t->pair_index, id);
    if (at != OCC_MAP_NONE)
        return at;
    (void)pthread_mutex_lock(&t->mutex);
    bool room = occ_grow((void **)&t->pairs, &t->pairs_allocated, t->n_pairs, PAIRS_MOST, sizeof *t->pairs);
    (void)pthread_mutex_unlock(&t->mutex);
    if (!room)
        return OCC_MAP_NONE;
    const struct occ_track_pair pair = {.run = run, .key = key_of(store, shape)};
    (void)pthread_mutex_lock(&t->mutex);
    t->pairs[t->n_pairs] = pair;
    (void)pthread_mutex_unlock(&t->mutex);
    if (occ_map_put(&t->pair_index, id, t->n_pairs) == OCC_MAP_NONE)
        return OCC_MAP_NONE;
    return t->n_pairs++;
}

/* With the mutex held. */
static bool put_launch(struct occ_track *t, const struct occ_store_launch *row, uint32_t pair)
{
    if (!occ_grow((void **)&t->inbox, &t->inbox_allocated, t->n_inbox, OCC_TRACK_INBOX_MOST,
                  sizeof *t->inbox))
        return false;
    t->inbox[t->n_inbox++] = (struct occ_track_launch){.start_ns = row->start_ns,
                                                       .end_ns = row->start_ns + (int64_t)row->duration_ns,
                                                       .graph_node = row->graph_node,
                                                       .pair = pair,
                                                       .correlation = row->correlation};
    return true;
}

static bool is_ahead(const struct occ_store_launch *row, int64_t latest_ns)
{
    return row->start_ns > latest_ns || row->duration_ns > (uint64_t)(latest_ns - row->start_ns);
}

void occ_sampler_feed(struct occ_sampler *s, struct occ_store *store, const uint8_t uuid[16], int64_t device,
                      int64_t run, const struct occ_store_launch *rows, size_t n)
{
    enum { BATCH = 256 };
    uint32_t pairs[BATCH];
    struct occ_track *t = is_ready(s) ? find(s, uuid) : NULL;
    if (!t)
        return;
    t->device = device;
    forget_pairs(t);
    int64_t latest_ns = occ_now_ns() + OCC_TRACK_FUTURE_NS; /* a launch is told of when it is over */
    for (size_t done = 0, now; done < n; done += now) {
        uint64_t dropped = 0;
        now = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < now; i++)
            pairs[i] = pair_of(t, store, run, rows[done + i].shape);
        (void)pthread_mutex_lock(&t->mutex);
        for (size_t i = 0; i < now; i++)
            dropped += pairs[i] == OCC_MAP_NONE || is_ahead(&rows[done + i], latest_ns) ||
                       !put_launch(t, &rows[done + i], pairs[i]);
        t->status.launches += now;
        t->status.dropped += dropped;
        (void)pthread_mutex_unlock(&t->mutex);
    }
    want(t, occ_monotonic_ns() + WANTED_NS, s->paused_until_ns);
}

/* ---- sums out ---- */

static void get_status(struct occ_track *t, struct occ_sampler_status *ret_status)
{
    (void)pthread_mutex_lock(&t->mutex);
    *ret_status = t->status;
    (void)pthread_mutex_unlock(&t->mutex);
}

static void log_state(struct occ_sampler *s, size_t i)
{
    struct occ_sampler_status status;
    get_status(s->tracks[i], &status);
    const char *word = status.state == OCC_SOURCE_OK ? status.source : occ_source_state_word(status.state);
    if (s->said[i] == word || (!s->said[i] && status.state == OCC_SOURCE_IDLE))
        return;
    s->said[i] = word;
    bool works = status.state == OCC_SOURCE_OK;
    occ_log(OCC_LOG_INFO, "GPU %u: counters: %s%s%s", s->tracks[i]->gpu.ordinal, works ? word : "none",
            status.reason[0] ? ": " : "", status.reason);
}

/* What a track has measured. */
struct outbox {
    struct occ_track_result *results;
    struct occ_track_value *values;
    struct occ_device_sample *samples;
    size_t n_results, n_values, n_samples;
    struct occ_attribution_second seconds[OCC_TRACK_SECONDS_MOST];
    size_t n_seconds;
    uint64_t dropped; /* that the store had no room for */
};

/* Moves the outbox away, so that the store is not called with the mutex held. Samples of a GPU that no launch has
 * named yet stay. */
static void empty_outbox(struct occ_track *t, struct outbox *out)
{
    *out = (struct outbox){0};
    (void)pthread_mutex_lock(&t->mutex);
    out->results = t->outbox;
    out->n_results = t->n_outbox;
    out->values = t->values;
    out->n_values = t->n_values;
    t->outbox = NULL;
    t->values = NULL;
    t->n_outbox = t->outbox_allocated = t->n_values = t->values_allocated = 0;
    occ_map_clear(&t->outbox_index);
    if (t->device != 0) {
        out->samples = t->samples;
        out->n_samples = t->n_samples;
        out->n_seconds = t->n_seconds;
        memcpy(out->seconds, t->seconds, t->n_seconds * sizeof *t->seconds);
        t->samples = NULL;
        t->n_samples = t->samples_allocated = t->n_seconds = 0;
    }
    (void)pthread_mutex_unlock(&t->mutex);
}

/* No room is no failure: the commit that makes room comes after this. */
static int unless_full(int status, uint64_t n, struct outbox *out)
{
    if (status != OCC_E_FULL)
        return status;
    out->dropped += n;
    return 0;
}

static int store_results(const struct occ_track *t, struct occ_store *store, struct outbox *out,
                         struct occ_error *err)
{
    int status = 0;
    for (size_t k = 0; k < out->n_results && status == 0; k++) {
        const struct occ_track_result *result = &out->results[k];
        const struct occ_track_pair *pair = &t->pairs[result->pair]; /* the loop's own, see pair_of() */
        status = unless_full(occ_store_add_measured(store, result->minute, pair->run,
                                                    (uint32_t)pair->key.shape, &result->sums, err),
                             1, out);
    }
    return status;
}

static int store_values(const struct occ_track *t, struct occ_store *store, struct outbox *out,
                        struct occ_error *err)
{
    int status = 0;
    for (size_t k = 0; k < out->n_values && status == 0; k++) {
        const struct occ_track_pair *pair = &t->pairs[out->values[k].pair];
        struct occ_launch_value *value = &out->values[k].value;
        value->shape = (uint32_t)pair->key.shape;
        status = unless_full(occ_store_add_launch_values(store, pair->run, t->device, value, 1, err), 1, out);
    }
    return status;
}

static int store_samples(const struct occ_track *t, struct occ_store *store, struct outbox *out,
                         struct occ_error *err)
{
    int status = out->n_samples == 0
                     ? 0
                     : unless_full(occ_store_add_samples(store, t->device, out->samples, out->n_samples, err),
                                   out->n_samples, out);
    for (size_t k = 0; k < out->n_seconds && status == 0; k++)
        status = unless_full(occ_store_add_unexplained(store, t->device, out->seconds[k].second,
                                                       out->seconds[k].unexplained, err),
                             1, out);
    return status;
}

static int store_track(struct occ_track *t, struct occ_store *store, struct occ_error *err)
{
    struct outbox out;
    empty_outbox(t, &out);
    int status = store_results(t, store, &out, err);
    if (status == 0)
        status = store_values(t, store, &out, err);
    if (status == 0)
        status = store_samples(t, store, &out, err);
    free(out.results);
    free(out.values);
    free(out.samples);
    (void)pthread_mutex_lock(&t->mutex);
    t->status.dropped += out.dropped;
    (void)pthread_mutex_unlock(&t->mutex);
    return status;
}

int occ_sampler_store(struct occ_sampler *s, struct occ_store *store, struct occ_error *err)
{
    int status = 0;
    if (!is_ready(s))
        return 0;
    for (size_t i = 0; i < s->n_tracks && status == 0; i++) {
        status = store_track(s->tracks[i], store, err);
        log_state(s, i);
    }
    return status;
}

void occ_sampler_settle(struct occ_sampler *s, int64_t patience_ns)
{
    int64_t at_ns = occ_monotonic_ns() + patience_ns;
    const struct timespec until = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    if (!is_ready(s))
        return;
    for (size_t i = 0; i < s->n_tracks; i++) {
        struct occ_track *t = s->tracks[i];
        (void)pthread_mutex_lock(&t->mutex);
        t->settle = true;
        (void)pthread_cond_signal(&t->wake);
        while (t->settle && pthread_cond_timedwait(&t->settled, &t->mutex, &until) == 0)
            ;
        (void)pthread_mutex_unlock(&t->mutex);
    }
}

/* ---- asking ---- */

size_t occ_sampler_status(struct occ_sampler *s, struct occ_sampler_status *status, size_t max)
{
    size_t n = is_ready(s) ? s->n_tracks : 0;
    for (size_t i = 0; i < n && i < max; i++)
        get_status(s->tracks[i], &status[i]);
    return n;
}

bool occ_sampler_ask(struct occ_sampler *s, const uint8_t uuid[16], struct occ_sampler_status *ret_status)
{
    *ret_status = (struct occ_sampler_status){.source = "none", .state = OCC_SOURCE_NO_DRIVER};
    bool ready = is_ready(s);
    struct occ_track *t = ready ? find(s, uuid) : NULL;
    if (t) {
        get_status(t, ret_status);
        return true;
    }
    const char *why = s->options.mode == OCC_SAMPLER_NONE ? "hardware counters are switched off"
                      : !ready && s->wanted_until_ns == 0 ? "no program has come yet"
                      : !ready                            ? "the driver has not answered yet"
                      : s->found_state != OCC_SOURCE_OK   ? occ_source_state_text(s->found_state)
                                                          : "the daemon does not see this GPU";
    (void)snprintf(ret_status->reason, sizeof ret_status->reason, "%s", why);
    return false;
}

/* ---- begin and end ---- */

int occ_sampler_new(const struct occ_sampler_options *options, struct occ_sampler **ret_sampler,
                    struct occ_error *err)
{
    struct occ_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    s->options = *options;
    (void)pthread_mutex_init(&s->mutex, NULL);
    *ret_sampler = s;
    return 0;
}

void occ_sampler_free(struct occ_sampler *s)
{
    if (!s)
        return;
    if (!s->scouted && s->scout != SCOUT_NONE)
        (void)pthread_join(s->scout_thread, NULL);
    for (size_t i = 0; i < s->n_tracks; i++)
        occ_track_free(s->tracks[i]);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}
