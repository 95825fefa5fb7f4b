/* Names of kernels; see names.h. One thread. */
#include "names.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"
#include "support/arena.h"
#include "support/array.h"
#include "names/kernel_names.h"
#include "names/owners.h"

const char *const name_labels[] = {"short", "distinct", "full", "mangled", NULL};

/* Words of more kernels would delay an answer by more than 200 ms. */
enum { WORDS_KERNELS_MAX = 16384 };

struct kernel_names {
    struct occ_kernel_name *kernels; /* sorted by id */
    size_t n, allocated;
    struct occ_arena arena;
};

/* Stores one copy if both names are equal, since names take most of the memory. */
static void add_kernel(struct kernel_names *names, int64_t id, const char *demangled, const char *name)
{
    names->arena.failed |=
        !occ_grow((void **)&names->kernels, &names->allocated, names->n, UINT32_MAX, sizeof *names->kernels);
    if (names->arena.failed)
        return;
    const char *copy = occ_arena_copy(&names->arena, name);
    bool is_second = demangled && strcmp(copy, demangled) != 0;
    names->kernels[names->n++] = (struct occ_kernel_name){
        .id = id,
        .short_name = copy,
        .demangled = is_second ? occ_arena_copy(&names->arena, demangled) : copy,
    };
}

static int read_names(struct kernel_names *names, const char *form, sqlite3 *db, struct occ_error *err)
{
    /* columns 2 ... 5 are in the order of name_labels */
    static const char statement[] = "SELECT kernel_id, kernel_demangled, kernel, kernel, kernel_demangled, "
                                    "kernel_mangled FROM kernel ORDER BY kernel_id";
    int column = 2, step = SQLITE_ERROR;
    sqlite3_stmt *stmt = NULL;
    while (strcmp(form, name_labels[column - 2]) != 0)
        column++;
    if (sqlite3_prepare_v2(db, statement, -1, &stmt, NULL) == SQLITE_OK)
        while ((step = sqlite3_step(stmt)) == SQLITE_ROW && !names->arena.failed)
            add_kernel(names, sqlite3_column_int64(stmt, 0), (const char *)sqlite3_column_text(stmt, 1),
                       (const char *)sqlite3_column_text(stmt, column));
    (void)sqlite3_finalize(stmt);
    return names->arena.failed   ? occ_no_memory(err)
           : step != SQLITE_DONE ? occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db))
                                 : 0;
}

int kernel_names_load(struct occ_store *store, const char *form, struct kernel_names **ret_names,
                      struct occ_error *err)
{
    _cleanup_(kernel_names_freep) struct kernel_names *names = calloc(1, sizeof *names);
    if (!names)
        return occ_no_memory(err);
    form = form ? form : "distinct";
    bool is_distinct = strcmp(form, "distinct") == 0;
    int status = read_names(names, form, occ_store_sqlite(store), err);
    if (status == 0 && is_distinct && occ_kernel_names_distinguish(names->kernels, names->n) != 0)
        status = occ_no_memory(err);
    /* words only replace names that a screen would cut */
    if (status == 0 && is_distinct && cli_screen_width() > 0 && names->n <= WORDS_KERNELS_MAX &&
        occ_kernel_names_describe(names->kernels, names->n) != 0)
        status = occ_no_memory(err);
    if (status == 0 && is_distinct) { /* each kernel has its `name`, so the texts are not needed */
        occ_arena_free(names->arena.blocks);
        names->arena = (struct occ_arena){0};
    }
    if (status == 0)
        *ret_names = occ_take(names);
    return status;
}

void kernel_names_free(struct kernel_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->n; i++) {
        free(names->kernels[i].name);
        free(names->kernels[i].words);
    }
    free(names->kernels);
    occ_arena_free(names->arena.blocks);
    free(names);
}

static const char *shown(const struct occ_kernel_name *kernel)
{
    return kernel->name ? kernel->name : kernel->short_name;
}

static int by_id(const void *key, const void *item)
{
    int64_t a = *(const int64_t *)key, b = ((const struct occ_kernel_name *)item)->id;
    return (a > b) - (a < b);
}

/* Returns NULL for a kernel added after the names were loaded. */
static const struct occ_kernel_name *find(const struct kernel_names *names, int64_t id)
{
    return names->n ? bsearch(&id, names->kernels, names->n, sizeof *names->kernels, by_id) : NULL;
}

static const char *find_name(const struct kernel_names *names, int64_t id)
{
    const struct occ_kernel_name *found = find(names, id);
    return found ? shown(found) : NULL;
}

const char *kernel_names_words(const struct kernel_names *names, int64_t id)
{
    const struct occ_kernel_name *found = find(names, id);
    return found ? found->words : NULL;
}

const char *kernel_names_words_of(const struct kernel_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->kernels[i].words && strcmp(shown(&names->kernels[i]), name) == 0)
            return names->kernels[i].words;
    return NULL;
}

void kernel_names_apply(const struct kernel_names *names, struct occ_row_kernel *kernel)
{
    const struct occ_kernel_name *found = find(names, kernel->id);
    if (!found)
        return;
    kernel->short_name = shown(found);
    kernel->words = found->words;
}

static void name_in_sql(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    sqlite3_result_text(context, find_name(sqlite3_user_data(context), sqlite3_value_int64(argv[0])), -1,
                        SQLITE_STATIC);
}

int kernel_names_add_function(const struct kernel_names *names, sqlite3 *db, struct occ_error *err)
{
    int code = sqlite3_create_function(db, "kernel_name", 1, SQLITE_UTF8, (void *)(uintptr_t)names,
                                       name_in_sql, NULL, NULL);
    return code == SQLITE_OK ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "%s", sqlite3_errmsg(db));
}

static void owner_in_sql(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *name = (const char *)sqlite3_value_text(argv[0]);
    struct occ_kernel_owner owner;
    (void)argc;
    if (!name)
        return;
    occ_kernel_owner(name, &owner);
    sqlite3_result_text(context, occ_owner_word(owner.owner), -1, SQLITE_STATIC);
}

int kernel_owner_add_function(sqlite3 *db, struct occ_error *err)
{
    int code = sqlite3_create_function(db, "kernel_owner", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                       owner_in_sql, NULL, NULL);
    return code == SQLITE_OK ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "%s", sqlite3_errmsg(db));
}
