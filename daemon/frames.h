/*
 * The log of a ring, frame by frame, into the history: occ_producer_take_frames() of producers.h, and the texts of
 * a run's row, which come from PROCESS frames.
 */
#ifndef OCC_DAEMON_FRAMES_H
#define OCC_DAEMON_FRAMES_H

#include "store/store.h"

/* Frees every string of the row that is ours. */
void occ_frames_free_texts(struct occ_run *row);

#endif
