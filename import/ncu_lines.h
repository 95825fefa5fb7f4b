/* Lines of ncu's output. The reader removes a byte order mark, and the prefix with which a launcher of ranks
 * (torchrun, mpirun, srun -l) marks the lines of each rank. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* "[rank0]:", "[1,0]<stdout>:", "12:" */
enum { OCC_NCU_PREFIX_BYTES = 96 };

struct occ_ncu_lines {
    FILE *file;
    const char *prefix; /* only lines with this one; "": all lines, as they are */
    uint64_t number;    /* of the line that was read */
    bool goes_on;       /* the buffer did not hold that line's end */
};

/* From the file's beginning. False: errno. */
bool occ_ncu_first_line(struct occ_ncu_lines *lines);
/* Into the buffer, with the line's end; NULL: no more. A line that is longer than the buffer comes in parts.
 */
char *occ_ncu_next_line(struct occ_ncu_lines *lines, char *buffer, size_t size);

/* The bytes of a prefix of ranks at the beginning of the line, with the blanks around it; 0: none. `prefix`:
 * it without them, "" if it is longer than any launcher's. */
size_t occ_ncu_prefix(const char *line, char prefix[OCC_NCU_PREFIX_BYTES]);
/* The rank that a prefix names; -1: none, or a number that may be another. */
int32_t occ_ncu_rank(const char *prefix);

/* The ranks that printed results into a file, by prefix; "": lines have no prefix. */
enum { OCC_NCU_STREAMS_MAX = 64 };
struct occ_ncu_streams {
    char prefix[OCC_NCU_STREAMS_MAX][OCC_NCU_PREFIX_BYTES];
    size_t n;
    bool has_more; /* than these */
    int32_t rank;  /* of the only one; -1: unknown, or several */
};
