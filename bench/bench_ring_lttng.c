/*
 * LTTng-UST's side of bench_ring: prints nanoseconds per tracepoint, the median of several rounds.
 * bench_ring_lttng.sh starts a recording session and runs this program.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_ring_tp.h"

#include "bench_report.h"

#define BATCH  65536u
#define ROUNDS 15

static void trace_batch(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        lttng_ust_tracepoint(occtrace_bench, launch, UINT64_C(1700000000000000000) + i * UINT64_C(1000),
                             i & 1023, i & 7, 0, i & 3, i);
}

int main(void)
{
    const struct timespec pause = {0, 50000000}; /* time for the consumer to empty the buffers */
    double ns[ROUNDS];
    if (!lttng_ust_tracepoint_enabled(occtrace_bench, launch)) {
        (void)printf("the tracepoint is not enabled\n");
        return 1;
    }
    for (int round = -2; round < ROUNDS; round++) {
        double began = bench_now_ns();
        trace_batch();
        double spent = bench_now_ns() - began;
        if (round >= 0)
            ns[round] = spent / BATCH;
        (void)nanosleep(&pause, NULL);
    }
    (void)printf("%.2f\n", bench_median(ns, ROUNDS));
    return 0;
}
