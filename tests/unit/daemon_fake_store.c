/* The store in memory: see the header. */
#include "store/names.h"
#include "daemon_fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct occ_store *fake_store_new(void)
{
    struct occ_store *store = calloc(1, sizeof *store);
    if (store)
        store->rows = calloc(FAKE_ROWS, sizeof *store->rows);
    if (!store || !store->rows)
        abort();
    return store;
}

void fake_store_free(struct occ_store *store)
{
    free(store->rows);
    free(store);
}

void fake_store_crash(struct occ_store *store)
{
    store->now = store->committed;
}

static int fault(int code, struct occ_error *err)
{
    return code ? occ_fail(err, code, "a fault on demand") : 0;
}

static void copy(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : "");
}

int occ_store_add_measured(struct occ_store *store, int64_t minute, int64_t run, uint32_t shape,
                           const struct occ_measured_sums *sums, struct occ_error *err)
{
    struct occ_measured_sums *to = &store->now.measured;
    if (store->fail_append)
        return fault(store->fail_append, err);
    if (minute <= 0 || run <= 0 || shape == 0)
        abort();
    to->exact += sums->exact;
    to->direct += sums->direct;
    to->regression += sums->regression;
    store->n_measured++;
    store->measured_run = run;
    store->measured_config = shape;
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        to->sum[k] += sums->sum[k];
        to->ns[k] += sums->ns[k];
    }
    return 0;
}

int occ_store_put_run(struct occ_store *store, const struct occ_run *run, int64_t *ret_id,
                      struct occ_error *err)
{
    size_t i = 0;
    if (store->fail_put)
        return fault(store->fail_put, err);
    while (i < store->now.n_runs && memcmp(store->now.runs[i].row.uuid, run->uuid, 16) != 0)
        i++;
    if (i == FAKE_THINGS)
        abort();
    if (i == store->now.n_runs)
        store->now.n_runs++;
    struct fake_run *r = &store->now.runs[i];
    r->row = *run;
    copy(r->exe, sizeof r->exe, run->exe);
    copy(r->session, sizeof r->session, run->session);
    copy(r->level, sizeof r->level, run->level);
    copy(r->reason, sizeof r->reason, run->level_reason);
    copy(r->hostname, sizeof r->hostname, run->hostname);
    r->ended = false;
    store->puts++;
    *ret_id = (int64_t)i + 1;
    return 0;
}

int occ_store_run_user(struct occ_store *store, const uint8_t uuid[16], uint32_t *ret_uid,
                       struct occ_error *err)
{
    for (size_t i = 0; i < store->now.n_runs; i++)
        if (memcmp(store->now.runs[i].row.uuid, uuid, 16) == 0) {
            *ret_uid = store->now.runs[i].row.uid;
            return 0;
        }
    return occ_fail(err, OCC_E_NOT_FOUND, "no such run");
}

static struct fake_run *find_run(struct occ_store *store, const uint8_t uuid[16])
{
    for (size_t i = 0; i < store->now.n_runs; i++)
        if (memcmp(store->now.runs[i].row.uuid, uuid, 16) == 0)
            return &store->now.runs[i];
    return NULL;
}

int occ_store_run_total(struct occ_store *store, enum occ_run_total which, const uint8_t uuid[16],
                        const char *word, uint64_t *ret_total, struct occ_error *err)
{
    const struct fake_run *r = find_run(store, uuid);
    const char *at = r ? strstr(which == OCC_RUN_LOSS ? r->losses : r->costs, word) : NULL;
    (void)err;
    *ret_total = at ? strtoull(at + strlen(word), NULL, 10) : 0;
    return 0;
}

int occ_store_run_recorded(struct occ_store *store, const uint8_t uuid[16], int64_t *ret_ns,
                           bool *ret_was_elsewhere, struct occ_error *err)
{
    const struct fake_run *r = find_run(store, uuid);
    (void)err;
    if (!r)
        return OCC_E_NOT_FOUND;
    *ret_ns = r->row.start_ns;
    *ret_was_elsewhere = strstr(r->periods, OCC_STORE_ELSEWHERE) != NULL;
    return 0;
}

int occ_store_put_losses(struct occ_store *store, int64_t run, const struct occ_loss *losses, size_t n,
                         struct occ_error *err)
{
    struct fake_run *r = &store->now.runs[run - 1];
    if (store->fail_put)
        return fault(store->fail_put, err);
    r->losses[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(r->losses);
        (void)snprintf(r->losses + used, sizeof r->losses - used, "%s %llu ", losses[i].cause,
                       (unsigned long long)losses[i].count);
    }
    return 0;
}

