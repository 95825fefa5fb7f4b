/*
 * Measures the helper thread's cost of a record: nanoseconds per activity record, from CUPTI's buffer to the
 * ring, in the helper's own code (occ_drain_all): step, parse, validate, intern, push; with and without the
 * zeroing of the buffer.
 *
 * Records are CUPTI 13.0's (216 bytes): 1000 launch configurations of 125 kernels with names of 24 to 280
 * bytes, drawn by Zipf's law (exponent 1). Buffers have the pool's size and exceed the processor's caches
 * together, as after writes of CUPTI's thread. The ring is drained between rounds, untimed. Prints one JSON
 * object.
 */
#include "bench_report.h"
#include "injector/drain.h"
#include "ring/consumer.h"

#include <math.h>

#define KERNELS   125u
#define CONFIGS   1000u
#define BUFFERS   192u
#define ROUNDS    21
#define TARGET_NS 60.0
#define RECORD    OCC_CUPTI_KERNEL_BYTES_13

static char names[KERNELS][300];
static double cumulative[CONFIGS];

/* xorshift64: the same records in every run */
static uint64_t random_bits(void)
{
    static uint64_t state = UINT64_C(88172645463325252);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void make_names_and_law(void)
{
    for (uint32_t k = 0; k < KERNELS; k++) {
        int n = snprintf(names[k], sizeof names[k], "_ZN7cutlass6Kernel%04uEv", k);
        size_t more = k * 2;
        memset(names[k] + n, 'x', more);
        names[k][(size_t)n + more] = '\0';
    }
    double sum = 0;
    for (uint32_t s = 0; s < CONFIGS; s++)
        cumulative[s] = sum += 1.0 / (s + 1);
}

static uint32_t draw_config(void)
{
    double at = (double)(random_bits() >> 11) / 9007199254740992.0 * cumulative[CONFIGS - 1];
    uint32_t low = 0, high = CONFIGS - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (cumulative[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct occ_cupti_kernel make_record(uint64_t n)
{
    uint32_t config = draw_config();
    return (struct occ_cupti_kernel){
        .kind = OCC_CUPTI_KIND_CONCURRENT_KERNEL,
        .registers_per_thread = (uint16_t)(32 + config % 100),
        .start_ns = UINT64_C(1700000000000000000) + n * 5000,
        .end_ns = UINT64_C(1700000000000000000) + n * 5000 + config,
        .context = 1,
        .stream = 7,
        .grid = {1 + config / KERNELS * 16, 1, 1},
        .block = {128, 1, 1},
        .dynamic_smem_bytes = config % 7 * 1024,
        .correlation = (uint32_t)n,
        .name = names[config % KERNELS],
        .smem_executed_bytes = 65536,
        .max_active_clusters = 1,
    };
}

/* Stands for cuptiActivityGetNextRecord(), at a similar cost. */
static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD : buffer;
    if ((size_t)(next - buffer) + RECORD > valid_bytes)
        return OCC_CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return OCC_CUPTI_SUCCESS;
}

static void fill_buffers(struct occ_pool *pool)
{
    static uint64_t n;
    for (uint32_t b = 0; b < BUFFERS; b++) {
        size_t bytes, at = 0;
        pool->threads[0].bytes = (uint32_t)pool->bytes; /* the size for a thread with many launches */
        uint8_t *buffer = occ_pool_take(pool, 0, 0, &bytes);
        for (; at + RECORD <= bytes; at += RECORD) {
            struct occ_cupti_kernel record = make_record(n++);
            memcpy(buffer + at, &record, RECORD);
        }
        if (!occ_pool_complete(pool, buffer, at, 0))
            exit(1);
    }
}

static void empty_ring(struct occ_ring_consumer *c)
{
    static struct occ_ring_launch launches[4096];
    const struct occ_log_record *record;
    size_t n;
    while (occ_ring_next_log_record(c, &record) == OCC_RING_OK)
        ;
    while (occ_ring_read(c, launches, 4096, &n) == OCC_RING_OK)
        ;
    occ_ring_release(c, occ_ring_position(c));
}

static double measure(struct occ_drain *drain, struct occ_ring_consumer *c, bool zero)
{
    double ns[ROUNDS];
    drain->pool->zero = zero;
    for (int round = -1; round < ROUNDS; round++) {
        fill_buffers(drain->pool);
        uint64_t before = drain->records;
        double began = bench_now_ns();
        occ_drain_all(drain);
        double spent = bench_now_ns() - began;
        if (round >= 0)
            ns[round] = spent / (double)(drain->records - before);
        empty_ring(c);
    }
    return bench_median(ns, ROUNDS);
}

int main(void)
{
    struct occ_ring_producer ring;
    struct occ_ring_consumer *consumer = NULL;
    struct occ_pool pool;
    struct occ_drain drain;
    const struct occ_tracing tracing = {.cupti.version = 130001, .call.get_next_record = next_record};
    const struct occ_exact_client exact = {0};
    make_names_and_law();
    if (occ_ring_create(&ring, OCC_RING_DEFAULT_SLOTS, OCC_RING_DEFAULT_LOG_BYTES) != 0 ||
        occ_ring_attach(dup(ring.fd), 0, &consumer, NULL) != 0 ||
        occ_pool_init(&pool, BUFFERS, OCC_POOL_DEFAULT_BYTES) != 0 ||
        occ_drain_init(&drain, &ring, &tracing, &pool, &exact) != 0) {
        (void)fprintf(stderr, "bench_injector: set-up failed\n");
        return 1;
    }
    double bare_ns = measure(&drain, consumer, false);
    double whole_ns = measure(&drain, consumer, true);
    (void)printf("{\n  \"name\": \"injector\",\n  \"record_ns\": %.1f, \"record_ns_target\": %.0f,\n",
                 bare_ns, TARGET_NS);
    (void)printf("  \"record_and_zeroing_ns\": %.1f,\n", whole_ns);
    (void)printf(
        "  \"record_bytes\": %zu, \"configs\": %u, \"kernels\": %u, \"records\": %llu, \"lost\": %llu,\n",
        RECORD, drain.intern.config_count, drain.intern.kernel_count, (unsigned long long)drain.records,
        (unsigned long long)occ_ring_lost(consumer, OCC_LOSS_RING_FULL));
    bench_print_machine();
    (void)printf("\n}\n");
    occ_ring_detach(consumer);
    return 0;
}
