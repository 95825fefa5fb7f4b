/* Makes a plain file from a recording in another form: input from a pipe, a file compressed with zstd or gzip
 * (JSON in gzip stays as it is, because its reader streams gzip), or a report that Nsight Systems has to
 * export. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "support/error.h"

/* Maximum size of the copy of a pipe or a compressed file: a small file can expand to any size. */
#define OCC_SPOOL_MAX_BYTES (UINT64_C(64) << 30)

#define OCC_SPOOL_PATH_BYTES 4096

/* Creates a file in TMPDIR without a name, open for reading and writing. Returns a descriptor, or a negative
 * code. */
int occ_spool_unnamed(struct occ_error *err);

/* Beginning of the path of a spooled file without a name; the descriptor follows, and opening the path opens
 * the file again. SQLite resolves such links itself and fails: occ_spool_link() gives the file a name for
 * SQLite. */
#define OCC_SPOOL_UNNAMED "/proc/self/fd/"
int occ_spool_link(const char *path, char name[OCC_SPOOL_PATH_BYTES], struct occ_error *err);

/* The file to read instead of a path: the file itself (fd < 0), or a new file in TMPDIR. */
struct occ_spooled {
    char path[OCC_SPOOL_PATH_BYTES];
    int fd;
    bool has_name; /* the new file has a name and must be unlinked */
};

/* Number of blank bytes at the beginning of a text, including a UTF-8 byte order mark. */
size_t occ_spool_blanks(const char *text);
/* True if a file with this beginning, behind the blanks, can be JSON. */
bool occ_spool_is_json(const char *head, size_t n);

/* "-" is standard input. The caller closes *spooled also after an error. */
int occ_spool(const char *path, struct occ_spooled *spooled, struct occ_error *err);
void occ_spooled_close(struct occ_spooled *spooled);
