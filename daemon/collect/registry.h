/* The programs under observation: accepts offers of rings, quarantines broken rings, frees finished
 * producers. The options and the store are the collector's. One thread. Logs. */
#pragma once

#include "collector.h"
#include "ratelimit.h"
#include "store/names.h"

#define OCC_REGISTRY_QUARANTINE_MAX 64

struct occ_registry {
    struct occ_store *store;
    const struct occ_collector_options *options;
    struct occ_producer *producers;
    size_t n_producers;
    uint8_t quarantine[OCC_REGISTRY_QUARANTINE_MAX][16];  /* the latest uuids */
    size_t n_quarantine;                                  /* number of quarantined rings since the start */
    double ended_lost[OCC_LOSS_COUNT], ended_cpu_seconds; /* sums of programs already freed */
    struct occ_ratelimit ring_broken;
};

/* See occ_collector_offer(). */
int occ_registry_offer(struct occ_registry *registry, const struct occ_offer *offer, int64_t now_ns,
                       struct occ_producer **ret_producer, struct occ_error *err);

/* Quarantines a broken ring: `why` goes into the run's row, gone() is called, the ring is not accepted
 * again. */
void occ_registry_quarantine(struct occ_registry *registry, struct occ_producer *producer, int64_t now_ns,
                             const char *why);

/* See occ_collector_restart(). */
void occ_registry_restart(struct occ_registry *registry, int64_t now_ns);

/* Rotates the list so that it begins with `first` (NULL: no change). Not while the list is walked. */
void occ_registry_begin_with(struct occ_registry *registry, struct occ_producer *first);

/* How fast the busiest ring fills: 1 means POLL_LAUNCHES waiting at a poll, or a half-full ring. */
double occ_registry_pressure(const struct occ_registry *registry);

/* See occ_collector_uses_gpu(). */
bool occ_registry_uses_gpu(const struct occ_registry *registry, const uint8_t uuid[16]);

/* See occ_collector_is_settled(). */
bool occ_registry_is_settled(const struct occ_registry *registry, const char *session);

/* See occ_collector_collect_names(). */
int occ_registry_collect_names(const struct occ_registry *registry, bool *ret_more, struct occ_error *err);

/* Adds losses and CPU time of all programs since the start, and the fill level of the fullest ring. */
void occ_registry_add_totals(const struct occ_registry *registry, struct occ_collector_stats *stats);

/* true if all id tables together are too large and this program's exceed an equal share. */
bool occ_registry_exceeds_share(const struct occ_registry *registry, const struct occ_producer *producer);

/* Calls gone() for each finished producer, or for each producer if `all`, and frees the producer. Not while
 * the list is walked. */
void occ_registry_reap(struct occ_registry *registry, bool all);
