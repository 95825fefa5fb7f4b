/* A program that another daemon recorded before this one, into another history: its launches, losses, costs
 * and exact values until then are not repeated here. One thread. */
#pragma once

#include "producers.h"

/* Call once after occ_producer_new(), which started at launch `next`. If another consumer released launches
 * behind `next`, keeps the ring's totals and the totals that the history has of the run, and the time without
 * recording: from the run's begin (its last recorded moment, if the history has the run) to the first launch
 * of the ring, or now. A history that has such a time of the run keeps the totals too: losses while no daemon
 * read the ring are then not counted, since the ring does not tell them from the other daemon's. */
int occ_elsewhere_begin(struct occ_producer *producer, struct occ_store *store, uint64_t next,
                        struct occ_error *err);

/* Call after occ_producer_restart(): the new history gets the time without recording too. */
int occ_elsewhere_restart(struct occ_producer *producer, struct occ_error *err);

/* Writes the time without recording, once. The run's row must be in the store. */
int occ_elsewhere_put(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* The time of a report from the program: moments without recording here are moved to their end. */
int64_t occ_elsewhere_moment(const struct occ_producer *producer, int64_t at_ns);

/* True if the launches before ring position `head` were released by the other daemon, which stored their
 * exact values. */
bool occ_elsewhere_has(const struct occ_producer *producer, uint64_t head);
