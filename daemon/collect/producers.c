/*
 * One program: attaching its ring, its run's row, its losses and costs.
 *
 * Numbers from the ring are hostile: times are clamped to now, counters are only summed. No global state; one
 * thread.
 */
#include "producers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/owners/identity.h"
#include "run_texts.h"
#include "support/clock.h"
#include "support/node.h"
#include "support/text.h"

/* Costs change with every heartbeat; they are written at this interval, since each update writes rows. */
#define COSTS_PERIOD_NS INT64_C(10000000000)

static const char *const loss_words[] = {OCC_LOSS_CAUSES(OCC_WORD)};
static const char *const cost_words[] = {OCC_COSTS(OCC_WORD)};

#define DAY_NS INT64_C(86400000000000)
/* larger changes of the clock's offset between two rounds are a step, smaller ones its drift */
#define CLOCK_STEP_NS INT64_C(1000000000)

int64_t occ_producer_past_ns(uint64_t time_ns)
{
    int64_t now = occ_now_ns();
    return time_ns < (uint64_t)now ? (int64_t)time_ns : now;
}

static char *own_hostname(void)
{
    char name[OCC_NODE_NAME_BYTES];
    return occ_node_name(name, NULL) == 0 ? strdup(name) : NULL;
}

/* Takes over fd. */
static int attach(struct occ_producer *p, int fd, uint64_t next, struct occ_error *err)
{
    const char *why = NULL;
    int status = occ_ring_attach(fd, next, &p->consumer, &why);
    if (status == 0)
        return 0;
    (void)close(fd);
    char reason[96];
    return occ_fail(err, status == -ENOMEM ? OCC_E_NO_MEMORY : OCC_E_INVALID, "not a valid ring (%s: %s)",
                    why ? why : "?", strerror_r(-status, reason, sizeof reason));
}

static void start_clock(struct occ_producer_clock *clock, int64_t process_start_boot_ns, int64_t wall_ns,
                        int64_t boot_ns)
{
    int64_t offset_ns = wall_ns - boot_ns;
    *clock = (struct occ_producer_clock){
        .offset_ns = offset_ns,
        .min_offset_ns = offset_ns,
        .max_offset_ns = offset_ns,
        .process_start_boot_ns = process_start_boot_ns >= 0 ? process_start_boot_ns : boot_ns - DAY_NS};
}

void occ_producer_follow_clock(struct occ_producer *producer, int64_t wall_ns, int64_t boot_ns)
{
    struct occ_producer_clock *c = &producer->clock;
    int64_t offset_ns = wall_ns - boot_ns, change_ns = offset_ns - c->offset_ns;
    c->offset_ns = offset_ns;
    c->min_offset_ns = offset_ns < c->min_offset_ns ? offset_ns : c->min_offset_ns;
    c->max_offset_ns = offset_ns > c->max_offset_ns ? offset_ns : c->max_offset_ns;
    if (change_ns < CLOCK_STEP_NS && change_ns > -CLOCK_STEP_NS)
        return;
    c->uncertain_ns = c->max_offset_ns - c->min_offset_ns;
    producer->run.row_changed = true;
}

static void identify(struct occ_producer *p, const struct occ_offer *offer)
{
    struct occ_run *row = &p->run.row;
    memcpy(row->uuid, offer->uuid, sizeof row->uuid);
    row->pid = offer->peer.pid;
    row->uid = offer->peer.uid;
    row->start_ns = occ_producer_past_ns(occ_ring_start_ns(p->consumer));
    row->hostname = own_hostname();
    p->identity = offer->identity ? *offer->identity
                                  : (struct occ_identity){.owner_uid = offer->peer.uid, .start_boot_ns = -1};
    occ_run_texts_trust(&row->job, &p->identity);
    row->source.tool = "trace";
    start_clock(&p->clock, p->identity.start_boot_ns, occ_now_ns(), occ_boot_ns());
}

