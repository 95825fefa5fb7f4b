/* Sums of meter.c, written by meter_text.c. */
#pragma once

#include "meter.h"
#include "slots.h"
#include "support/map.h"

#define OCC_METER_GPUS        32 /* the index of "(other)", too */
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
    struct occ_meter_sums sums, minutes[2]; /* sums: now; minutes: at the last two ends of minutes */
    int64_t last_ns;
    int64_t counted_ns; /* held time before is counted; of "(other)": of all GPUs without an entry */
};

#define OCC_METER_JOBS 8

/* Launches of a job without an entry, and of no job. */
enum { OCC_METER_OTHER_JOB = OCC_METER_JOBS, OCC_METER_NO_JOB, OCC_METER_JOB_SUMS };

struct occ_meter_kernel {
    char name[64];
    double wasted, hour; /* wasted: while the kernel was shown; hour: in this hour */
    bool is_shown;
    double job_wasted_ns[OCC_METER_JOB_SUMS]; /* the part of `wasted` that a job has, in warp-nanoseconds */
};

/* Labels of a job: a Slurm job with its account and partition, or a namespace. */
enum {
    OCC_METER_JOB_SLURM,
    OCC_METER_JOB_NAMESPACE,
    OCC_METER_JOB_ACCOUNT,
    OCC_METER_JOB_PARTITION,
    OCC_METER_JOB_TRUST,
    OCC_METER_JOB_LABELS
};

/* Parts of held time. X(NAME, word) */
#define OCC_METER_HELD(X)                                                                                    \
    X(IDLE, "idle")                                                                                          \
    X(WAITING, "waiting")                                                                                    \
    X(COMMUNICATION, "communication") X(LOST, "lost") X(USED, "used") X(UNKNOWN, "unknown")
#define OCC_METER_HELD_ENUMERATOR(name, word) OCC_METER_HELD_##name,
enum occ_meter_part { OCC_METER_HELD(OCC_METER_HELD_ENUMERATOR) OCC_METER_PARTS };
#define OCC_METER_MODELS 4 /* GPU models with a series of held time; other models: "(other)" */
/* Further runs on GPUs hold no time. An owner has at most as many as are free. */
#define OCC_METER_HOLDERS_MAX 4096

/* A run on a GPU. Times are since the epoch. */
struct occ_meter_holder {
    uint8_t run[16], gpu[16];
    uint64_t owner;
    size_t job, model; /* model: an index of `models` */
    bool has_ended;
    uint64_t lost;                        /* lost launches of the run since its start */
    int64_t seen_ns;                      /* last arrival of launches; 0: none */
    int64_t lost_from_ns, lost_until_ns;  /* the last time in which launches were lost */
    int64_t first_ns, last_ns, others_ns; /* others_ns: last end of a kernel other than communication */
    int64_t counted_ns;                   /* time before is counted */
    int64_t latest_ns;                    /* a launch with a later end is of another clock */
    struct occ_span hole;                 /* the last one without recording; 0, 0: none */
    int64_t unknown_ns;                   /* time since last_ns counted as unknown */
    double part_ns[OCC_METER_PARTS];      /* of its launches, not divided yet */
};

struct occ_meter_job {
    double held_s[OCC_METER_MODELS + 1][OCC_METER_PARTS];
    char labels[OCC_METER_JOB_LABELS][OCC_METER_LABEL_BYTES];
    double launches, busy_ns, capacity_ns, wasted_ns; /* capacity_ns, wasted_ns: warp-nanoseconds */
};

/* X(label, member of struct occ_run) */
#define OCC_METER_RUN_LABELS(X)                                                                              \
    X("user", user)                                                                                          \
    X("slurm_job", job.slurm_job)                                                                            \
    X("slurm_account", job.slurm_account)                                                                    \
    X("slurm_partition", job.slurm_partition)                                                                \
    X("namespace", job.k8s_namespace)                                                                        \
    X("pod", job.k8s_pod)                                                                                    \
    X("container", job.container)                                                                            \
    X("job_trust", job.trust)
