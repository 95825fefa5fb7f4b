/* Arguments of a launch configuration that SQL does not have: barriers, and the first change with its
 * predicted saving by the model alone, without measurements. One thread. */
#pragma once

#include "export.h"
#include "store/store.h"

enum { EXPORT_MODEL_ARGS = 5 };

struct export_model {
    char change[192];         /* "": no change has a promised gain */
    double saving, low, high; /* part of the launch's time; ends of the 80 % interval */
    uint32_t barriers;        /* per block; 0: unknown */
};

int export_model_read(struct occ_store *store, int64_t config, struct export_model *ret_model,
                      struct occ_error *err);
/* Returns the number of arguments; their texts belong to `model`. */
size_t export_model_args(const struct export_model *model, struct export_arg args[EXPORT_MODEL_ARGS]);
