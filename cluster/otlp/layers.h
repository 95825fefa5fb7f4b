/*
 * The layers of a run's minute: GPU time by launch configuration and range. Rows of minutes have no ranges,
 * so that the launches are read. The history is only read; its failures leave the layers unknown and are no
 * errors. One thread.
 */
#pragma once

#include "stacks.h"

struct sqlite3;
struct occ_layers;

/* db: the history, which must outlive *ret_layers. OCC_E_CORRUPT: the history lacks the tables. */
int occ_layers_open(struct sqlite3 *db, struct occ_layers **ret_layers, struct occ_error *err);
void occ_layers_close(struct occ_layers *layers);

/* Reads the chunks with the run's minute, if the run has ranges. Their launches are subtracted from
 * *launches_left; if it becomes negative the layers of this minute and of the following ones are unknown.
 * *ret_rows: number of configurations with ranges. */
void occ_layers_read(struct occ_layers *layers, int64_t minute, int64_t run, int64_t *launches_left,
                     int64_t *ret_rows);

/* Adds `whole->ns`, the newly counted GPU time of the configuration `key->config` in that minute, as stacks
 * by layer: key->range and members of *whole for layer and causes are set here. All of it is added; the part
 * without a known layer has the path OCC_STACKS_UNREAD, or none if the run has no ranges. */
int occ_layers_add(struct occ_layers *layers, struct occ_stacks *stacks, struct occ_stacks_key key,
                   const struct occ_stack *whole, struct occ_error *err);
