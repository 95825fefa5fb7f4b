/* Parts of the Nsight Systems reader (nsys.c): nsys_db.c, nsys_names.c, nsys_devices.c, nsys_ranges.c,
 * nsys_facts.c. Internal to import/. One thread. */
#pragma once

#include "sink.h"

/*
 * ---- a SQLite file of untrusted origin ----
 *
 * occ_nsys_restrict() allows nothing but reading columns (authorizer, no views, no triggers, no trusted
 * schema) and bounds the work: as many steps as a valid file of this size can need, and the schema's memory.
 * Tables are read by the names of their columns, because columns come and go between versions. One thread.
 */

struct sqlite3;
struct sqlite3_stmt;

struct occ_nsys_db {
    struct sqlite3 *db;
    struct occ_error *err;
    const char *table; /* current table, for messages; NULL: none */
    int64_t row;       /* rowid of the current row; 0: none */
    uint64_t steps_left;
    int64_t memory_max;
};

/* `db` stays the caller's and must not be used without `ret_db` afterwards. 0 or OCC_E_CORRUPT. */
int occ_nsys_restrict(struct sqlite3 *db, struct occ_nsys_db *ret_db, struct occ_error *err);
/* Call before `db` is closed. */
void occ_nsys_release(struct occ_nsys_db *d);

/* The rows of a table in file order. Column i of the statement is columns[i], NULL in every row if the table
 * lacks the column; the rowid follows the last column. */
struct occ_nsys_rows {
    const char *table;
    const char *const *columns;
    size_t n;                  /* at most 64 */
    const char *end;           /* SQL after the table's name: " WHERE id = ?"; NULL: none */
    uint64_t required;         /* a bit for each column without which the table counts as missing */
    uint64_t present;          /* out: a bit for each column that the table has */
    struct sqlite3_stmt *stmt; /* out; NULL: the table is missing */
};

/* Prepares the statement. OCC_E_INVALID: not an ordinary table, or it has computed columns. */
int occ_nsys_open(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
/* 1: a row is available; 0: no more, or the table is missing; negative: damaged, with table and row in the
 * message. */
int occ_nsys_next(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
/* Opens the table and reads its first row. */
int occ_nsys_first(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
/* Returns `result`, or 0 for results that are no error. */
int occ_nsys_close(struct occ_nsys_rows *rows, int result);

/* Sets the message of SQLite's last error. */
int occ_nsys_fail(struct occ_nsys_db *d);

/* Values of the current row; a value of another type counts as missing. Texts live until the next row. */
int64_t occ_nsys_integer(struct sqlite3_stmt *stmt, int column, int64_t otherwise);
uint32_t occ_nsys_u32(struct sqlite3_stmt *stmt, int column); /* 0: missing, or not in 1 ... 2^32-1 */
const char *occ_nsys_text(struct sqlite3_stmt *stmt, int column);

/* ---- names: table StringIds, with a cache ---- */

struct occ_nsys_names;

int occ_nsys_names_new(struct occ_nsys_db *d, struct occ_nsys_names **ret_names);
/* NULL is fine. */
void occ_nsys_names_free(struct occ_nsys_names *names);

/* The text of an id; valid until the next call. *ret_bytes 0: no text; SIZE_MAX: too long for a name. */
int occ_nsys_names_find(struct occ_nsys_names *names, int64_t id, const char **ret_text, size_t *ret_bytes);

/*
 * ---- the GPU of a launch ----
 *
 * A launch has its process and the CUDA ordinal of the GPU in that process. TARGET_INFO_CUDA_DEVICE (2023 and
 * later) maps it to a GPU and the SMs that the process may use (a MIG slice has fewer); without it,
 * TARGET_INFO_GPU's own ordinals do. Exports of 2021 describe the GPUs of each process in
 * TARGET_INFO_CUDA_GPU. In a file without GPUs, every GPU that a launch mentions is of the model that the
 * user named, and two ordinals are two GPUs.
 */

struct occ_nsys_devices;

/* The caller frees *ret_devices also after a failure. */
int occ_nsys_devices_read(struct occ_nsys_db *d, struct occ_import_sink *sink,
                          struct occ_nsys_devices **ret_devices);
/* NULL is fine. */
void occ_nsys_devices_free(struct occ_nsys_devices *devices);

/* 1: *ret_number is the sink's number of the GPU; 0: the file does not describe the GPU; OCC_E_INVALID: the
 * file lacks values of the GPU that the model needs. `process` is the launch's globalPid, 0: unknown. */
int occ_nsys_devices_find(struct occ_nsys_devices *devices, int64_t process, int64_t ordinal,
                          uint64_t *ret_number);

/* Parts of a "serialized global id": hardware and virtual machine in the upper 16 bits, process id, thread
 * id. */
static inline int64_t occ_nsys_machine_of(int64_t global)
{
    return global >> 48 & 0xffff;
}
#define OCC_NSYS_PID_MAX 0xffffff
static inline int64_t occ_nsys_pid_of(int64_t global)
{
    return global >> 24 & OCC_NSYS_PID_MAX;
}

/* ---- NVTX ranges ---- */

struct occ_nsys_ranges;

/* Looks for ranges, and reads the originals of cloned CUDA graph nodes. The caller frees *ret_ranges also
 * after a failure. */
int occ_nsys_ranges_new(struct occ_nsys_db *d, struct occ_nsys_ranges **ret_ranges);
/* NULL is fine. */
void occ_nsys_ranges_free(struct occ_nsys_ranges *ranges);
/* The origin of a launch; node 0: not from a graph. Unknown if the recording has no ranges. */
struct occ_import_origin occ_nsys_ranges_origin(const struct occ_nsys_ranges *ranges, int64_t process,
                                                int64_t correlation, int64_t node);
/* Passes ranges, calls and nodes to the sink. */
int occ_nsys_ranges_read(struct occ_nsys_ranges *ranges, struct occ_nsys_names *names,
                         struct occ_import_sink *sink);

/* ---- facts about the recording ---- */

/* 1: CUDA graphs were recorded whole, without their kernels; 0: not; negative: damaged. */
int occ_nsys_has_whole_graphs(struct occ_nsys_db *d);

/* Fills in version, host and times; also program and rank, if `process` (globalPid) is the only process (0:
 * it is not). Adds the file's missing fields to missing_fields. */
int occ_nsys_facts_read(struct occ_nsys_db *d, int64_t process, struct occ_import_recording *recording);
