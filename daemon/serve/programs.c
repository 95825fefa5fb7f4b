/* Programs, from the handshake to the end of the process: see server_state.h. One thread. Logs. */
#include "server_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ring/handshake.h"
#include "daemon/collect/run_texts.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/process.h"

/* The collector drops the client's producer or gives it to another client. */
void occ_program_gone(void *owner, void *context)
{
    struct occ_history *h = context;
    struct occ_server *s = h->context;
    struct occ_client *client = owner;
    h->has_unreferenced_names = true;
    s->next_upkeep_ns = 0;
    if (s->meter && client->producer)
        occ_meter_end_run(s->meter, client->producer->run.row.uuid, occ_monotonic_ns());
    client->user->n_programs -= client->producer != NULL;
    client->producer = NULL;
    occ_client_close(client);
}

/* Asks for the scheduler's job once, at the run's first launches, which identify the GPU. */
static void ask_scheduler(const struct occ_server *s, struct occ_producer *producer, const uint8_t gpu[16])
{
    struct occ_gpu_jobs gpus[OCC_GPUS_MAX];
    if (producer->run.was_scheduled || !s->options->job_directory)
        return;
    producer->run.was_scheduled = true;
    size_t n = occ_jobs_read(s->options->root ? s->options->root : "", s->options->job_directory, gpus,
                             OCC_GPUS_MAX);
    for (size_t i = 0; i < n; i++)
        if (memcmp(gpus[i].gpu, gpu, sizeof gpus[i].gpu) == 0)
            producer->run.row_changed |= occ_run_texts_schedule(&producer->run.row.job, &gpus[i]);
}

/* Offers the program's libcupti to the sampler. */
static void offer_library(const struct occ_server *s, struct occ_producer *producer)
{
    const char *path = producer->run.row.cupti.path;
    if (!path || producer->run.has_offered)
        return;
    producer->run.has_offered = true;
    /* Root in a container is uid 0: a file that it wrote looks like a file of the host's root. */
    if (producer->identity.pod[0] || producer->identity.container[0])
        return;
    bool is_own = producer->peer.uid == geteuid() &&
                  occ_process_shares_files(s->options->root ? s->options->root : "", producer->peer.pid);
    occ_sampler_offer_library(s->sampler, path, is_own);
}

static uint64_t owner_of(const struct occ_history *h, const struct occ_producer *producer)
{
    const struct occ_server *s = h->context;
    return s->histories_options.split ? h->number : producer->run.row.uid;
}

void occ_program_leveled(struct occ_producer *producer, void *context)
{
    struct occ_history *h = context;
    struct occ_server *s = h->context;
    if (s->meter)
        occ_meter_set_holes(s->meter, owner_of(h, producer), producer->run.row.uuid, &producer->run.holes);
}

void occ_program_appended(struct occ_producer *producer, const struct occ_producer_device *device,
                          const struct occ_store_launch *rows, size_t n, void *context)
{
    struct occ_history *h = context;
    struct occ_server *s = h->context;
    struct occ_gpu_status status;
    const char *level = producer->run.counters_level;
    char reason[sizeof producer->run.counters_reason] = "";
    ask_scheduler(s, producer, device->uuid);
    if (s->meter)
        occ_meter_add(s->meter,
                      &(struct occ_meter_launches){.history = h->number,
                                                   .owner = owner_of(h, producer),
                                                   .store = h->store,
                                                   .gpu = device->uuid,
                                                   .run = &producer->run.row,
                                                   .holes = &producer->run.holes,
                                                   .rows = rows,
                                                   .n = n,
                                                   .lost = occ_producer_lost(producer)},
                      occ_monotonic_ns());
    if (producer->run.is_without_counters) {
        occ_producer_want_memory(producer, false);
        return;
    }
    offer_library(s, producer);
    occ_sampler_feed(s->sampler, &(struct occ_sampler_launches){.history = h->number,
                                                                .uuid = device->uuid,
                                                                .device = device->id,
                                                                .run = producer->run.id,
                                                                .rows = rows,
                                                                .n = n});
    (void)occ_sampler_find_status(s->sampler, device->uuid, &status);
    if (status.state != OCC_SOURCE_OK) {
        (void)snprintf(reason, sizeof reason, "achieved occupancy is %s measured: %s",
                       level ? "no longer" : "not", status.reason);
    } else {
        bool is_pm = strcmp(status.source, "pm") == 0;
        level = is_pm ? "full" : "gpm";
        if (status.reason[0])
            (void)snprintf(
                reason, sizeof reason, "%s%s",
                is_pm ? "" : "means of 100 ms, since there are no finer counters: ", status.reason);
    }
    occ_producer_set_counters(producer, level, reason);
    occ_producer_want_memory(producer, status.state == OCC_SOURCE_OK);
}

