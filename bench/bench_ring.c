/*
 * Measures the producer's cost of a launch: nanoseconds per occ_ring_push().
 *
 *   fill          into a ring with room: the cost in the traced program's helper thread
 *   concurrent    while another process drains, polling every millisecond; drops of a full ring are reported
 *   system calls  a child pushes under seccomp's strict mode, which kills on every system call but read,
 *                 write, exit and sigreturn
 *   lttng         the same fields through an LTTng-UST tracepoint, in a session on this machine, if LTTng
 *                 is installed (bench_ring_lttng.sh)
 *
 * Prints one JSON object. The rings are drained between rounds, untimed.
 */
#include "bench_report.h"
#include "ring/consumer.h"
#include "ring/producer.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SLOTS         OCC_RING_DEFAULT_SLOTS
#define BATCH         (SLOTS / 2)
#define ROUNDS        41
#define CONCURRENT    20000000u
#define TARGET_NS     10.0
#define TARGET_FACTOR 10.0

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_ring: %s failed\n", what);
    exit(1);
}

static void make_ring(struct occ_ring_producer *p)
{
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE};
    struct occ_record_kernel kernel = {
        .record.type = OCC_RECORD_KERNEL, .name_bytes = 2, .name_hash = occ_fnv1a("k", 1)};
    struct occ_record_config config = {
        .record.type = OCC_RECORD_CONFIG, .grid = {1, 1, 1}, .block = {32, 1, 1}, .cluster = {1, 1, 1}};
    if (occ_ring_create(p, SLOTS, 65536) != 0 || !occ_ring_log(p, &device.record, sizeof device, NULL, 0) ||
        !occ_ring_log(p, &kernel.record, sizeof kernel, "k", 2) ||
        !occ_ring_log(p, &config.record, sizeof config, NULL, 0))
        die("making a ring");
}

static struct occ_ring_consumer *attach(const struct occ_ring_producer *p)
{
    struct occ_ring_consumer *c = NULL;
    const struct occ_log_record *record;
    if (occ_ring_attach(dup(p->fd), 0, &c, NULL) != 0)
        die("attaching");
    while (occ_ring_next_log_record(c, &record) == OCC_RING_OK)
        ;
    return c;
}

static uint64_t drain(struct occ_ring_consumer *c)
{
    static struct occ_ring_launch launches[4096];
    uint64_t total = 0;
    size_t n;
    while (occ_ring_read(c, launches, 4096, &n) == OCC_RING_OK)
        total += n;
    occ_ring_release(c, occ_ring_position(c));
    return total;
}

static void push_batch(struct occ_ring_producer *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct occ_ring_launch launch = {.start_ns = UINT64_C(1700000000000000000) + i * UINT64_C(1000),
                                         .duration_ns = i & 1023,
                                         .graph_node = i & 7,
                                         .stream = i & 3,
                                         .correlation = i};
        (void)occ_ring_push(p, &launch);
    }
}

static double measure_fill(void)
{
    struct occ_ring_producer p;
    double ns[ROUNDS];
    make_ring(&p);
    struct occ_ring_consumer *c = attach(&p);
    for (int round = -2; round < ROUNDS; round++) { /* the first two rounds touch every page */
        double began = bench_now_ns();
        push_batch(&p, BATCH);
        double spent = bench_now_ns() - began;
        if (drain(c) != BATCH)
            die("draining");
        if (round >= 0)
            ns[round] = spent / BATCH;
    }
    occ_ring_detach(c);
    occ_ring_destroy(&p);
    return bench_median(ns, ROUNDS);
}

static void drain_until_closed(struct occ_ring_consumer *c)
{
    const struct timespec millisecond = {0, 1000000};
    while (!occ_ring_is_closed(c)) {
        (void)drain(c);
        (void)nanosleep(&millisecond, NULL);
    }
    _exit(0);
}

static double measure_concurrent(uint64_t *ret_dropped)
{
    struct occ_ring_producer p;
    make_ring(&p);
    struct occ_ring_consumer *c = attach(&p);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        drain_until_closed(c);
    double began = bench_now_ns();
    push_batch(&p, CONCURRENT);
    double spent = bench_now_ns() - began;
    occ_ring_close(&p);
    (void)waitpid(child, NULL, 0);
    *ret_dropped = occ_ring_lost(c, OCC_LOSS_RING_FULL);
    occ_ring_detach(c);
    occ_ring_destroy(&p);
    return spent / CONCURRENT;
}

/* True if a million pushes and a CONFIG record survive seccomp's strict mode. */
static bool makes_no_system_call(void)
{
    struct occ_ring_producer p;
    make_ring(&p);
    pid_t child = fork();
    if (child == 0) {
        struct occ_record_config config = {.record.type = OCC_RECORD_CONFIG, .id = 1};
        occ_ring_expect(&p, SLOTS); /* as the guest does before each buffer of records */
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
            _exit(2);
        push_batch(&p, 1000000);
        long code = occ_ring_log(&p, &config.record, sizeof config, NULL, 0) ? 0 : 1;
        (void)syscall(SYS_exit, code);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    occ_ring_destroy(&p);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns nanoseconds per event, or a negative number and the reason. */
static double measure_lttng(char *reason, size_t size)
{
    double ns = -1;
#ifdef OCC_BENCH_LTTNG
    FILE *script = popen(OCC_BENCH_LTTNG, "r");
    char line[200] = "";
    if (!script || !fgets(line, sizeof line, script) || sscanf(line, "%lf", &ns) != 1) {
        line[strcspn(line, "\n\"\\")] = '\0';
        (void)snprintf(reason, size, "%s", line[0] ? line : "the session did not start");
        ns = -1;
    }
    if (script)
        (void)pclose(script);
#else
    (void)snprintf(reason, size, "liblttng-ust was not found when this was built");
#endif
    return ns;
}

static void print_lttng(double push_ns)
{
    char reason[200] = "";
    double lttng_ns = measure_lttng(reason, sizeof reason);
    if (lttng_ns < 0) {
        (void)printf("  \"lttng_ns_per_event\": null, \"lttng_missing\": \"%s\",\n", reason);
        return;
    }
    (void)printf("  \"lttng_ns_per_event\": %.1f, \"faster_than_lttng_by\": %.1f, "
                 "\"faster_than_lttng_target\": %.0f,\n",
                 lttng_ns, lttng_ns / push_ns, TARGET_FACTOR);
}

int main(void)
{
    uint64_t dropped = 0;
    double push_ns = measure_fill();
    double concurrent_ns = measure_concurrent(&dropped);
    (void)printf(
        "{\n  \"name\": \"ring\",\n  \"push_ns_per_launch\": %.2f, \"push_ns_per_launch_target\": %.0f,\n",
        push_ns, TARGET_NS);
    (void)printf("  \"push_beside_consumer_ns_per_launch\": %.2f, \"dropped_ratio\": %.4f,\n", concurrent_ns,
                 (double)dropped / CONCURRENT);
    (void)printf("  \"no_system_call\": %s,\n", makes_no_system_call() ? "true" : "false");
    (void)fflush(stdout);
    print_lttng(push_ns);
    bench_print_machine();
    (void)printf("\n}\n");
    return 0;
}