int occ_producer_new(const struct occ_offer *offer, uint64_t next, uint64_t measured,
                     struct occ_producer **ret_producer, struct occ_error *err)
{
    struct stat status = {0};
    struct occ_producer *p = calloc(1, sizeof *p);
    if (!p || fstat(offer->fd, &status) != 0) {
        (void)close(offer->fd);
        free(p);
        return occ_no_memory(err);
    }
    int code = attach(p, offer->fd, next, err);
    if (code == 0 && memcmp(occ_ring_uuid(p->consumer), offer->uuid, sizeof offer->uuid) != 0)
        code = occ_fail(err, OCC_E_INVALID, "the ring's uuid is not the handshake's");
    if (code != 0) {
        occ_producer_free(p);
        return code;
    }
    p->owner = offer->owner;
    p->peer = offer->peer;
    p->ring_dev = status.st_dev;
    p->ring_ino = status.st_ino;
    p->ring_bytes = (uint64_t)status.st_size;
    p->measured.done = p->measured.stored = measured;
    p->run.row_changed = true;
    identify(p, offer);
    *ret_producer = p;
    return 0;
}

void occ_producer_free(struct occ_producer *producer)
{
    if (!producer)
        return;
    struct occ_producer_tables *t = &producer->tables;
    occ_ring_detach(producer->consumer);
    free(t->devices);
    free(t->kernels);
    free(t->configs);
    free(t->ranges);
    free(producer->measured.rows);
    occ_holes_free(&producer->run.holes);
    occ_run_texts_free(&producer->run.row);
    free(producer);
}

int occ_producer_restart(struct occ_producer *producer, struct occ_error *err)
{
    struct occ_producer *p = producer, *fresh = NULL, old = *p;
    struct occ_offer offer = {.fd = fcntl(occ_ring_fd(p->consumer), F_DUPFD_CLOEXEC, 0),
                              .peer = p->peer,
                              .identity = &p->identity, /* the process may have ended, and /proc with it */
                              .owner = p->owner};
    memcpy(offer.uuid, p->run.row.uuid, sizeof offer.uuid);
    int status = occ_producer_new(&offer, 0, p->measured.stored, &fresh, err);
    if (status != 0)
        return status;
    *p = *fresh;
    p->next = old.next;
    p->life = old.life;
    p->clock = old.clock;
    p->bad_times = old.bad_times;
    p->refused_config = old.refused_config;
    p->is_broken = p->is_drained = old.is_broken;
    p->run.command_lines = old.run.command_lines;
    p->run.has_new_holes = true;
    memcpy(p->run.reason, old.run.reason, sizeof p->run.reason);
    p->elsewhere = old.elsewhere;
    *fresh = old;
    occ_producer_free(fresh);
    return 0;
}

size_t occ_producer_table_bytes(const struct occ_producer *producer)
{
    const struct occ_producer_tables *t = &producer->tables;
    return t->devices_allocated * sizeof *t->devices + t->kernels_allocated * sizeof *t->kernels +
           t->configs_allocated * sizeof *t->configs +
           producer->measured.allocated * sizeof *producer->measured.rows;
}

int occ_producer_put_measured(struct occ_producer *producer, struct occ_store *store, struct occ_error *err)
{
    struct occ_producer_measurements *m = &producer->measured;
    uint64_t position = occ_ring_position(producer->consumer);
    size_t n = 0;
    int status = 0;
    while (n < m->n && status == 0 && m->rows[n].head <= position) {
        const struct occ_producer_measured *row = &m->rows[n];
        if (row->config)
            status =
                occ_store_add_measured(store, row->minute, producer->run.id, row->config, &row->sums, err);
        if (status == 0)
            m->done = m->rows[n++].number + 1;
    }
    if (status == OCC_E_FULL) /* the next commit takes the remaining rows */
        status = 0;
    if (status == 0 && m->done != m->stored)
        status = occ_store_put_position(store, OCC_POSITION_MEASURED, producer->run.row.uuid, m->done, err);
    if (status == 0)
        m->stored = m->done;
    m->n -= n;
    if (n > 0)
        memmove(m->rows, m->rows + n, m->n * sizeof *m->rows);
    return status;
}

bool occ_producer_take_name(struct occ_producer *producer, struct occ_accounts *accounts)
{
    struct occ_producer_run *run = &producer->run;
    struct occ_owner owner;
    char name[OCC_USER_NAME_BYTES] = "";
    if (run->is_name_final || !accounts)
        return false;
    occ_identity_owner(&producer->identity, &owner);
    run->is_name_final = owner.uid < 0; /* whoever starts a container or pod chooses its uids */
    if (run->is_name_final)
        return false;
    enum occ_name_state state = occ_accounts_name(accounts, (uint32_t)owner.uid, name);
    run->is_name_final = state != OCC_NAME_WAITS;
    if (state != OCC_NAME_KNOWN)
        return false;
    run->row.user = strndup(name, 64);
    run->row_changed |= run->row.user != NULL;
    return run->row.user != NULL;
}

