/* Names of kernels as `--name` asks for them. One thread. */
#pragma once

#include "store/store.h"
#include "support/cleanup.h"

extern const char *const name_labels[];
#define CLI_OPTION_NAME                                                                                      \
    CLI_OPTION(0, "name", CLI_WORD, struct history_args, name, "FORM",                                       \
               "names of kernels: short; distinct (default: the short name, with what differs between "      \
               "kernels of that name); full; mangled",                                                       \
               .words = name_labels)

struct kernel_names;

/* All kernels of the history; `form`: one of name_labels, NULL: distinct. Names do not depend on a filter. */
int kernel_names_load(struct occ_store *store, const char *form, struct kernel_names **ret_names,
                      struct occ_error *err);
void kernel_names_free(struct kernel_names *names);
OCC_CLEANUP(kernel_names, kernel_names_free)

/* Sets short_name, which then lives as long as `names`. */
void kernel_names_apply(const struct kernel_names *names, struct occ_row_kernel *kernel);

/* Makes kernel_name(kernel_id) of it in SQL, for as long as `names` live. */
int kernel_names_add_function(const struct kernel_names *names, struct sqlite3 *db, struct occ_error *err);