int occ_store_put_costs(struct occ_store *store, int64_t run, const struct occ_cost_total *costs, size_t n,
                        struct occ_error *err)
{
    struct fake_run *r = &store->now.runs[run - 1];
    if (store->fail_put)
        return fault(store->fail_put, err);
    r->costs[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(r->costs);
        (void)snprintf(r->costs + used, sizeof r->costs - used, "%s %llu ", costs[i].what,
                       (unsigned long long)costs[i].total);
    }
    return 0;
}

int occ_store_put_period(struct occ_store *store, int64_t run, const struct occ_period *period,
                         struct occ_error *err)
{
    char *to = store->now.runs[run - 1].periods;
    size_t used = strlen(to), size = sizeof store->now.runs[0].periods;
    if (store->fail_put)
        return fault(store->fail_put, err);
    if (period->until_ns == period->from_ns)
        (void)snprintf(to + used, size - used, "dropped %lld;", (long long)period->from_ns);
    else
        (void)snprintf(to + used, size - used, "%s %lld-%lld %s;", period->level, (long long)period->from_ns,
                       (long long)period->until_ns, period->reason);
    return 0;
}

int occ_store_put_device(struct occ_store *store, const struct occ_store_device *device, int64_t *ret_id,
                         struct occ_error *err)
{
    if (store->fail_put)
        return fault(store->fail_put, err);
    uint32_t i = store->n_devices++ % FAKE_THINGS;
    store->devices[i] = *device;
    copy(store->device_names[i], sizeof store->device_names[i], device->name);
    *ret_id = (int64_t)i + 1;
    return 0;
}

int occ_store_put_kernel(struct occ_store *store, const char *mangled, uint64_t name_hash, int64_t *ret_id,
                         struct occ_error *err)
{
    (void)mangled;
    (void)name_hash;
    if (store->fail_put)
        return fault(store->fail_put, err);
    *ret_id = ++store->n_kernels;
    return 0;
}

int occ_store_put_config(struct occ_store *store, const struct occ_launch_config *shape, int64_t *ret_id,
                         struct occ_error *err)
{
    (void)shape;
    if (store->fail_put)
        return fault(store->fail_put, err);
    *ret_id = ++store->n_shapes;
    return 0;
}

int occ_store_put_range(struct occ_store *store, int64_t run, const char *path, const char *phase,
                        uint32_t *ret_range, struct occ_error *err)
{
    if (run < 1 || phase)
        abort();
    if (store->fail_put)
        return fault(store->fail_put, err);
    copy(store->ranges[store->n_ranges % FAKE_THINGS], sizeof store->ranges[0], path);
    *ret_range = ++store->n_ranges;
    return 0;
}

int occ_store_append(struct occ_store *store, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err)
{
    if (store->fail_append && (store->fail_device == 0 || store->fail_device == device))
        return fault(store->fail_append, err);
    if (run < 1 || (size_t)run > store->now.n_runs || device < 1 || store->now.n_rows + n > FAKE_ROWS)
        abort();
    for (size_t i = 0; i < n; i++) /* like the real store */
        if (launches[i].start_ns <= 0 || launches[i].start_ns == INT64_MAX)
            return occ_fail(err, OCC_E_INVALID, "impossible times");
    for (size_t i = 0; i < n; i++)
        store->rows[store->now.n_rows++] = (struct fake_row){run, device, launches[i]};
    return 0;
}

static struct fake_position *position_of(struct occ_store *store, const uint8_t uuid[16])
{
    size_t i = 0;
    while (i < store->now.n_positions && memcmp(store->now.positions[i].uuid, uuid, 16) != 0)
        i++;
    if (i == FAKE_THINGS)
        abort();
    if (i == store->now.n_positions)
        memcpy(store->now.positions[store->now.n_positions++].uuid, uuid, 16);
    return &store->now.positions[i];
}

static uint64_t *position_in(struct occ_store *store, enum occ_position which, const uint8_t uuid[16])
{
    struct fake_position *position = position_of(store, uuid);
    return which == OCC_POSITION_RING ? &position->next : &position->measured;
}

int occ_store_put_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                           uint64_t next, struct occ_error *err)
{
    if (store->fail_put)
        return fault(store->fail_put, err);
    *position_in(store, which, uuid) = next;
    return 0;
}

int occ_store_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                       uint64_t *ret_next, struct occ_error *err)
{
    (void)err;
    *ret_next = *position_in(store, which, uuid);
    return 0;
}

int occ_store_commit(struct occ_store *store, struct occ_error *err)
{
    if (store->fail_commit)
        return fault(store->fail_commit, err);
    store->committed = store->now;
    store->commits++;
    return 0;
}

int occ_store_end_run(struct occ_store *store, int64_t run, struct occ_error *err)
{
    if (store->fail_end)
        return fault(store->fail_end, err);
    store->now.runs[run - 1].ended = true;
    return 0;
}

