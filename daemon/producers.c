/*
 * One program: attaching its ring, its run's row, its counters. The frames of its log are in frames.c.
 *
 * Numbers from the ring are hostile: moments are clamped to now, counters are only summed. No global state; one
 * thread.
 */
#include "producers.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container.h"
#include "frames.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

/* Costs are absolute and change with every beat; each put writes rows, so not with every commit. */
#define TOTALS_PERIOD_NS INT64_C(10000000000)

static const char *const loss_names[] = {
#define X(name, text) #name,
    OCC_LOSS_CAUSES(X)
#undef X
};
static const char *const cost_names[] = {
#define X(name, text) #name,
    OCC_COSTS(X)
#undef X
};

#define WORD_BYTES 32

static void lower_case(const char *name, char word[WORD_BYTES])
{
    size_t i = 0;
    for (; name[i] && i < WORD_BYTES - 1; i++)
        word[i] = (char)tolower((unsigned char)name[i]);
    word[i] = '\0';
}

/* A moment that a program said: never in the future, never beyond what int64_t holds. */
static int64_t past_moment(uint64_t said_ns)
{
    int64_t now = occ_now_ns();
    return said_ns < (uint64_t)now ? (int64_t)said_ns : now;
}

/* NULL: unknown. */
static char *user_name(uint32_t uid)
{
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || !found)
        return NULL;
    return strndup(found->pw_name, 64);
}

static char *own_hostname(void)
{
    char name[256];
    if (gethostname(name, sizeof name) != 0)
        return NULL;
    name[sizeof name - 1] = '\0';
    return strdup(name);
}

static int attach(struct occ_producer *p, int fd, uint64_t next, struct occ_error *err)
{
    const char *why = NULL;
    int status = occ_ring_attach(fd, next, &p->consumer, &why);
    if (status == 0)
        return 0;
    (void)close(fd);
    char reason[96];
    return occ_fail(err, status == -ENOMEM ? OCC_E_NO_MEMORY : OCC_E_INVALID, "not a sound ring (%s: %s)",
                    why ? why : "?", strerror_r(-status, reason, sizeof reason));
}

static void fill_row(struct occ_producer *p, const uint8_t uuid[16])
{
    memcpy(p->row.uuid, uuid, sizeof p->row.uuid);
    p->row.pid = p->peer.pid;
    p->row.uid = p->peer.uid;
    p->row.start_ns = past_moment(occ_ring_start_ns(p->consumer));
    p->row.user = user_name(p->peer.uid);
    p->row.hostname = own_hostname();
    p->row.container = occ_container_of(p->peer.pid);
    p->row.source = "trace";
    p->row_changed = true;
}

