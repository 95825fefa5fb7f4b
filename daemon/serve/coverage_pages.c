/* Coverage (daemon/coverage/coverage.h) on /metrics and in the answer to `coverage`: see server_state.h. One
 * thread. */
#include "server_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/consumer.h"
#include "ring/ring_abi.h"
#include "support/array.h"
#include "support/clock.h"
#include "support/text.h"

#define PROGRAMS_MAX (1u << 16)

static const char *const reason_words[] = {OCC_COVERAGE_REASONS(OCC_WORD)};
static const char *const level_words[] = {OCC_LEVELS(OCC_WORD)};

/* True for a live program with a known process; a pid namespace that the daemon cannot see gives pid 0. */
static bool is_program(const struct occ_client *client)
{
    return client->producer && client->producer->state == OCC_PRODUCER_LIVE && !client->producer->life.dead &&
           client->peer.pid > 0;
}

/* True if the program records nothing: by its current period, else by its level since its start. */
static bool is_quiet(const struct occ_producer *producer)
{
    const struct occ_producer_period *period = &producer->run.period;
    const char *level = period->from_ns ? period->level : producer->run.row.level;
    return level && strcmp(level, level_words[OCC_LEVEL_NOTHING]) == 0;
}

static bool has_launches(const struct occ_producer *producer)
{
    return producer->consumer && occ_ring_position(producer->consumer) > 0;
}

/* Starts a scan if the last one is long enough ago. */
static void ask(const struct occ_server *s)
{
    int64_t now_ns = occ_monotonic_ns();
    struct occ_coverage_program *programs = NULL;
    size_t n = 0, allocated = 0;
    if (!occ_coverage_is_due(s->coverage, now_ns))
        return;
    for (const struct occ_client *client = s->clients.first; client; client = client->next) {
        if (!is_program(client))
            continue;
        if (!occ_grow((void **)&programs, &allocated, n, PROGRAMS_MAX, sizeof *programs))
            break;
        programs[n++] = (struct occ_coverage_program){.pid = client->peer.pid,
                                                      .start_boot_ns = client->identity.start_boot_ns,
                                                      .is_quiet = is_quiet(client->producer),
                                                      .has_launches = has_launches(client->producer)};
    }
    occ_coverage_scan(s->coverage, programs, n, now_ns);
    free(programs);
}

/* ---- metrics ---- */

static void write_table(const struct occ_coverage_table *t, const struct occ_exposition *e)
{
    double processes[OCC_COVERAGE_REASON_COUNT] = {0};
    for (size_t i = 0; i < t->n; i++)
        processes[t->rows[i].reason]++;
    processes[OCC_COVERAGE_UNKNOWN] += (double)t->dropped;
    const struct {
        enum occ_metric metric;
        const double *values;
    } families[] = {{OCC_METRIC_COVERAGE_HELD, t->held_s}, {OCC_METRIC_COVERAGE_PROCESSES, processes}};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        (void)occ_exposition_begin(e, families[f].metric);
        for (size_t i = 0; t->scanned_ns && i < OCC_COVERAGE_REASON_COUNT; i++) {
            const struct occ_label labels[] = {{"reason", reason_words[i]}, {NULL, NULL}};
            occ_exposition_put(e, families[f].metric, labels, families[f].values[i]);
        }
    }
    (void)occ_exposition_begin(e, OCC_METRIC_COVERAGE_SCAN);
    if (t->scanned_ns)
        occ_exposition_put(e, OCC_METRIC_COVERAGE_SCAN, NULL,
                           (double)(occ_now_ns() - occ_monotonic_ns() + t->scanned_ns) / 1e9);
}

void occ_pages_write_coverage(const struct occ_server *s, const struct occ_exposition *e)
{
    if (!s->coverage)
        return;
    ask(s);
    write_table(occ_coverage_borrow(s->coverage), e);
    occ_coverage_return(s->coverage);
}

/* ---- the answer ---- */

/* Returns row `number` of the rows that the client may see (NULL: there are fewer), and their number in
 * *ret_n. A client that may command the daemon sees all rows, another user the processes of the user's uid, a
 * container none: its uids mean nothing outside. */
static const struct occ_coverage_row *find_row(const struct occ_server *s, const struct occ_client *client,
                                               const struct occ_coverage_table *t, uint64_t number,
                                               size_t *ret_n)
{
    const struct occ_coverage_row *found = NULL;
    bool sees_all = occ_client_may_command(&s->clients, client, NULL);
    bool sees_own = client->owner.uid >= 0;
    *ret_n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct occ_coverage_row *row = &t->rows[i];
        bool is_own = sees_own && row->has_identity && row->uid == client->peer.uid;
        if ((sees_all || is_own) && (*ret_n)++ == number)
            found = row;
    }
    return found;
}

static void put_row(const struct occ_coverage_row *row, struct occ_answer *answer)
{
    OCC_ANSWER(answer, "pid %d\ngpu %s\nreason %s\n", row->pid, row->gpu, reason_words[row->reason]);
    if (row->gpu[0])
        OCC_ANSWER(answer, "held_s %.15g\n", row->held_s);
    else
        OCC_ANSWER(answer, "held_s unknown\n");
    if (row->has_identity)
        OCC_ANSWER(answer, "uid %u\nprogram %s\n", row->uid, row->name);
}

void occ_status_answer_coverage(const struct occ_server *s, const struct occ_client *client, uint64_t number,
                                struct occ_answer *answer)
{
    size_t n = 0;
    OCC_ANSWER(answer, "ok\n");
    if (!s->coverage) {
        OCC_ANSWER(answer, "state off\n");
        return;
    }
    ask(s);
    bool is_scanning = occ_coverage_is_scanning(s->coverage);
    const struct occ_coverage_table *t = occ_coverage_borrow(s->coverage);
    const struct occ_coverage_row *row = find_row(s, client, t, number, &n);
    const char *state = t->problem[0] ? "failed" : t->scanned_ns ? "ok" : "none";
    OCC_ANSWER(answer, "state %s\nscanning %d\nscans %llu\nprocesses %zu\ndropped %zu\nrefused_gpus %u\n",
               state, is_scanning, (unsigned long long)t->scans, n, t->dropped, t->n_refused);
    if (t->problem[0])
        OCC_ANSWER(answer, "problem %s\n", t->problem);
    for (size_t i = 0; i < OCC_COVERAGE_REASON_COUNT; i++)
        OCC_ANSWER(answer, "held_%s %.15g\n", reason_words[i], t->held_s[i]);
    if (row)
        put_row(row, answer);
    occ_coverage_return(s->coverage);
}
