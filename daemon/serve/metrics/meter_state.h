/* Sums of meter.c, written by meter_text.c. */
#pragma once

#include "meter.h"
#include "places.h"
#include "support/map.h"

#define OCC_METER_GPUS        32
#define OCC_METER_KERNELS     1024
#define OCC_METER_LABEL_BYTES 128

struct occ_meter_sums {
    double launches, busy_s, capacity, wasted, theoretical,
        expected_high; /* capacity, wasted, theoretical, expected_high: warp-seconds */
    double cause[OCC_CAUSE_COUNT];
};

struct occ_meter_gpu {
    uint8_t uuid[16];
    char model[64];
    struct occ_meter_sums sums, minutes[2]; /* current; at the last two ends of minutes */
    int64_t last_ns;
};

struct occ_meter_kernel {
    char name[64];
    double wasted, hour; /* while it was shown; in this hour */
    bool is_shown;
};

/* X(label, member of struct occ_run) */
#define OCC_METER_RUN_LABELS(X)                                                                              \
    X("user", user)                                                                                          \
    X("slurm_job", job.slurm_job)                                                                            \
    X("namespace", job.k8s_namespace)                                                                        \
    X("pod", job.k8s_pod)                                                                                    \
    X("container", job.container)                                                                            \
    X("job_trust", job.trust)
#define OCC_METER_ONE(label, member) +1
enum { OCC_METER_N_RUN_LABELS = 0 OCC_METER_RUN_LABELS(OCC_METER_ONE) };

struct occ_meter_run {
    uint8_t uuid[16], gpu[16];
    char labels[OCC_METER_N_RUN_LABELS][OCC_METER_LABEL_BYTES];
    double wasted;
};

struct occ_meter_config;

struct occ_meter {
    struct occ_meter_options options;
    struct occ_map index; /* history << 32 | config -> configs */
    struct occ_meter_config *configs;
    size_t n_configs, allocated;
    struct occ_meter_gpu gpus[OCC_METER_GPUS + 1]; /* the last is "(other)" */
    struct occ_place gpu_places[OCC_METER_GPUS];
    struct occ_meter_kernel kernels[OCC_METER_KERNELS]; /* the first is "(other)" */
    size_t n_kernels, n_shown;
    int64_t minute_ns, hour_ns; /* end of the current minute and hour */
    struct occ_meter_run *runs;
    struct occ_place *run_places;
};

/* Adds new launches to the sums; ends minutes, hours and series that are over. */
void occ_meter_roll_over(struct occ_meter *meter, int64_t now_ns);
