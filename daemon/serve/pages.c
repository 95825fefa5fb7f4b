/* The daemon's values on /metrics and /healthz: see server_state.h. Sums over all open histories; counters
 * include closed ones. One thread. Logs. */
#include "server_state.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/gpu_jobs.h"
#include "support/log.h"
#include "support/node.h"
#include "support/text.h"

#define INVERSE_SHARE  16 /* answering may use 1/16 of the loop's time */
#define DISK_LOW_BYTES (UINT64_C(16) << 20)
#define DRIVER_NS      INT64_C(10000000000) /* interval of reading the driver's list of GPUs */

static const char *const loss_words[] = {OCC_LOSS_CAUSES(OCC_WORD)};

void occ_pages_follow(struct occ_server *s, struct occ_history *h, int64_t now_ns)
{
    if (occ_histories_follow(&s->histories, h, now_ns) && s->meter)
        occ_meter_forget_configs(s->meter);
}

static void drop(struct occ_server *s, struct occ_history *h)
{
    struct occ_totals *closed = &s->closed;
    h->stats_until_ns = 0; /* forces a last update */
    occ_totals_add(closed, h);
    closed->store = (struct occ_store_stats){.evicted_chunks = closed->store.evicted_chunks};
    closed->all.stalled = false;
    closed->all.commit_ns = closed->all.waiting_since_ns = 0;
    closed->all.producers = closed->all.held_bytes = 0;
    closed->all.ring_fill = 0;
    occ_histories_drop(&s->histories, h);
}

void occ_pages_drop_idle(struct occ_server *s, int64_t now_ns)
{
    for (struct occ_history *h; (h = occ_histories_idle(&s->histories, now_ns));)
        drop(s, h);
}

