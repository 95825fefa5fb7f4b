/*
 * The parts of bench_pipeline: made-up launches and rings (pipeline_launches.c), the collector and the store
 * in this process (bench_pipeline.c), and the program occtraced (pipeline_daemon.c).
 *
 * Launches: 1000 configurations with Zipf weights, durations around a mean for each, starts slightly out of
 * order like CUPTI's. One thread; failures end the program.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "ring/producer.h"
#include "support/error.h"

#define SHAPES     1000
#define ZIPF_TABLE 65536
#define EPOCH_NS   INT64_C(1700000000000000000)
#define SECOND_NS  INT64_C(1000000000)

struct bench {
    uint64_t launches;
    uint64_t seconds;
    char directory[256];
};

struct generator {
    uint32_t shape[ZIPF_TABLE]; /* each configuration's share of the table is its weight */
    uint32_t mean_ns[SHAPES];
    uint64_t seed, n;
    int64_t time_ns, step_ns;
};

_Noreturn void die(const char *what, const char *why);
void check(int status, const struct occ_error *err, const char *what);
int64_t clock_ns(clockid_t clock);
void name_database(const struct bench *b, const char *name, char path[320]);

void make_generator(struct generator *g, uint64_t launches_per_second);
struct occ_ring_launch make_launch(struct generator *g);
/* Makes a ring; its log has the kernels' names and configurations. */
void make_ring(struct occ_ring_producer *ring, uint32_t slots);

/* Prints one member of the JSON object, like report_owners(). */
void report_paced(const struct bench *b);
/* `base_ns`: CPU time per launch of the collector in this process. */
void report_owners(const struct bench *b, double base_ns);
