/* Steps of an overview. Internal to answer/. One thread. */
#pragma once

#include "answer.h"
#include "support/arena.h"

/* All launches of an overview on one device, from rollups. */
struct occ_device_sums {
    int64_t device;
    double duration_ns; /* sum of whole durations of launches that start in the question's time */
    uint64_t launches;
};

/* Sets the times of the `n` rows of `gpus`, and the overview's read_ratio, is_busy_most, lost and lost_ratio.
 * The rows' `gpu` and the overview's launches are set before; sums[i] belongs to gpus[i]. Times stay 0 if all
 * runs are replays. Programs that share a GPU at the same time share its time: their busy times are added up
 * to at most the time of the GPU. Returns 0 or OCC_E_NO_MEMORY. */
int occ_gpu_totals_fill(const struct occ_gpu_estimates *estimates, const struct occ_device_sums *sums,
                        struct occ_gpu_totals *gpus, size_t n, struct occ_overview *overview);

/* Returns the kernel's time without the used part, in seconds. `used` must be known. */
double occ_lost_s(const struct occ_kernel_totals *kernel);

/* Sets the candidates and is_throughput_bound of `kernel` from its launch configuration `row`, which is
 * analysed. No candidates if throughput limits the kernel. They belong to `arena`. Returns false without
 * memory. */
bool occ_candidates_set(const struct occ_config_row *row, struct occ_kernel_totals *kernel,
                        struct occ_arena *arena);

/* Kernels with the same index in both lists. Candidates belong to `arena`. */
struct occ_candidate_rows {
    const struct occ_answer_kernel *texts;
    struct occ_kernel_totals *kernels;
    size_t n;
    struct occ_arena *arena;
};
/* Sets the candidates of at most OCC_CANDIDATES_CONFIGS rows: the rows with the largest losses, without
 * communication. */
#define OCC_CANDIDATES_CONFIGS 32
int occ_candidates_add(struct occ_store *store, const struct occ_filter *filter,
                       const struct occ_candidate_rows *rows, struct occ_error *err);
