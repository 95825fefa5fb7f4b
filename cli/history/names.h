/* Names of kernels in the form of `--name`. One thread. */
#pragma once

#include "store/store.h"
#include "support/cleanup.h"

extern const char *const name_labels[];
#define CLI_OPTION_NAME                                                                                      \
    CLI_OPTION(0, "name", CLI_WORD, struct history_args, name, "FORM",                                       \
               "names of kernels: short; distinct (default: the short name, and the differences between "    \
               "kernels of that name); full; mangled",                                                       \
               .words = name_labels)

struct kernel_names;

/* Loads the names of all kernels of the history, independent of filters, and words if the output is a screen.
 * `form`: one of name_labels; NULL: distinct. */
int kernel_names_load(struct occ_store *store, const char *form, struct kernel_names **ret_names,
                      struct occ_error *err);
void kernel_names_free(struct kernel_names *names);
OCC_CLEANUP(kernel_names, kernel_names_free)

/* Returns the kernel's words (names/kernel_names.h); NULL: it has none, or the output is no screen, or the
 * form is not distinct. */
const char *kernel_names_words(const struct kernel_names *names, int64_t id);

/* The same by the kernel's name in this form. Time linear in the number of kernels. */
const char *kernel_names_words_of(const struct kernel_names *names, const char *name);

/* Sets short_name and words, which then live as long as `names`. */
void kernel_names_apply(const struct kernel_names *names, struct occ_row_kernel *kernel);

/* Adds the SQL function kernel_name(kernel_id), valid as long as `names`. */
int kernel_names_add_function(const struct kernel_names *names, struct sqlite3 *db, struct occ_error *err);
/* Adds the SQL function kernel_owner(kernel_demangled), with the words of names/owners.h; NULL for NULL. */
int kernel_owner_add_function(struct sqlite3 *db, struct occ_error *err);