#define OCC_METER_ONE(label, member) +1
enum { OCC_METER_N_RUN_LABELS = 0 OCC_METER_RUN_LABELS(OCC_METER_ONE) };

#define OCC_METER_RUN_GPUS  16 /* GPUs of a program that have series */
#define OCC_METER_RUNS_GPUS 64 /* the same of all programs */

struct occ_meter_run {
    uint8_t uuid[16], gpus[OCC_METER_RUN_GPUS][16]; /* in the order of their first launches */
    size_t n_gpus;
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
    struct occ_slot gpu_slots[OCC_METER_GPUS];
    struct occ_meter_kernel kernels[OCC_METER_KERNELS]; /* the first is "(other)" */
    size_t n_kernels, n_shown;
    struct occ_meter_job jobs[OCC_METER_JOB_SUMS];
    struct occ_slot job_slots[OCC_METER_JOBS];
    int64_t minute_ns, hour_ns; /* end of the current minute and hour */
    struct occ_meter_run *runs;
    struct occ_slot *run_slots;
    struct occ_meter_holder *holders;
    size_t n_holders, holders_allocated;
    char models[OCC_METER_MODELS][64];
    struct occ_slot model_slots[OCC_METER_MODELS];
    int64_t divided_ns, ahead_ns; /* end of the last division of held time; wall clock minus monotonic one */
    int64_t set_ns;               /* the clock was set: no time before counts */
};

/* ---- meter_held.c ---- */

/* Returns the run on its GPU, until the next call; NULL: no memory, too many, or there is no such GPU. */
struct occ_meter_holder *occ_meter_hold(struct occ_meter *meter, const struct occ_meter_launches *launches,
                                        size_t job, const char *model);
/* Time of a GPU before the result is counted, by the runs that hold the GPU; 0: there are none. */
int64_t occ_meter_counted_ns(const struct occ_meter *meter, const uint8_t gpu[16]);
/* `used`: occupancy by the model; NaN: the model does not know the kernel. `holes`: of the run, with the
 * holder's place. */
void occ_meter_hold_launch(struct occ_meter_holder *holder, const struct occ_store_launch *launch,
                           double used, bool is_communication, struct occ_holes *holes);
void occ_meter_end_holders(struct occ_meter *meter, const uint8_t run[16]);
/* Keeps the entries of jobs with programs that hold GPUs, also without launches. */
void occ_meter_keep_jobs(struct occ_meter *meter, int64_t now_ns);
/* Ends series of models whose last program ended at `left_ns` or before. Times are monotonic. */
void occ_meter_expire_models(struct occ_meter *meter, int64_t now_ns, int64_t left_ns);
/* Another job gets the entry: time held by this job's runs counts for "(other)" from now on. */
void occ_meter_leave_job(struct occ_meter *meter, size_t job);
/* Counts held time until 5 s ago, at most once a second. `now_ns`: monotonic. */
void occ_meter_divide_held(struct occ_meter *meter, int64_t now_ns);

/* ---- meter_jobs.c ---- */

/* The run's job: an index of `jobs`. A new job takes an entry, also of another owner (slots.h);
 * OCC_METER_OTHER_JOB: `owner` has its share. */
size_t occ_meter_find_job(struct occ_meter *meter, const struct occ_run *run, uint64_t owner, int64_t now_ns);
/* Frees entries of jobs without a launch, or a run that holds a GPU, since `used_ns`. */
void occ_meter_expire_jobs(struct occ_meter *meter, int64_t used_ns);
void occ_meter_write_jobs(const struct occ_meter *meter, const struct occ_exposition *exposition);

/* ---- meter.c ---- */

/* Adds new launches to the sums; ends minutes, hours and series that are over. */
void occ_meter_roll_over(struct occ_meter *meter, int64_t now_ns);
