/*
 * A small made-up world for the store's tests: runs, devices, kernels, configurations, and launches that are
 * kept in memory too, so that every answer can be worked out the slow way.
 */
#pragma once

#include "store/store.h"

#define WORLD_RUNS    2
#define WORLD_DEVICES 2
#define WORLD_KERNELS 5
#define WORLD_CONFIGS 24 /* over all devices */
#define WORLD_RANGES  3  /* of each run: 1, 2, 3 */

struct world_launch {
    int64_t run, device;
    struct occ_store_launch launch;
};

struct world {
    char directory[64], path[96];
    struct occ_store *store;
    struct occ_store_options options;
    int64_t run[WORLD_RUNS], device[WORLD_DEVICES], kernel[WORLD_KERNELS];
    int64_t config[WORLD_CONFIGS], config_kernel[WORLD_CONFIGS], config_device[WORLD_CONFIGS];
    struct world_launch *launches; /* all that were appended */
    size_t n, capacity;
    uint64_t seed;
};

uint64_t world_random(struct world *w);
/* A fresh directory below $TMPDIR. */
void world_make_directory(struct world *w);
void world_remove_directory(struct world *w);
/* Opens (again) and puts runs, devices, kernels and configurations. */
void world_open(struct world *w);
/* Appends launches of random configurations, start times in [from, from + span), many exactly on minutes and
 * hours. */
void world_append(struct world *w, int run, int64_t from_ns, int64_t span_ns, size_t n);

/* Compares top, configurations and the table launch with a walk over all launches. */
void world_check(struct world *w, struct occ_store *store, const struct occ_filter *filter);
/* Compares top and configurations only, for histories with launches evicted by a quota. */
void world_check_questions(struct world *w, struct occ_store *store, const struct occ_filter *filter);
/* world_check() with random filters. */
void world_check_random(struct world *w, struct occ_store *store, int times);
/* Checks that the rollups hold all launches up to the watermarks. */
void world_check_rollups(struct world *w, struct occ_store *store);

int64_t world_number_in(struct sqlite3 *db, const char *sql);
int64_t world_number(struct occ_store *store, const char *sql);
/* Makes a table that takes any value, as a hostile file can have it; without keys. */
void world_loosen(struct occ_store *store, const char *table);
