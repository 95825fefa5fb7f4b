/* How programs use the GPUs in a sample of `occq live`: busy time, layers, owners. One thread. */
#pragma once

#include "model.h"

/* Fills in the use of the GPUs, the shares of the kernels, owners and, if the history has ranges, layers. The
 * sample has its rows. */
int live_ask_use(struct occ_store *store, const struct occ_filter *filter, struct live_sample *sample,
                 struct occ_error *err);
