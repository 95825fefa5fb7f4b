/* The GPU time of two sides for the same work, with idle time, and the part of it that changed most. One
 * thread. */
#pragma once

#include "answer/answer.h"
#include "compare/gpu_time.h"
#include "support/json.h"

struct sides;

struct sides_gpu_time {
    struct occ_overview overview[DIFF_SIDES]; /* window_s 0: the side's GPU time is not known */
    double runs[DIFF_SIDES];
    double work;                   /* of B / A's; NaN: not known */
    bool is_known;                 /* both sides have GPU time */
    bool by_runs;                  /* the error is from runs; false: from slices of each side */
    struct diff_gpu_change change; /* NaN: not known */
};

/* Asks the histories of the compared sides; of B alone without a side A. GPU time is not known of sides that
 * choose kernels, of a warehouse, of replays, and of newest runs among runs of the other side. Free with
 * sides_gpu_time_free(), also after a failure. */
int sides_gpu_time_ask(const struct sides *sides, struct sides_gpu_time *ret_time, struct occ_error *err);
void sides_gpu_time_free(struct sides_gpu_time *time);

/* Formats "+100.0% for the same work (95 %: ...); 480 ms -> 960 ms; busy 97.5% -> 48.8%; grew most: longer
 * pauses 11.2 ms -> 491 ms"; "": not known. */
enum { SIDES_GPU_TIME_BYTES = 512 };
const char *sides_gpu_time_text(const struct sides_gpu_time *time, double floor,
                                char text[SIDES_GPU_TIME_BYTES]);
/* Writes the object `key`, with both sides, into the open object; null: not known. */
void sides_gpu_time_json(struct occ_json *json, const char *key, const struct sides_gpu_time *time,
                         double floor);

/* The part of the GPU time that shrank most, if the whole shrank by SIDES_GPU_PART_MIN; else the part that
 * grew most. */
struct sides_gpu_part {
    const char *word, *text;    /* NULL: no part changed by SIDES_GPU_PART_MIN of A's GPU time */
    double seconds[DIFF_SIDES]; /* for the work of a run of A */
    bool shrank, is_lost;       /* is_lost: time in kernels with empty warp slots, by cause */
};
#define SIDES_GPU_PART_MIN 0.01
struct sides_gpu_part sides_gpu_time_part(const struct sides_gpu_time *time);
/* Returns the side's GPU time in seconds for the work of a run of A; of a run, if the work is not known. */
double sides_gpu_time_seconds(const struct sides_gpu_time *time, uint32_t side);
