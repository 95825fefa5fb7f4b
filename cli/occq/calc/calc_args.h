/*
 * The calculator's arguments: options, or a row of a batch, and the launch that they describe. Pure; any
 * thread.
 */
#ifndef OCC_CALC_CALC_ARGS_H
#define OCC_CALC_CALC_ARGS_H

#include "calc.h"
#include "cli/options.h"

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

#endif
