/* See catalog.h. */
#include "catalog.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/map.h"

/* The database has no journal: after an error the import is over. */
#define SETUP                                                                                                \
    "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;" \
    "PRAGMA cache_size=-4096;"                                                                               \
    "CREATE TABLE entry (low INTEGER, high INTEGER, number INTEGER, PRIMARY KEY (low, high)) WITHOUT ROWID;" \
    "CREATE TABLE record (number INTEGER PRIMARY KEY, record BLOB);"                                         \
    "BEGIN"

enum statement { FIND, ADD, GET, SET, STATEMENTS };
static const char *const sql[STATEMENTS] = {
    [FIND] = "SELECT number FROM entry WHERE low = ? AND high = ?",
    [ADD] = "INSERT INTO entry VALUES (?, ?, ?)",
    [GET] = "SELECT record FROM record WHERE number = ?",
    [SET] = "INSERT OR REPLACE INTO record VALUES (?, ?)",
};

struct occ_catalog {
    size_t record_bytes;
    uint32_t in_memory, n;
    struct occ_map index;   /* lower half of the hash -> number */
    uint64_t *high;         /* upper half of the hash, by number */
    unsigned char *records; /* records, by number */
    sqlite3 *db;            /* NULL: all keys are in memory */
    sqlite3_stmt *stmt[STATEMENTS];
};

int occ_catalog_new(size_t record_bytes, uint32_t in_memory, struct occ_catalog **ret_catalog,
                    struct occ_error *err)
{
    struct occ_catalog *c = calloc(1, sizeof *c);
    if (!c)
        return occ_no_memory(err);
    *c = (struct occ_catalog){.record_bytes = record_bytes,
                              .in_memory = in_memory,
                              .high = calloc(in_memory, sizeof *c->high),
                              .records = calloc(in_memory, record_bytes)};
    if (!c->high || !c->records) {
        occ_catalog_free(c);
        return occ_no_memory(err);
    }
    *ret_catalog = c;
    return 0;
}

void occ_catalog_free(struct occ_catalog *c)
{
    if (!c)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(c->stmt[i]);
    (void)sqlite3_close(c->db);
    occ_map_free(&c->index);
    free(c->high);
    free(c->records);
    free(c);
}

uint32_t occ_catalog_count(const struct occ_catalog *c)
{
    return c->n;
}

/* ---- the database ---- */

static int fail(const struct occ_catalog *c, struct occ_error *err)
{
    int code = sqlite3_errcode(c->db);
    return code == SQLITE_NOMEM ? occ_no_memory(err)
                                : occ_fail(err, code == SQLITE_FULL ? OCC_E_FULL : OCC_E_IO,
                                           "cannot use the temporary database: %s", sqlite3_errmsg(c->db));
}

static int open_database(struct occ_catalog *c, struct occ_error *err)
{
    bool is_good =
        sqlite3_open_v2("", &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ==
            SQLITE_OK &&
        sqlite3_exec(c->db, SETUP, NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; i < STATEMENTS && is_good; i++)
        is_good = sqlite3_prepare_v2(c->db, sql[i], -1, &c->stmt[i], NULL) == SQLITE_OK;
    return is_good ? 0 : fail(c, err);
}

/* Ends a statement after its last step, which gave a row or wrote one. */
static int end(const struct occ_catalog *c, enum statement which, int step, struct occ_error *err)
{
    int status = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : fail(c, err);
    (void)sqlite3_reset(c->stmt[which]);
    return status;
}

static void bind_key(sqlite3_stmt *stmt, struct occ_catalog_key key)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)key.low);
    (void)sqlite3_bind_int64(stmt, 2, (int64_t)key.high);
}

static int find_stored(struct occ_catalog *c, struct occ_catalog_key key, uint32_t *ret_number,
                       struct occ_error *err)
{
    sqlite3_stmt *find = c->stmt[FIND], *add = c->stmt[ADD];
    bind_key(find, key);
    int step = sqlite3_step(find);
    *ret_number = step == SQLITE_ROW ? (uint32_t)sqlite3_column_int64(find, 0) : c->n;
    int status = end(c, FIND, step, err);
    if (status != 0 || step == SQLITE_ROW)
        return status;
    bind_key(add, key);
    (void)sqlite3_bind_int64(add, 3, c->n);
    status = end(c, ADD, sqlite3_step(add), err);
    c->n += status == 0;
    return status == 0 ? 1 : status;
}

/* ---- keys ---- */

int occ_catalog_find(struct occ_catalog *c, struct occ_catalog_key key, uint32_t *ret_number,
                     struct occ_error *err)
{
    uint64_t low = key.low;
    uint32_t at;
    while ((at = occ_map_get(&c->index, low)) != OCC_MAP_NONE && c->high[at] != key.high)
        low++; /* another hash has the same lower half */
    *ret_number = at;
    if (at != OCC_MAP_NONE)
        return 0;
    *ret_number = c->n;
    if (c->n == OCC_MAP_NONE - 1)
        return occ_fail(err, OCC_E_FULL, "more than %u different kernels or launch configurations", c->n);
    if (c->n >= c->in_memory) {
        int status = c->db ? 0 : open_database(c, err);
        return status == 0 ? find_stored(c, key, ret_number, err) : status;
    }
    c->high[c->n] = key.high;
    return occ_map_put(&c->index, low, c->n++) != OCC_MAP_NONE ? 1 : occ_no_memory(err);
}

/* ---- records ---- */

int occ_catalog_get(struct occ_catalog *c, uint32_t number, void *ret_record, struct occ_error *err)
{
    if (number < c->in_memory) {
        memcpy(ret_record, c->records + number * c->record_bytes, c->record_bytes);
        return 0;
    }
    (void)sqlite3_bind_int64(c->stmt[GET], 1, number);
    int step = sqlite3_step(c->stmt[GET]);
    const void *stored = step == SQLITE_ROW ? sqlite3_column_blob(c->stmt[GET], 0) : NULL;
    memset(ret_record, 0, c->record_bytes);
    if (stored && (size_t)sqlite3_column_bytes(c->stmt[GET], 0) == c->record_bytes)
        memcpy(ret_record, stored, c->record_bytes);
    return end(c, GET, step, err);
}

int occ_catalog_set(struct occ_catalog *c, uint32_t number, const void *record, struct occ_error *err)
{
    if (number < c->in_memory) {
        memcpy(c->records + number * c->record_bytes, record, c->record_bytes);
        return 0;
    }
    (void)sqlite3_bind_int64(c->stmt[SET], 1, number);
    (void)sqlite3_bind_blob(c->stmt[SET], 2, record, (int)c->record_bytes, SQLITE_STATIC);
    return end(c, SET, sqlite3_step(c->stmt[SET]), err);
}
