/* SQL functions for chosen kernels and ranges; see sql_chosen.h. One thread. */
#include "sql_chosen.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "support/map.h"

bool sql_chooses_kernels(const struct occ_filter *filter)
{
    return filter->kernel || filter->kernel_regex || filter->exclude_regex;
}

static void chosen_free(void *chosen)
{
    occ_map_free(chosen);
    free(chosen);
}

static void is_chosen_kernel(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    uint64_t kernel = (uint64_t)sqlite3_value_int64(argv[0]);
    sqlite3_result_int(context, occ_map_get(sqlite3_user_data(context), kernel) != OCC_MAP_NONE);
}

/* Tests a launch's range in SQL; false for a launch without a range (NULL). */
static void is_chosen_range(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    uint64_t key = occ_range_key(sqlite3_value_int64(argv[0]), (uint64_t)sqlite3_value_int64(argv[1]));
    sqlite3_result_int(context, sqlite3_value_type(argv[1]) != SQLITE_NULL &&
                                    occ_map_get(sqlite3_user_data(context), key) != OCC_MAP_NONE);
}

/* Adds an SQL function with the map as its data. SQLite frees the map. */
static int add_chosen(sqlite3 *db, const char *name, int argc, struct occ_map *map,
                      void (*function)(sqlite3_context *, int, sqlite3_value **), struct occ_error *err)
{
    struct occ_map *own = malloc(sizeof *own);
    if (!own) {
        occ_map_free(map);
        return occ_no_memory(err);
    }
    *own = *map;
    /* SQLite frees `own` after a failure too */
    int code =
        sqlite3_create_function_v2(db, name, argc, SQLITE_UTF8, own, function, NULL, NULL, chosen_free);
    return code == SQLITE_OK ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "%s", sqlite3_errmsg(db));
}

int sql_add_chosen(struct occ_store *store, const struct occ_filter *filter, struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(store);
    struct occ_map kernels = {0}, ranges = {0};
    int status = sql_chooses_kernels(filter) ? occ_store_choose_kernels(store, filter, &kernels, err) : 0;
    if (status == 0)
        status = add_chosen(db, "is_chosen_kernel", 1, &kernels, is_chosen_kernel, err);
    else
        occ_map_free(&kernels);
    if (status == 0 && filter->range_regex)
        status = occ_store_choose_ranges(store, filter->range_regex, &ranges, err);
    return status == 0 ? add_chosen(db, "is_chosen_range", 2, &ranges, is_chosen_range, err) : status;
}
