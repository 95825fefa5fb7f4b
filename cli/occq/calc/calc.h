/* `occq calc`: one kernel's launch on one device, from the command line or from compiled code, and its forms:
 * text, JSON, SVG. One thread (stdio). */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/analysis/analysis.h"
#include "cli/analysis/calc_curve.h"
#include "cli/analysis/calc_target.h"
#include "cli/options.h"
#include "occupancy/occupancy.h"
#include "support/error.h"

/* A kernel as compiled code (or the user) describes it. 0: not known, none. */
struct calc_kernel {
    char *name;  /* demangled if it was mangled; NULL: the user's own figures */
    uint32_t sm; /* what it was compiled for; 0: not from compiled code */
    char suffix; /* 'a' of sm_90a, 'f' of sm_100f; 0: none, or unknown */
    bool runs;   /* on the device */
    uint32_t registers, static_smem_bytes, barriers, max_threads, local_bytes, spill_bytes;
    uint32_t cluster[3];
};

struct calc_kernels {
    struct calc_kernel *list;
    size_t n;
};
void calc_kernels_release(struct calc_kernels *kernels);

/* Reads what a cubin, fat binary or host program, or the text of "ptxas -v", holds for a device of capability
 * `cc`, in the file's order; of several with a name the one compiled for the nearest capability. `path` "-"
 * is standard input. `asked`: a kernel's name or a regular expression on it; NULL: all. OCC_E_INVALID: not
 * such a file, or a damaged one; OCC_E_USAGE: no such kernel and no expression;
 * OCC_E_NOT_FOUND: no kernel matches. */
int calc_read_kernels(const char *path, bool is_ptxas, uint32_t cc, const char *asked,
                      struct calc_kernels *ret_kernels, struct occ_error *err);

/* What is shown. `result` belongs to `launch`; without has_grid that is one full wave. */
struct calc_case {
    const struct calc_target *target;
    const struct calc_kernel *kernel;
    struct occ_launch launch;
    bool has_grid;
    struct occ_result result;
};

static inline struct analysis calc_analysis(const struct calc_case *c)
{
    return (struct analysis){.device = &c->target->device,
                             .launch = &c->launch,
                             .result = &c->result,
                             .has_grid = c->has_grid,
                             .name = c->kernel->name,
                             .alone_ratio = NAN,
                             .launch_gap_ns = NAN};
}

/* ---- arguments: options, or a row of a batch, and the launch that they describe; pure, any thread ---- */

struct calc_args {
    struct cli_args common;
    const char *gpu, *cc;
    int64_t sms;
    uint32_t threads[3], grid[3], cluster[3]; /* 0: not given */
    int64_t registers, static_smem, dynamic_smem, max_dynamic_smem, barriers, active_clusters;
    const char *carveout;
    const char *cubin, *ptxas, *kernel;
    const char *svg;
    bool json, batch;
};

extern const struct cli_option calc_options[];

bool calc_args_given(const struct calc_args *args, const char *option);

/* --gpu, or --cc and --sms. OCC_E_INVALID, as all errors here; messages name the option. */
int calc_args_target(const struct calc_args *args, struct calc_target *ret_target, struct occ_error *err);

/* The kernel that --regs, --smem and --barriers describe. */
int calc_args_kernel(const struct calc_args *args, struct calc_kernel *ret_kernel, struct occ_error *err);

/* The launch of `kernel` on `target`, analysed. Both must outlive the case. */
int calc_args_case(const struct calc_args *args, const struct calc_target *target,
                   const struct calc_kernel *kernel, struct calc_case *ret_case, struct occ_error *err);

/* ---- forms ---- */

int calc_text(const struct calc_case *c, struct occ_error *err);
/* A line a kernel. */
int calc_text_list(const struct calc_case *cases, size_t n, struct occ_error *err);
/* The whole document. */
int calc_json(const struct calc_case *cases, size_t n, struct occ_error *err);
/* Writes the curves to the file `path`. */
int calc_svg(const struct calc_case *c, const char *path, struct occ_error *err);

/*
 * ---- batch: CSV in, CSV out, row by row, in bounded memory ----
 *
 * In: a heading line, then a row per line. Fields are separated by commas; one that begins with a quote ends
 * with the next quote that is not doubled. A line ends at a line feed (a carriage return before it is
 * ignored), also inside quotes: no field that is read holds one, and so a quote that is never closed spoils
 * its own row only. Empty lines are ignored. Unknown columns are copied; a name near a known one is refused.
 *
 * Out: the fields as they came, then the columns of RESULTS in calc_batch.c. A row that cannot be computed
 * has the reason in the last column, nothing in the other results, and a line in `talk` that names its
 * number.
 */

#define CALC_BATCH_LINE_BYTES (1U << 20) /* longest line, with its line feed */
#define CALC_BATCH_COLUMNS    64         /* of the input */

struct calc_batch_totals {
    uint64_t rows, bad_rows;
};

/* Write errors stay in `out`. OCC_E_INVALID: the heading, or a line over the limit; OCC_E_IO: cannot read.
 * Rows before the error are written. */
int calc_batch(FILE *in, FILE *out, FILE *talk, struct calc_batch_totals *ret_totals, struct occ_error *err);