void occ_producer_set_counters(struct occ_producer *producer, const char *level, const char *reason)
{
    struct occ_producer_run *run = &producer->run;
    if (level == run->counters_level && strcmp(reason, run->counters_reason) == 0)
        return;
    run->counters_level = level;
    (void)snprintf(run->counters_reason, sizeof run->counters_reason, "%s", reason);
    run->row_changed = true;
}

void occ_producer_want_memory(struct occ_producer *producer, bool is_measured)
{
    occ_ring_want_memory(producer->consumer, is_measured && !producer->run.is_without_counters);
}

#define CUT_TEXT OCC_STORE_CUT " (up to 1 s), since the program ended before its last records were delivered"

#define CLOCK_TEXT                                                                                           \
    "clock set: the machine's clock was set while the program ran, times of launches may be off by %lld s"

__attribute__((format(printf, 3, 4))) static void add_reason(char *reason, size_t size, const char *format,
                                                             ...)
{
    size_t used = strlen(reason);
    va_list arguments;
    if (used > 0 && used + 2 < size)
        used += (size_t)snprintf(reason + used, size - used, "; ");
    va_start(arguments, format);
    (void)vsnprintf(reason + used, size - used, format, arguments);
    va_end(arguments);
}

int occ_producer_put_row(struct occ_producer *producer, struct occ_store *store, struct occ_error *err)
{
    struct occ_producer_run *run = &producer->run;
    struct occ_run row = run->row;
    char reason[sizeof CUT_TEXT + sizeof CLOCK_TEXT + sizeof run->reason + 32] = "";
    if (!run->row_changed)
        return 0;
    bool traced = row.level && strcmp(row.level, "trace") == 0;
    row.level_reason = run->reason[0] ? run->reason : NULL;
    if (traced && run->counters_level && !run->is_without_counters)
        row.level = run->counters_level;
    if (traced && !row.level_reason && run->counters_reason[0])
        row.level_reason = run->counters_reason;
    if (producer->is_broken) /* launches after the damage are not read */
        add_reason(reason, sizeof reason, OCC_STORE_CUT);
    if (producer->is_broken || (row.level && strcmp(row.level, "nothing") != 0)) {
        if (run->is_cut)
            add_reason(reason, sizeof reason, CUT_TEXT);
        if (producer->clock.uncertain_ns)
            add_reason(reason, sizeof reason, CLOCK_TEXT,
                       (long long)(producer->clock.uncertain_ns / 1000000000));
        if (reason[0] && row.level_reason)
            add_reason(reason, sizeof reason, "%s", row.level_reason);
        row.level_reason = reason[0] ? reason : row.level_reason;
    }
    int status = occ_store_put_run(store, &row, &run->id, err);
    run->row_changed = status != 0;
    return status;
}

/* The run's part of a total of the ring in this history. */
static uint64_t part_of(uint64_t total, const struct occ_elsewhere_total *elsewhere)
{
    uint64_t own = total > elsewhere->ring ? total - elsewhere->ring : 0;
    return own < UINT64_MAX - elsewhere->kept ? own + elsewhere->kept : UINT64_MAX;
}

/* Launches lost by the program's counters plus launches that the daemon dropped. */
static uint64_t lost(const struct occ_producer *p, enum occ_loss_cause cause)
{
    uint64_t count = part_of(occ_ring_lost(p->consumer, cause), &p->elsewhere.losses[cause]);
    uint64_t own = cause == OCC_LOSS_BAD_TIMES  ? p->bad_times
                   : cause == OCC_LOSS_LOG_FULL ? p->refused_config
                                                : 0;
    return count < UINT64_MAX - own ? count + own : count;
}

uint64_t occ_producer_lost(const struct occ_producer *producer)
{
    uint64_t sum = 0;
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        sum += lost(producer, (enum occ_loss_cause)i);
    return sum;
}

/* Limit per cause: the history adds all causes up in 63 bits. */
#define LOST_MAX ((uint64_t)INT64_MAX / OCC_LOSS_COUNT)

static uint64_t cost(const struct occ_producer *p, enum occ_cost which)
{
    return part_of(occ_ring_cost(p->consumer, which), &p->elsewhere.costs[which]);
}

