/* `occq calc`: one kernel's launch on one device, from the command line or from compiled code, printed as
 * text, JSON or SVG. One thread (stdio). */
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

/* A kernel as described by compiled code or the user. 0: unknown, or none. */
struct calc_kernel {
    char *name;  /* demangled; NULL: the user's own figures */
    uint32_t sm; /* compiled for sm_NN; 0: not from compiled code */
    char suffix; /* suffix of sm_90a or sm_100f; 0: none, or unknown */
    bool runs;   /* runs on the device */
    uint32_t registers, static_smem_bytes, barriers, max_threads, local_bytes, spill_bytes;
    bool knows_spills; /* `spill_bytes` is the compiler's report */
    uint32_t cluster[3];
};

struct calc_kernels {
    struct calc_kernel *list;
    size_t n;
};
void calc_kernels_release(struct calc_kernels *kernels);

/* Reads the kernels of a cubin, fat binary or host program, or of the output of "ptxas -v", for a device of
 * capability `cc`, in the file's order; among kernels of the same name the one compiled for the nearest
 * capability. `path` "-": standard input. `asked`: a kernel's name or a regular expression on it; NULL: all
 * kernels. Returns OCC_E_INVALID for another or a damaged file; OCC_E_USAGE if `asked` is neither a kernel's
 * name nor an expression; OCC_E_NOT_FOUND if no kernel matches. */
int calc_read_kernels(const char *path, bool is_ptxas, uint32_t cc, const char *asked,
                      struct calc_kernels *ret_kernels, struct occ_error *err);

/* A case to print. `result` is the analysis of `launch`, which is one full wave without has_grid. */
struct calc_case {
    const struct calc_target *target;
    const struct calc_kernel *kernel;
    struct occ_launch launch;
    bool has_grid;
    uint32_t independent; /* instructions per warp; 0: unknown */
    struct occ_result result;
};

static inline struct analysis calc_analysis(const struct calc_case *c)
{
    return (struct analysis){.device = &c->target->device,
                             .launch = &c->launch,
                             .result = &c->result,
                             .has_grid = c->has_grid,
                             .name = c->kernel->name,
                             .spill_bytes = c->kernel->knows_spills ? (int64_t)c->kernel->spill_bytes : -1,
                             .local_bytes = c->kernel->local_bytes,
                             .alone_ratio = NAN,
                             .launch_gap_ns = NAN,
                             .independent = c->independent};
}

/* ---- arguments: options, or a row of a batch, and their launch; pure, any thread ---- */

struct calc_args {
    struct cli_args common;
    const char *gpu, *cc;
    int64_t sms;
    uint32_t threads[3], grid[3], cluster[3]; /* 0: not given */
    uint32_t local_size[3], global_size[3];   /* the same in OpenCL's work-items; 0: not given */
    int64_t registers, static_smem, dynamic_smem, max_dynamic_smem, barriers, active_clusters, independent;
    const char *carveout;
    const char *cubin, *ptxas, *kernel;
    const char *svg;
    bool json, batch;
};

extern const struct cli_option calc_options[];

bool calc_args_given(const struct calc_args *args, const char *option);

/* Makes the target of --gpu, or of --cc and --sms. All errors here are OCC_E_INVALID; messages name the
 * option. */
int calc_args_target(const struct calc_args *args, struct calc_target *ret_target, struct occ_error *err);

/* Makes the kernel described by --regs, --smem and --barriers. */
int calc_args_kernel(const struct calc_args *args, struct calc_kernel *ret_kernel, struct occ_error *err);

/* Analyses the launch of `kernel` on `target`. Both must outlive the case. */
int calc_args_case(const struct calc_args *args, const struct calc_target *target,
                   const struct calc_kernel *kernel, struct calc_case *ret_case, struct occ_error *err);

/* ---- forms ---- */

int calc_text(const struct calc_case *c, struct occ_error *err);
/* Prints one line per kernel. */
int calc_text_list(const struct calc_case *cases, size_t n, struct occ_error *err);
/* Prints the whole document. */
int calc_json(const struct calc_case *cases, size_t n, struct occ_error *err);
/* Writes the curves to the file `path`. */
int calc_svg(const struct calc_case *c, const char *path, struct occ_error *err);

/*
 * ---- batch: CSV in, CSV out, row by row, in bounded memory ----
 *
 * Input: a heading line, then one row per line. Commas separate fields; a field that begins with a quote ends
 * with the next quote that is not doubled. A line ends at a line feed (a carriage return before it is
 * ignored), even inside quotes: no input field contains a line feed, and an unclosed quote damages its own
 * row only. Empty lines are ignored. Unknown columns are copied; a name similar to a known one is refused.
 *
 * Output: the input's fields unchanged (formulas get an apostrophe), then the columns of RESULTS in
 * calc_batch.c. A row that cannot be computed has the reason in the last column and no other results; a line
 * in `talk` reports its line number.
 */

#define CALC_BATCH_LINE_BYTES (1U << 20) /* longest line, including its line feed */
#define CALC_BATCH_COLUMNS    64         /* in the input */

struct calc_batch_totals {
    uint64_t rows, bad_rows;
};

/* Computes a batch. Write errors stay in `out`. Returns OCC_E_INVALID for a bad heading or a line over the
 * limit, OCC_E_IO for a read error. Rows before the error are written. */
int calc_batch(FILE *in, FILE *out, FILE *talk, struct calc_batch_totals *ret_totals, struct occ_error *err);

/* occq calc --list. */
extern const struct cli_command cli_calc_list;
