/* The sink's two ends for import.c: made before a reader runs, poured into the history when it is done. */
#ifndef OCC_IMPORT_SINK_STORE_H
#define OCC_IMPORT_SINK_STORE_H

#include "import.h"

int occ_import_sink_new(const struct occ_import_options *options, struct occ_import_sink **ret_sink,
                        struct occ_error *err);
void occ_import_sink_free(struct occ_import_sink *sink);

/* Everything into the store, in one transaction. `path` and `hash` go into the run's row. */
int occ_import_sink_pour(struct occ_import_sink *sink, struct occ_store *store, const char *path,
                         const char *hash, struct occ_import_result *ret_result, struct occ_error *err);

#endif