/* Counters of 0 have no row: a cost of 0 was not measured, a loss of 0 did not occur. */
static int put_losses(struct occ_producer *p, struct occ_store *store, struct occ_error *err)
{
    struct occ_loss losses[OCC_LOSS_COUNT];
    size_t n = 0;
    for (int i = 0; i < OCC_LOSS_COUNT; i++) {
        uint64_t count = lost(p, (enum occ_loss_cause)i);
        losses[n] = (struct occ_loss){.cause = loss_words[i], .count = count < LOST_MAX ? count : LOST_MAX};
        n += count != 0;
    }
    return n ? occ_store_put_losses(store, p->run.id, losses, n, err) : 0;
}

static int put_costs(struct occ_producer *p, struct occ_store *store, struct occ_error *err)
{
    struct occ_cost_total costs[OCC_COST_COUNT];
    size_t n = 0;
    for (int i = 0; i < OCC_COST_COUNT; i++) {
        uint64_t total = cost(p, (enum occ_cost)i);
        costs[n] = (struct occ_cost_total){.what = cost_words[i], .total = total & INT64_MAX};
        n += total != 0;
    }
    return n ? occ_store_put_costs(store, p->run.id, costs, n, err) : 0;
}

int occ_producer_put_totals(struct occ_producer *producer, struct occ_store *store, int64_t now_ns,
                            bool final, struct occ_error *err)
{
    struct occ_producer_run *run = &producer->run;
    uint64_t losses = occ_producer_lost(producer);
    int status = 0;
    if (run->id == 0)
        return 0;
    if (final || losses != run->losses_put)
        status = put_losses(producer, store, err);
    if (status != 0)
        return status;
    run->losses_put = losses;
    if (!final && now_ns < run->costs_due_ns)
        return 0;
    status = put_costs(producer, store, err);
    if (status == 0)
        run->costs_due_ns = now_ns + COSTS_PERIOD_NS;
    return status;
}

double occ_producer_add_totals(const struct occ_producer *producer, double sums[OCC_LOSS_COUNT])
{
    static const enum occ_cost cpu[] = {OCC_COST_HELPER_CPU_NS, OCC_COST_CALLBACK_NS, OCC_COST_WORKER_CPU_NS};
    double seconds = 0;
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        sums[i] += (double)lost(producer, (enum occ_loss_cause)i);
    for (size_t i = 0; i < sizeof cpu / sizeof *cpu; i++)
        seconds += (double)cost(producer, cpu[i]) / 1e9;
    return seconds;
}

/* Time of the CLOSED record, else of the last heartbeat, else now. */
static int64_t end_ns(const struct occ_producer *producer)
{
    const struct occ_producer_run *run = &producer->run;
    uint64_t last_ns = run->closed_ns ? run->closed_ns : occ_ring_heartbeat_ns(producer->consumer);
    int64_t end = last_ns ? occ_producer_past_ns(last_ns) : occ_now_ns();
    return end > run->row.start_ns ? end : run->row.start_ns;
}

int occ_producer_put_end(struct occ_producer *producer, struct occ_store *store, int64_t now_ns, bool leaves,
                         struct occ_error *err)
{
    struct occ_producer_run *run = &producer->run;
    bool is_cut = !producer->is_broken && !occ_ring_is_closed(producer->consumer);
    bool goes_on = leaves && is_cut && !producer->life.dead;
    const struct occ_period period = {
        .from_ns = occ_now_ns(), .level = OCC_STORE_UNKNOWN, .reason = OCC_STORE_DAEMON_ENDED};
    run->row.end_ns = goes_on ? period.from_ns : end_ns(producer);
    run->is_cut = is_cut && !goes_on;
    run->row_changed = true;
    int status = occ_producer_put_row(producer, store, err);
    if (status == 0)
        status = occ_producer_put_totals(producer, store, now_ns, true, err);
    if (status == 0)
        status = occ_store_end_run(store, run->id, err);
    return status == 0 && goes_on ? occ_store_put_period(store, run->id, &period, err) : status;
}

bool occ_producer_is_lost(struct occ_producer *producer, int64_t now_ns, int64_t grace_ns)
{
    struct occ_producer_life *life = &producer->life;
    uint64_t heartbeat_ns = occ_ring_heartbeat_ns(producer->consumer);
    if (heartbeat_ns != life->last_heartbeat_ns || producer->waiting_launches > 0) {
        life->last_heartbeat_ns = heartbeat_ns;
        life->heartbeat_seen_ns = now_ns;
    }
    return life->orphan_since_ns && now_ns - life->heartbeat_seen_ns > grace_ns;
}