int occ_store_finish(struct occ_store *store, struct occ_error *err)
{
    return occ_store_commit(store, err);
}

uint64_t occ_store_memory_bytes(const struct occ_store *store)
{
    return store->memory_bytes;
}

int occ_store_session_launches(struct occ_store *store, const char *session, uint64_t *ret_launches,
                               struct occ_error *err)
{
    (void)err;
    *ret_launches = 0;
    for (size_t i = 0; i < store->now.n_rows; i++)
        *ret_launches += strcmp(store->now.runs[store->rows[i].run - 1].session, session) == 0;
    return 0;
}

int occ_store_begin_bulk(struct occ_store *store, struct occ_error *err)
{
    (void)store;
    (void)err;
    return 0;
}

int occ_store_end_bulk(struct occ_store *store, struct occ_error *err)
{
    return occ_store_begin_bulk(store, err);
}

bool occ_store_has_room(struct occ_store *store)
{
    (void)store;
    return true;
}

uint64_t occ_store_names_share(const struct occ_store *store)
{
    (void)store;
    return UINT64_MAX;
}

int occ_store_collect_names(struct occ_store *store, const struct occ_name_keeper *keeper, bool *ret_more,
                            struct occ_error *err)
{
    (void)store;
    (void)keeper;
    (void)ret_more;
    (void)err;
    return 0;
}

const char *occ_store_reopen_reason(const struct occ_store *store)
{
    (void)store;
    return NULL;
}

int occ_store_end_lost_runs(struct occ_store *store, const char *hostname, const char *session,
                            bool (*is_alive)(int64_t pid, int64_t start_ns), size_t *ret_open,
                            struct occ_error *err)
{
    if (ret_open)
        *ret_open = 0;
    (void)store;
    (void)hostname;
    (void)session;
    (void)is_alive;
    (void)err;
    return 0;
}

void occ_store_get_stats(struct occ_store *store, struct occ_store_stats *ret_stats)
{
    (void)store;
    *ret_stats = (struct occ_store_stats){0};
}

int occ_store_maintain(struct occ_store *store, int64_t now_ns, bool *ret_more, struct occ_error *err)
{
    (void)store;
    (void)now_ns;
    (void)err;
    *ret_more = false;
    return 0;
}

int occ_store_set_limits(struct occ_store *store, uint64_t max_bytes, const struct occ_store_ages *ages,
                         struct occ_error *err)
{
    (void)store;
    (void)max_bytes;
    (void)ages;
    (void)err;
    return 0;
}

/* Linked but never called: metrics read a summary (no test serves them from this store), and a
 * replaced history is reopened (this store is never replaced). */
int occ_store_summarize_config(struct occ_store *store, int64_t config,
                               struct occ_config_summary *ret_summary, struct occ_error *err)
{
    (void)store;
    (void)config;
    (void)ret_summary;
    (void)err;
    abort();
}

int occ_store_reopen(struct occ_store *store, struct occ_error *err)
{
    (void)store;
    (void)err;
    abort();
}

/* Counts the reads of a model and returns a fixed one. Without this definition the linker takes the store's
 * measured.o, and its other functions collide with the functions above. */
int occ_store_config_model(struct occ_store *store, int64_t config, struct occ_result *ret_result,
                           struct occ_error *err)
{
    (void)err;
    store->models++;
    *ret_result = (struct occ_result){
        .theoretical = 1, .grid_blocks = (uint64_t)config, .wave_blocks = 200, .blocks_per_sm = 2};
    return 0;
}

int occ_store_add_launch_values(struct occ_store *store, int64_t run, int64_t device,
                                const struct occ_launch_value *values, size_t n, struct occ_error *err)
{
    (void)run;
    (void)err;
    store->n_values += n;
    store->last_value = values[n - 1];
    store->values_device = device;
    return 0;
}

int occ_store_add_samples(struct occ_store *store, int64_t device, const struct occ_device_sample *samples,
                          size_t n, struct occ_error *err)
{
    (void)samples;
    store->n_samples += store->fail_samples ? 0 : n;
    store->samples_device = device;
    return fault(store->fail_samples, err);
}

int occ_store_add_energy(struct occ_store *store, const struct occ_device_energy *energy,
                         struct occ_error *err)
{
    (void)err;
    store->energy_mj[energy->device % FAKE_THINGS] += energy->mj;
    store->energy_ns[energy->device % FAKE_THINGS] += energy->length_ns;
    return 0;
}

int occ_store_add_unexplained(struct occ_store *store, int64_t device, int64_t second, double ratio,
                              struct occ_error *err)
{
    (void)second;
    (void)ratio;
    (void)err;
    store->n_seconds++;
    store->seconds_device = device;
    return 0;
}
