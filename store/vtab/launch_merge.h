/* Launches in the order of their starts: merges the chunks of a scan, which overlap in time if runs or
 * devices do. A chunk is opened when its time comes, so that a reader of the first rows pays only for their
 * chunks. Threads: the connection's. */
#pragma once

#include "launch_scan.h"

struct occ_launch_merge {
    struct occ_launch_chunk **chunks; /* a heap of n open chunks, then spare chunks; [0] has the next row */
    uint32_t n, allocated, decoders;
    sqlite3_stmt *list; /* on the next chunk to be opened, if `listed` */
    bool listed, descending, started;
};

/* More chunks at a time than stay decoded: SQLite sorts faster than chunks are decoded again. */
#define OCC_LAUNCH_MERGE_MAX 64u

/* True if more than OCC_LAUNCH_MERGE_MAX chunks of the history overlap. Reads the times of all chunks. */
int occ_launch_merge_is_wide(sqlite3_vtab *vtab, bool *ret_wide);

/* `list` gives chunks by first_start_ns, or for descending order by last_start_ns. The caller owns `list`,
 * which must live until the end of the scan. SQLite codes. */
int occ_launch_merge_start(struct occ_launch_merge *merge, struct occ_launch_scan *scan, sqlite3_stmt *list,
                           bool descending);
/* The chunk with the next row, and the row's number in the chunk; NULL: no more rows. */
int occ_launch_merge_next(struct occ_launch_merge *merge, struct occ_launch_scan *scan,
                          struct occ_launch_chunk **ret_chunk, uint32_t *ret_row);
void occ_launch_merge_close(struct occ_launch_merge *merge);
