/* The programs under observation: takes offers of rings, quarantines broken rings, frees what is done. The
 * options and the store are the collector's. One thread. Logs. */
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
    uint8_t quarantine[OCC_REGISTRY_QUARANTINE_MAX][16];  /* uuids, the latest */
    size_t n_quarantine;                                  /* ever */
    double ended_lost[OCC_LOSS_COUNT], ended_cpu_seconds; /* of programs that are no longer here */
    struct occ_ratelimit ring_broken;
};

/* As occ_collector_offer(). */
int occ_registry_offer(struct occ_registry *registry, const struct occ_offer *offer, int64_t now_ns,
                       struct occ_producer **ret_producer, struct occ_error *err);

/* The ring is broken (`why` goes into the run's row): tells the owner; the ring is not taken again. */
void occ_registry_quarantine(struct occ_registry *registry, struct occ_producer *producer, int64_t now_ns,
                             const char *why);

/* As occ_collector_restart(). */
void occ_registry_restart(struct occ_registry *registry, int64_t now_ns);

/* The list begins with this producer (NULL: stays as it is). Not while it is walked. */
void occ_registry_begin_with(struct occ_registry *registry, struct occ_producer *first);

/* How fast rings fill: 1 for one that had POLL_LAUNCHES at the last look, or is half full. */
double occ_registry_pressure(const struct occ_registry *registry);

/* As occ_collector_uses_gpu(). */
bool occ_registry_uses_gpu(const struct occ_registry *registry, const uint8_t uuid[16]);

/* As occ_collector_is_settled(). */
bool occ_registry_is_settled(const struct occ_registry *registry, const char *session);

/* As occ_collector_collect_names(). */
int occ_registry_collect_names(const struct occ_registry *registry, bool *ret_more, struct occ_error *err);

/* Losses and CPU time of all programs so far; how full the fullest ring is. */
void occ_registry_add_totals(const struct occ_registry *registry, struct occ_collector_stats *stats);

/* The id tables are too large, and this program has more than its share of them. */
bool occ_registry_has_too_much(const struct occ_registry *registry, const struct occ_producer *producer);

/* Frees the producers that are done, or `all`, after telling their owners. Not while the list is walked. */
void occ_registry_reap(struct occ_registry *registry, bool all);