static void write_service(struct occ_server *s, const struct occ_exposition *e, const struct occ_totals *t)
{
    const struct {
        enum occ_metric metric;
        double value;
    } rows[] = {{OCC_METRIC_STALLED, t->all.stalled},
                {OCC_METRIC_FAILURES, (double)t->all.failures},
                {OCC_METRIC_COMMIT, (double)t->all.commit_ns / 1e9},
                {OCC_METRIC_BYTES, (double)t->store.bytes},
                {OCC_METRIC_QUOTA, (double)t->store.quota_bytes},
                {OCC_METRIC_EVICTED, (double)t->store.evicted_chunks},
                {OCC_METRIC_HISTORIES, (double)s->histories.n},
                {OCC_METRIC_PROGRAMS, (double)t->all.producers},
                {OCC_METRIC_CLIENTS, (double)s->clients.n},
                {OCC_METRIC_QUARANTINED, (double)t->all.quarantined},
                {OCC_METRIC_REFUSED, (double)s->refused},
                {OCC_METRIC_SAMPLER_PAUSED, occ_sampler_paused_ns(s->sampler) > 0},
                {OCC_METRIC_INJECTOR_CPU, t->all.cpu_seconds},
                {OCC_METRIC_CPU, occ_status_cpu_seconds()},
                {OCC_METRIC_MEMORY, occ_status_resident_bytes()}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        occ_exposition_one(e, rows[i].metric, rows[i].value);
    if (s->histories.node.is_known) {
        occ_exposition_one(e, OCC_METRIC_TOTAL, (double)s->histories.node.total_bytes);
        occ_exposition_one(e, OCC_METRIC_TOTAL_QUOTA, (double)s->histories.options->max_total_bytes);
    }
    if (t->store.oldest_ns)
        occ_exposition_one(e, OCC_METRIC_OLDEST, (double)t->store.oldest_ns / 1e9);
    (void)occ_exposition_begin(e, OCC_METRIC_LOST);
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        occ_exposition_put(e, OCC_METRIC_LOST,
                           (const struct occ_label[]){{"cause", loss_words[i]}, {NULL, NULL}},
                           t->all.lost[i]);
}

static void write_states(const struct occ_server *s, const struct occ_exposition *e)
{
    size_t n[OCC_HISTORY_STATE_COUNT] = {0};
    for (const struct occ_history *h = s->histories.first; h; h = h->next)
        n[occ_history_state(h)]++;
    (void)occ_exposition_begin(e, OCC_METRIC_STATES);
    for (unsigned int i = 0; i < OCC_HISTORY_STATE_COUNT; i++) {
        const struct occ_label labels[] = {{"state", occ_history_state_word((enum occ_history_state)i)},
                                           {NULL, NULL}};
        occ_exposition_put(e, OCC_METRIC_STATES, labels, (double)n[i]);
    }
}

static void write_sampler(struct occ_server *s, const struct occ_exposition *e)
{
    struct occ_gpu_status status[OCC_GPUS_MAX];
    size_t n = occ_sampler_get_status(s->sampler, status, OCC_GPUS_MAX);
    (void)occ_exposition_begin(e, OCC_METRIC_SAMPLER_STATE);
    for (size_t i = 0; i < n; i++) {
        char uuid[OCC_GPU_UUID_BYTES];
        occ_gpu_uuid_format(status[i].uuid, uuid);
        const struct occ_label labels[] = {
            {"UUID", uuid}, {"state", occ_source_state_word(status[i].state)}, {NULL, NULL}};
        occ_exposition_put(e, OCC_METRIC_SAMPLER_STATE, labels, 1);
    }
}

/* Labels as of the series by launches. */
static void write_energy(struct occ_server *s, const struct occ_exposition *e)
{
    struct occ_gpu_status status[OCC_GPUS_MAX];
    size_t n = occ_sampler_get_status(s->sampler, status, OCC_GPUS_MAX);
    (void)occ_exposition_begin(e, OCC_METRIC_GPU_ENERGY);
    for (size_t i = 0; i < n && i < OCC_GPUS_MAX; i++) {
        char uuid[OCC_GPU_UUID_BYTES], number[16];
        occ_gpu_uuid_format(status[i].uuid, uuid);
        (void)snprintf(number, sizeof number, "%u", status[i].ordinal);
        const struct occ_label labels[] = {{"gpu", number}, {"UUID", uuid}, {NULL, NULL}};
        if (isfinite(status[i].energy_j))
            occ_exposition_put(e, OCC_METRIC_GPU_ENERGY, labels, status[i].energy_j);
    }
}

static void write_certificates(const struct occ_server *s, const struct occ_exposition *e)
{
    static const char *const files[OCC_TLS_PARTS] = {
        [OCC_TLS_CERTIFICATE] = "server", [OCC_TLS_CLIENT_CA] = "client_ca"};
    (void)occ_exposition_begin(e, OCC_METRIC_CERTIFICATE);
    for (unsigned int i = 0; i < OCC_TLS_PARTS; i++) {
        int64_t expires_s = occ_http_expiry_s(s->http, (enum occ_tls_part)i);
        if (files[i] && expires_s)
            occ_exposition_put(e, OCC_METRIC_CERTIFICATE,
                               (const struct occ_label[]){{"certificate", files[i]}, {NULL, NULL}},
                               (double)expires_s);
    }
}

static void write_jobs(const struct occ_server *s, const struct occ_exposition *e)
{
    struct occ_gpu_jobs gpus[OCC_GPUS_MAX];
    if (!s->options->job_directory || !occ_exposition_begin(e, OCC_METRIC_GPU_JOB))
        return;
    size_t n = occ_jobs_read(s->options->root ? s->options->root : "", s->options->job_directory, gpus,
                             OCC_GPUS_MAX);
    for (size_t i = 0; i < n; i++) {
        char uuid[OCC_GPU_UUID_BYTES], number[16];
        occ_gpu_uuid_format(gpus[i].gpu, uuid);
        (void)snprintf(number, sizeof number, "%u", gpus[i].number);
        for (size_t k = 0; k < gpus[i].n; k++) {
            const struct occ_label labels[] = {
                {"gpu", number}, {"UUID", uuid}, {"slurm_job", gpus[i].names[k]}, {NULL, NULL}};
            occ_exposition_put(e, OCC_METRIC_GPU_JOB, labels, 1);
        }
    }
}

/* ---- GPUs that programs name ---- */

static void ordinal_of(void *context, const uint8_t uuid[16], char text[16])
{
    struct occ_server *s = context;
    struct occ_gpu_status status;
    text[0] = '\0';
    if (occ_sampler_find_status(s->sampler, uuid, &status))
        (void)snprintf(text, 16, "%u", status.ordinal);
}

static bool lists(const struct occ_driver_list *list, const uint8_t uuid[16])
{
    for (size_t i = 0; i < list->n; i++)
        if (memcmp(list->gpus[i].uuid, uuid, 16) == 0)
            return true;
    return false;
}

/* The driver's list lacks instances of GPUs split by MIG, and simulated GPUs; otherwise it is complete. */
static enum occ_meter_standing look_up(void *context, const uint8_t uuid[16], bool is_simulated)
{
    struct occ_server *s = context;
    struct occ_driver_list *list = &s->driver_list;
    int64_t now_ns = occ_monotonic_ns();
    bool has_instances = false;
    if (!lists(list, uuid) && now_ns >= list->next_ns) {
        list->n = occ_driver_gpus_read(s->options->root ? s->options->root : "", list->gpus, OCC_GPUS_MAX);
        list->next_ns = now_ns + DRIVER_NS;
    }
    for (size_t i = 0; i < list->n; i++)
        has_instances |= list->gpus[i].has_instances;
    if (lists(list, uuid))
        return OCC_METER_LISTED;
    return list->n == 0 || has_instances || is_simulated ? OCC_METER_UNKNOWN : OCC_METER_INVENTED;
}

/* ---- the pages ---- */

static void write_metrics(void *context, FILE *out, bool has_identity, bool is_openmetrics)
{
    struct occ_server *s = context;
    const struct occ_totals t = occ_totals_of(s);
    char hostname[OCC_NODE_NAME_BYTES];
    (void)occ_node_name(hostname, NULL);
    const struct occ_exposition e = {
        .out = out, .hostname = hostname, .has_identity = has_identity, .is_openmetrics = is_openmetrics};
    occ_meter_write(s->meter, &e, occ_monotonic_ns());
    write_service(s, &e, &t);
    write_states(s, &e);
    write_sampler(s, &e);
    write_energy(s, &e);
    write_certificates(s, &e);
    write_jobs(s, &e);
    occ_pages_write_coverage(s, &e);
    occ_exposition_end(&e);
}

static bool write_health(void *context, FILE *out)
{
    struct occ_server *s = context;
    size_t stalled = 0;
    struct statvfs disk;
    for (const struct occ_history *h = s->histories.first; h; h = h->next)
        stalled += occ_history_state(h) != OCC_HISTORY_OK;
    bool is_low = statvfs(s->histories.first->path, &disk) == 0 &&
                  (uint64_t)disk.f_bavail * disk.f_frsize < DISK_LOW_BYTES;
    if (stalled)
        (void)fprintf(out, "stalled: %zu of %zu histories cannot be written\n", stalled, s->histories.n);
    if (is_low)
        (void)fprintf(out, "disk: less than 16 MiB are free\n");
    if (!stalled && !is_low)
        (void)fputs("ok\n", out);
    return !stalled && !is_low;
}

/* Containers may mount the socket, and most containers run as root. */
static bool may_see_names(void *context, int connection, int64_t since_ns)
{
    const struct occ_server *s = context;
    return occ_peer_is_outside(&s->clients, connection, since_ns);
}

static void on_http(struct occ_server *s, void *none)
{
    (void)none;
    int64_t began_cpu_ns = occ_thread_cpu_ns(); /* CPU time, as in end_turn() of connections.c */
    occ_http_serve(s->http);
    occ_queue_charge(&s->http_queue, s->loop.epoll, occ_monotonic_ns(),
                     INVERSE_SHARE * (occ_thread_cpu_ns() - began_cpu_ns));
}

void occ_pages_open(struct occ_server *s)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_http_options options = {
        .socket_path = s->options->http_socket ? s->options->http_socket : "",
        .listen = s->options->http_listen ? s->options->http_listen : "",
        .tls_paths = {s->options->http_tls[0], s->options->http_tls[1], s->options->http_tls[2]},
        .write_metrics = write_metrics,
        .write_health = write_health,
        .may_see_names = may_see_names,
        .context = s};
    const struct occ_meter_options meter_options = {.max_runs = s->options->http_max_runs,
                                                    .users = s->options->users,
                                                    .look_up = look_up,
                                                    .name = ordinal_of,
                                                    .context = s};
    if (s->private.on)
        return;
    int status = occ_http_open(&options, &s->http, &err);
    if (status == 0 && s->http)
        status = occ_meter_new(&meter_options, &s->meter, &err);
    s->http_queue = (struct occ_queue){.source = {on_http, NULL}, .fd = s->http ? occ_http_fd(s->http) : -1};
    if (status == 0 && s->http &&
        occ_event_watch(s->loop.epoll, s->http_queue.fd, &s->http_queue.source) != 0)
        status = occ_fail_errno(&err, errno, "cannot watch the HTTP server");
    if (status == 0)
        return;
    occ_log(OCC_LOG_ERROR, "no metrics: %s", err.message);
    occ_pages_close(s);
}

void occ_pages_reload(struct occ_server *s)
{
    if (s->http)
        occ_http_reload(s->http);
}

void occ_pages_close(struct occ_server *s)
{
    occ_http_close(s->http);
    occ_meter_free(s->meter);
    s->http = NULL;
    s->meter = NULL;
}