int occ_producer_new(int fd, const struct occ_peer *peer, const uint8_t uuid[16], uint64_t next,
                     uint64_t measured, struct occ_producer **ret_producer, struct occ_error *err)
{
    struct stat status = {0};
    struct occ_producer *p = calloc(1, sizeof *p);
    if (!p || fstat(fd, &status) != 0) {
        (void)close(fd);
        free(p);
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    int code = attach(p, fd, next, err);
    if (code == 0 && memcmp(occ_ring_uuid(p->consumer), uuid, 16) != 0)
        code = occ_fail(err, OCC_E_INVALID, "the ring is another one than the handshake says");
    if (code != 0) {
        occ_producer_free(p);
        return code;
    }
    p->peer = *peer;
    p->ring_dev = status.st_dev;
    p->ring_ino = status.st_ino;
    p->measured_done = p->measured_put = measured;
    fill_row(p, uuid);
    *ret_producer = p;
    return 0;
}

void occ_producer_free(struct occ_producer *producer)
{
    if (!producer)
        return;
    occ_ring_detach(producer->consumer);
    for (size_t i = 0; i < producer->n_devices; i++)
        occ_reorder_release(&producer->devices[i].window);
    free(producer->devices);
    free(producer->kernels);
    free(producer->shapes);
    free(producer->measured);
    occ_frames_free_texts(&producer->row);
    free(producer);
}

size_t occ_producer_table_bytes(const struct occ_producer *producer)
{
    return producer->devices_allocated * sizeof *producer->devices +
           producer->kernels_allocated * sizeof *producer->kernels +
           producer->shapes_allocated * sizeof *producer->shapes +
           producer->measured_allocated * sizeof *producer->measured;
}

int occ_producer_put_measured(struct occ_producer *producer, struct occ_store *store, struct occ_error *err)
{
    struct occ_producer *p = producer;
    uint64_t position = occ_ring_position(p->consumer);
    size_t done = 0;
    int status = 0;
    while (done < p->n_measured && status == 0 && p->measured[done].head <= position) {
        const struct occ_producer_measured *m = &p->measured[done];
        status = occ_store_add_measured(store, m->minute, p->run, m->shape, &m->sums, err);
        if (status == 0)
            p->measured_done = p->measured[done++].number + 1;
    }
    if (status == OCC_E_FULL) /* the next commit takes more */
        status = 0;
    if (status == 0 && p->measured_done != p->measured_put)
        status = occ_store_put_measured_position(store, p->row.uuid, p->measured_done, err);
    if (status == 0)
        p->measured_put = p->measured_done;
    p->n_measured -= done;
    if (done > 0)
        memmove(p->measured, p->measured + done, p->n_measured * sizeof *p->measured);
    return status;
}

int occ_producer_put_row(struct occ_producer *producer, struct occ_store *store, struct occ_error *err)
{
    struct occ_run row = producer->row;
    bool traced = row.level && strcmp(row.level, "trace") == 0;
    row.level_reason = producer->reason[0] ? producer->reason : NULL;
    if (traced && producer->counters)
        row.level = producer->counters;
    if (traced && !row.level_reason && producer->counters_reason[0])
        row.level_reason = producer->counters_reason;
    int status = occ_store_put_run(store, &row, &producer->run, err);
    if (status == 0)
        producer->row_changed = false;
    return status;
}

static uint64_t sum_of_losses(const struct occ_producer *p)
{
    uint64_t sum = 0;
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        sum += occ_ring_lost(p->consumer, (enum occ_loss_cause)i);
    return sum;
}

/* Of one cause: the history adds all of them up in 63 bits. */
#define MOST_LOST ((uint64_t)INT64_MAX / OCC_LOSS_COUNT)

/* A counter of 0 is left out: for a cost that means not measured, for a loss that there is none. */
static int put_losses(struct occ_producer *p, struct occ_store *store, struct occ_error *err)
{
    char words[OCC_LOSS_COUNT][WORD_BYTES];
    struct occ_loss losses[OCC_LOSS_COUNT];
    size_t n = 0;
    for (int i = 0; i < OCC_LOSS_COUNT; i++) {
        uint64_t count = occ_ring_lost(p->consumer, (enum occ_loss_cause)i);
        if (count == 0)
            continue;
        lower_case(loss_names[i], words[n]);
        losses[n] = (struct occ_loss){.cause = words[n], .count = count < MOST_LOST ? count : MOST_LOST};
        n++;
    }
    return n ? occ_store_put_losses(store, p->run, losses, n, err) : 0;
}

static int put_costs(struct occ_producer *p, struct occ_store *store, struct occ_error *err)
{
    char words[OCC_COST_COUNT][WORD_BYTES];
    struct occ_cost_total costs[OCC_COST_COUNT];
    size_t n = 0;
    for (int i = 0; i < OCC_COST_COUNT; i++) {
        uint64_t total = occ_ring_cost(p->consumer, (enum occ_cost)i);
        if (total == 0)
            continue;
        lower_case(cost_names[i], words[n]);
        costs[n] = (struct occ_cost_total){.what = words[n], .total = total & INT64_MAX};
        n++;
    }
    return n ? occ_store_put_costs(store, p->run, costs, n, err) : 0;
}

int occ_producer_put_totals(struct occ_producer *producer, struct occ_store *store, int64_t now_ns,
                            bool final, struct occ_error *err)
{
    uint64_t losses = sum_of_losses(producer);
    bool costs_due = final || now_ns >= producer->totals_next_ns;
    int status = 0;
    if (producer->run == 0)
        return 0;
    if (final || losses != producer->totals_put)
        status = put_losses(producer, store, err);
    if (status == 0)
        producer->totals_put = losses;
    if (status == 0 && costs_due)
        status = put_costs(producer, store, err);
    if (status == 0 && costs_due)
        producer->totals_next_ns = now_ns + TOTALS_PERIOD_NS;
    return status;
}

int64_t occ_producer_end_ns(const struct occ_producer *producer)
{
    uint64_t said = producer->closed_ns ? producer->closed_ns : occ_ring_heartbeat_ns(producer->consumer);
    int64_t end = said ? past_moment(said) : occ_now_ns();
    return end > producer->row.start_ns ? end : producer->row.start_ns;
}
