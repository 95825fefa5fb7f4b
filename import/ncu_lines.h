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
    uint64_t number;    /* number of the last line */
    bool goes_on;       /* the line continues beyond the buffer */
};

/* Reads the first line of the file. False: errno. */
bool occ_ncu_first_line(struct occ_ncu_lines *lines);
/* Reads the next line into the buffer, with its line end; NULL: no more lines. A line longer than the buffer
 * comes in parts. */
char *occ_ncu_next_line(struct occ_ncu_lines *lines, char *buffer, size_t size);

/* Number of bytes of a launcher's rank prefix at the beginning of the line, with surrounding blanks; 0: none.
 * `prefix` gets the text without blanks, or "" if it is longer than the prefix of any launcher. */
size_t occ_ncu_prefix(const char *line, char prefix[OCC_NCU_PREFIX_BYTES]);
/* The rank in a prefix; -1: none, or a number with another meaning. */
int32_t occ_ncu_rank(const char *prefix);

/* The ranks that printed results into a file, by prefix; "": lines have no prefix. */
enum { OCC_NCU_STREAMS_MAX = 64 };
struct occ_ncu_streams {
    char prefix[OCC_NCU_STREAMS_MAX][OCC_NCU_PREFIX_BYTES];
    size_t n;
    bool has_more; /* more streams than the list holds */
    int32_t rank;  /* rank of the only stream; -1: unknown, or several streams */
};