void occ_program_memory(struct occ_producer *producer, const struct occ_producer_device *device,
                        const struct occ_store_launch *rows, size_t n, void *context)
{
    struct occ_history *h = context;
    struct occ_server *s = h->context;
    if (!producer->run.is_without_counters)
        occ_sampler_feed(s->sampler, &(struct occ_sampler_launches){.history = h->number,
                                                                    .uuid = device->uuid,
                                                                    .device = device->id,
                                                                    .run = producer->run.id,
                                                                    .rows = rows,
                                                                    .n = n,
                                                                    .are_memory = true});
}

static void program_died(struct occ_server *s, struct occ_client *client)
{
    occ_close_fd(&client->pidfd);
    if (client->producer) {
        occ_collector_died(client->history->collector, client->producer);
        client->history->next_poll_ns = 0;
    }
    s->program_ended = true;
}

void occ_program_hang_up(struct occ_server *s, struct occ_client *client)
{
    occ_client_close(client);
    if (!client->producer)
        return;
    if (client->pidfd < 0)
        program_died(s, client);
    else
        occ_collector_orphaned(client->history->collector, client->producer, occ_monotonic_ns());
}

static void count_refusal(struct occ_server *s, const struct occ_client *client, enum occ_refusal cause)
{
    s->refused++;
    if (client->owner.name[0])
        occ_refusals_count(&s->refusals, client->owner.name, cause);
    else
        occ_refusals_count_uid(&s->refusals, client->user->uid, cause);
}

void occ_program_refuse(struct occ_server *s, struct occ_client *client, enum occ_refusal cause,
                        const char *why)
{
    count_refusal(s, client, cause);
    occ_ratelimit_log(&client->user->refusals, occ_monotonic_ns(), OCC_LOG_WARNING,
                      "process %d of uid %u is refused: %s", (int)client->peer.pid, client->peer.uid, why);
    occ_program_hang_up(s, client);
}

static void on_process(struct occ_server *s, void *about)
{
    struct occ_client *client = about;
    if (client->pidfd >= 0)
        program_died(s, client);
}

static void watch_process(struct occ_server *s, struct occ_client *client)
{
    client->process_source = (struct occ_event_source){on_process, client};
    client->pidfd = occ_peer_open_process(client->fd, &client->peer);
    if (client->pidfd < 0 && errno == ESRCH)
        program_died(s, client); /* it ended after sending the packet; its ring is still drained */
    if (client->pidfd >= 0 &&
        occ_event_watch(client->user->queue.fd, client->pidfd, &client->process_source) != 0)
        occ_close_fd(&client->pidfd); /* the end of the connection counts as the program's end */
}

/* Takes over the offer's descriptor in every case. */
static int take_offer(struct occ_server *s, struct occ_client *client, const struct occ_offer *offer,
                      struct occ_error *err)
{
    int64_t now_ns = occ_monotonic_ns();
    struct occ_owner owner;
    client->history = NULL;
    occ_histories_owner(&s->histories, offer->identity, &owner);
    if (occ_histories_of(&s->histories, &owner, now_ns, &client->history, err) != 0) {
        (void)close(offer->fd);
        return -1;
    }
    return occ_collector_offer(client->history->collector, offer, now_ns, &client->producer, err);
}

static enum occ_refusal refusal_of(int error)
{
    return error == OCC_E_FULL                             ? OCC_REFUSED_FULL
           : error == OCC_E_IO || error == OCC_E_NO_MEMORY ? OCC_REFUSED_HISTORY
                                                           : OCC_REFUSED_INVALID;
}

void occ_program_offer(struct occ_server *s, struct occ_client *client)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_offer offer = {.peer = client->peer, .identity = &client->identity, .owner = client};
    const char *wrong = client->was_producer ? "a second ring on one connection"
                                             : occ_packet_check_hello(&s->packet, offer.uuid);
    if (wrong) {
        occ_program_refuse(s, client, OCC_REFUSED_INVALID, wrong);
        return;
    }
    offer.fd = s->packet.fds[0];
    s->packet.n_fds = 0;
    if (take_offer(s, client, &offer, &err) != 0) {
        client->producer = NULL;
        occ_program_refuse(s, client, client->history ? refusal_of(err.code) : OCC_REFUSED_HISTORY,
                           err.message);
        return;
    }
    client->was_producer = true;
    client->user->n_programs++;
    client->history->next_poll_ns = 0; /* without programs the next poll may be far away */
    occ_sampler_wake(s->sampler);
    watch_process(s, client);
    occ_hello_accept(client->fd);
    occ_ratelimit_log(&client->user->reports, occ_monotonic_ns(), OCC_LOG_INFO,
                      "process %d of uid %u reports", (int)client->peer.pid, client->peer.uid);
}
