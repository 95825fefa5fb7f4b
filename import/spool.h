/* A plain file for a recording that is none: input from a pipe, a file that zstd or gzip compressed (JSON in
 * gzip stays as it is: its reader streams it), a report that Nsight Systems has to export. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "support/error.h"

/* Of what comes out of a pipe or of zstd: a small file can become any size. */
#define OCC_SPOOL_MAX_BYTES (UINT64_C(64) << 30)

#define OCC_SPOOL_PATH_BYTES 4096

/* A new file in TMPDIR without a name, open for reading and writing. A descriptor, or negative. */
int occ_spool_unnamed(struct occ_error *err);

/* What the path of a spooled file without a name begins with: its descriptor, which opens it anew. SQLite
 * follows such links itself and finds nothing: for it, occ_spool_link() gives the file a name. */
#define OCC_SPOOL_UNNAMED "/proc/self/fd/"
int occ_spool_link(const char *path, char name[OCC_SPOOL_PATH_BYTES], struct occ_error *err);

/* The file to read instead of a path: that file itself (fd < 0), or a new one in TMPDIR. */
struct occ_spooled {
    char path[OCC_SPOOL_PATH_BYTES];
    int fd;
    bool has_name; /* of a new file: it is to be unlinked */
};

/* The bytes of blanks, and of a byte order mark of UTF-8, at a text's beginning. */
size_t occ_spool_blanks(const char *text);
/* True if a file with this beginning, behind the blanks, can be JSON. */
bool occ_spool_is_json(const char *head, size_t n);

/* "-" is standard input. The caller closes *spooled also after an error. */
int occ_spool(const char *path, struct occ_spooled *spooled, struct occ_error *err);
void occ_spooled_close(struct occ_spooled *spooled);
