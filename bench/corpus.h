/*
 * Reads a corpus of published changes as CSV (RFC 4180, first row: names of columns), and analyses each row
 * with the model. A row with another number of cells, an impossible value, or contradicting values is
 * skipped, with the reason. A row with a cell above CORPUS_CELL_BYTES, or with a quote that has no end so
 * far, is the rest of its line.
 *
 * Columns: id, source, gpu, owner, change, direction, bound, ratio (time after / before), time_before,
 * time_after; before_ and after_ block, grid, regs, static_smem, dynamic_smem, spill_bytes, blocks_per_sm,
 * theoretical; calc_theoretical_ and calc_blocks_per_sm_ before and after for sides without block or
 * registers. All but id, source, gpu, change and ratio may be missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occupancy/suggest.h"

#define CORPUS_BYTES_MAX   (16u << 20)
#define CORPUS_ROWS_MAX    20000
#define CORPUS_COLUMNS_MAX 256
#define CORPUS_CELL_BYTES  65536
#define CORPUS_TEXT_BYTES  96

enum corpus_knob { CORPUS_REGISTERS, CORPUS_BLOCK, CORPUS_GRID, CORPUS_SMEM, CORPUS_OTHER };

struct corpus_row {
    char id[32], source[CORPUS_TEXT_BYTES]; /* source: the repository */
    const char *skipped;                    /* the reason; NULL: the change has a prediction */
    struct occ_device device;
    struct occ_launch launch[2];
    struct occ_result result[2];
    struct occ_side side[2];
    bool has_launch; /* the launch before is known well enough for advice */
    bool has_grid;
    double ratio;
    enum occ_work_bound bound;
    enum occ_owner owner;
    enum corpus_knob knob;
    int direction; /* direction of the knob's value: -1, 1; 0: unknown */
};

struct corpus {
    struct corpus_row *rows;
    size_t n;
    bool is_cut; /* rows beyond CORPUS_ROWS_MAX were left out */
};

/* Parses `size` bytes without a NUL at the end. Returns NULL without memory or without the columns "id",
 * "source", "gpu", "change" and "ratio"; *ret_why has the reason. The caller frees with corpus_free(). */
struct corpus *corpus_parse(const char *text, size_t size, const char **ret_why);
void corpus_free(struct corpus *corpus);
