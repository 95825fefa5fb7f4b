/*
 * Fuzzes the Nsight Systems reader with any SQLite file, from memory. Random bytes are rarely a valid file,
 * so inputs without SQLite's magic are SQL that makes the file; these inputs explore schemas.
 */
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/readers.h"
#include "import/sink_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops SQL that may run for ever. */
static int stop(void *context)
{
    return ++*(int *)context > 1000;
}

static int open_bytes(sqlite3 *db, const uint8_t *data, size_t size)
{
    unsigned char *copy = sqlite3_malloc64(size);
    if (!copy)
        return SQLITE_NOMEM;
    memcpy(copy, data, size);
    return sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
}

static int open_sql(sqlite3 *db, const uint8_t *data, size_t size)
{
    char *sql = strndup((const char *)data, size);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    if (sql)
        (void)sqlite3_exec(db, sql, NULL, NULL, NULL);
    free(sql);
    return SQLITE_OK;
}

/* Reads the launches' ranges, as the import does before it stores launches. */
static void place_launches(struct occ_import_sink *sink)
{
    char path[OCC_STORE_RANGE_BYTES + 1];
    const char *phase = NULL;
    uint32_t place = 0;
    for (int i = 0; i < 64 && occ_ranges_next(sink->ranges, &place, NULL) == 0; i++)
        if (place != 0)
            (void)occ_ranges_path(sink->ranges, place, path, &phase);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct occ_import_options options = {0};
    struct occ_import_sink *sink = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *db = NULL;
    int steps = 0;
    if (size > 65536 || sqlite3_open(":memory:", &db) != SQLITE_OK)
        return 0;
    sqlite3_progress_handler(db, 10000, stop, &steps);
    bool bytes = size > 16 && memcmp(data, "SQLite format 3", 16) == 0;
    int code = bytes ? open_bytes(db, data, size) : open_sql(db, data, size);
    if (code == SQLITE_OK && occ_import_sink_new(&options, &sink, NULL) == 0)
        (void)occ_nsys_read(db, sink, &err);
    if (sink)
        place_launches(sink);
    occ_import_sink_free(sink);
    (void)sqlite3_close(db);
    return 0;
}
