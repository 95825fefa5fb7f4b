/* Names of kernels by id, with a fixed-size cache of the last names. One thread. */
#include "nsys_parts.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS          4096u
#define SLOT_BYTES     4096u /* longer names are read from the file each time */
#define NAME_MAX_BYTES (1u << 20)

struct slot {
    int64_t id;
    size_t bytes; /* 0: free */
    char text[SLOT_BYTES];
};

struct occ_nsys_names {
    struct occ_nsys_db *d;
    struct occ_nsys_rows rows;
    struct slot slots[SLOTS]; /* untouched slots take no memory */
};

int occ_nsys_names_new(struct occ_nsys_db *d, struct occ_nsys_names **ret_names)
{
    static const char *const columns[] = {"value"};
    struct occ_nsys_names *names = calloc(1, sizeof *names);
    if (!names)
        return occ_no_memory(d->err);
    names->d = d;
    names->rows =
        (struct occ_nsys_rows){.table = "StringIds", .columns = columns, .n = 1, .end = " WHERE id = ?"};
    *ret_names = names;
    return occ_nsys_open(d, &names->rows);
}

void occ_nsys_names_free(struct occ_nsys_names *names)
{
    if (!names)
        return;
    (void)occ_nsys_close(&names->rows, 0);
    free(names);
}

/* Looks the id up in the table. */
static int read_name(struct occ_nsys_names *names, int64_t id, const char **ret_text, size_t *ret_bytes)
{
    sqlite3_stmt *stmt = names->rows.stmt;
    if (!stmt)
        return 0;
    (void)sqlite3_reset(stmt);
    (void)sqlite3_bind_int64(stmt, 1, id);
    int code = sqlite3_step(stmt);
    if (code == SQLITE_TOOBIG)
        *ret_bytes = SIZE_MAX;
    if (code == SQLITE_TOOBIG || code == SQLITE_DONE)
        return 0;
    if (code != SQLITE_ROW) {
        names->d->table = names->rows.table;
        names->d->row = 0;
        return occ_nsys_fail(names->d);
    }
    if (sqlite3_column_type(stmt, 0) != SQLITE_TEXT)
        return 0;
    *ret_text = (const char *)sqlite3_column_text(stmt, 0);
    size_t bytes = (size_t)sqlite3_column_bytes(stmt, 0);
    if (!*ret_text)
        return occ_no_memory(names->d->err);
    *ret_bytes = bytes > NAME_MAX_BYTES ? SIZE_MAX : bytes;
    return 0;
}

int occ_nsys_names_find(struct occ_nsys_names *names, int64_t id, const char **ret_text, size_t *ret_bytes)
{
    struct slot *slot = &names->slots[(uint64_t)id % SLOTS];
    *ret_text = slot->text;
    *ret_bytes = slot->bytes;
    if (slot->bytes > 0 && slot->id == id)
        return 0;
    *ret_bytes = 0;
    int status = read_name(names, id, ret_text, ret_bytes);
    if (status == 0 && *ret_bytes > 0 && *ret_bytes <= SLOT_BYTES) {
        slot->id = id;
        slot->bytes = *ret_bytes;
        memcpy(slot->text, *ret_text, *ret_bytes);
    }
    return status;
}
