/*
 * Makes or extends a history with launches of the last seconds, for the tests of occq live and its figures.
 *
 *   live_history PATH [kernels=N] [launches=N] [heavy=I] [age=S] [lost=N] [names=hostile|long] [measured]
 *                [gpus=N] [runs=N] [stream=S] [rate=N] [end]
 *
 * Kernel i of N has `launches` launches of N - i microseconds, and kernel `heavy` launches that last a
 * thousand times as long; they end `age` seconds ago. runs: N runs have these launches. stream: instead
 * `rate` launches per second, all kernels in turn, for S seconds from now on, with a commit per second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define SECOND INT64_C(1000000000)
enum { KERNELS_MAX = 100000, GPUS_MAX = 64, RUNS_MAX = 65536, BATCH = 100000, NAME_BYTES = 2200 };

static struct {
    long long kernels, launches, heavy, age, lost, gpus, runs, stream, rate;
    const char *names;
    bool measured, end;
} args = {.kernels = 3, .launches = 10, .heavy = -1, .gpus = 1, .runs = 1, .rate = 100000, .names = ""};

static struct occ_store *store;
static struct occ_error err;
static int64_t run, devices[GPUS_MAX], configs[KERNELS_MAX];

static void check(int rc)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "live_history: %s\n", err.message);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static void name_kernel(long long i, char name[NAME_BYTES])
{
    if (strcmp(args.names, "hostile") == 0)
        (void)snprintf(name, NAME_BYTES, "k%lld\033[31m\033]0;owned\007\r\n\t\xc2\x9b%c%c</script>", i, 0xff,
                       0xfe);
    else if (strcmp(args.names, "long") == 0)
        (void)snprintf(name, NAME_BYTES, "%0*d_k%lld", 2000, 0, i);
    else
        (void)snprintf(name, NAME_BYTES, "kernel_%lld", i);
}

static void put_kernel(long long i)
{
    char name[NAME_BYTES];
    int64_t kernel = 0;
    name_kernel(i, name);
    check(occ_store_put_kernel(store, name, (uint64_t)i + 1, &kernel, &err));
    struct occ_launch_config config = {.kernel = kernel, .device = devices[i % args.gpus]};
    for (int d = 0; d < 3; d++)
        config.launch.grid[d] = config.launch.block[d] = 1;
    config.launch.grid[0] = 1000 + (uint32_t)(i % 7);
    config.launch.block[0] = 32u * (uint32_t)(1 + i % 8);
    config.launch.registers_per_thread = 32u + (uint32_t)(i % 7) * 16u;
    check(occ_store_put_config(store, &config, &configs[i], &err));
}

static void put_names(void)
{
    for (long long i = 0; i < args.gpus; i++) {
        struct occ_store_device device = {
            .uuid = {(uint8_t)(i + 1)}, .number = (uint64_t)i, .simulated = true};
        device.name = "NVIDIA H100 (simulated)";
        device.limits.cc = 90;
        device.limits.sm_count = 132;
        check(occ_store_put_device(store, &device, &devices[i], &err));
    }
    for (long long i = 0; i < args.kernels; i++)
        put_kernel(i);
}

static void put_run(long long i, int64_t start_ns)
{
    const struct occ_run put = {.uuid = {7, (uint8_t)i, (uint8_t)(i >> 8)},
                                .pid = 1,
                                .start_ns = start_ns,
                                .hostname = "node",
                                .exe = "/bin/train"};
    check(occ_store_put_run(store, &put, &run, &err));
    if (args.lost)
        check(
            occ_store_put_losses(store, run, &(struct occ_loss){"ring_full", (uint64_t)args.lost}, 1, &err));
    const struct occ_cost_total costs[] = {{"helper_cpu_ns", 2}, {"process_cpu_ns", 100}};
    check(occ_store_put_costs(store, run, costs, 2, &err));
}

static void append(long long kernel, const struct occ_store_launch *launches, size_t n)
{
    check(occ_store_append(store, run, devices[kernel % args.gpus], launches, n, &err));
}

static void put_batch(int64_t end_ns)
{
    for (long long i = 0; i < args.kernels; i++) {
        uint64_t duration = 1000 * (uint64_t)(args.kernels - i) * (i == args.heavy ? 1000 : 1);
        struct occ_measured_sums sums = {.direct = (uint64_t)args.launches};
        for (long long k = 0; k < args.launches; k++)
            append(i,
                   &(struct occ_store_launch){.start_ns = end_ns - (int64_t)duration - k * 1000,
                                              .duration_ns = duration,
                                              .config = (uint32_t)configs[i]},
                   1);
        for (int v = OCC_MEASURED_achieved; args.measured && v <= OCC_MEASURED_elapsed; v++) {
            sums.ns[v] = (double)duration * (double)args.launches;
            sums.sum[v] = sums.ns[v] / (v == OCC_MEASURED_achieved ? 2 : 4);
        }
        if (args.measured)
            check(occ_store_add_measured(store, end_ns / (60 * SECOND), run, (uint32_t)configs[i], &sums,
                                         &err));
    }
}

static void put_batches(int64_t end_ns)
{
    enum { RUNS_OF_COMMIT = 1000 };
    put_batch(end_ns);
    for (long long i = 1; i < args.runs; i++) {
        put_run(i, end_ns);
        put_batch(end_ns);
        if (i % RUNS_OF_COMMIT == 0)
            check(occ_store_commit(store, &err));
    }
    check(occ_store_commit(store, &err));
}

/* Stores one second of launches, all kernels in turn, on the first GPU. */
static void put_second(int64_t from_ns)
{
    static struct occ_store_launch launches[BATCH];
    for (long long done = 0; done < args.rate;) {
        size_t n = 0;
        for (; n < BATCH && done < args.rate; n++, done++)
            launches[n] = (struct occ_store_launch){.start_ns = from_ns + done * SECOND / args.rate,
                                                    .duration_ns = 3000 + (uint64_t)(done * 7919 % 4000),
                                                    .stream = 7,
                                                    .correlation = (uint32_t)done,
                                                    .config = (uint32_t)configs[done % args.kernels]};
        append(0, launches, n);
    }
    check(occ_store_commit(store, &err));
}

static void stream(void)
{
    int64_t next_ns = now_ns();
    for (long long second = 0; second < args.stream; second++, next_ns += SECOND) {
        int64_t wait_ns = next_ns + SECOND - now_ns();
        if (wait_ns > 0)
            (void)usleep((useconds_t)(wait_ns / 1000));
        put_second(next_ns);
    }
}

static void read_argument(const char *text)
{
    const struct {
        const char *name;
        long long *number;
    } numbers[] = {{"kernels=", &args.kernels}, {"launches=", &args.launches}, {"heavy=", &args.heavy},
                   {"age=", &args.age},         {"lost=", &args.lost},         {"gpus=", &args.gpus},
                   {"runs=", &args.runs},       {"stream=", &args.stream},     {"rate=", &args.rate}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strncmp(text, numbers[i].name, strlen(numbers[i].name)) == 0)
            *numbers[i].number = strtoll(text + strlen(numbers[i].name), NULL, 10);
    if (strncmp(text, "names=", 6) == 0)
        args.names = text + 6;
    args.measured |= strcmp(text, "measured") == 0;
    args.end |= strcmp(text, "end") == 0;
}

int main(int argc, char **argv)
{
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    if (argc < 2)
        return 2;
    for (int i = 2; i < argc; i++)
        read_argument(argv[i]);
    if (args.kernels < 1 || args.kernels > KERNELS_MAX || args.gpus < 1 || args.gpus > GPUS_MAX ||
        args.runs < 1 || args.runs > RUNS_MAX || args.rate < 1)
        return 2;
    int64_t end_ns = now_ns() - args.age * SECOND;
    check(occ_store_open(argv[1], &options, &store, &err));
    put_names();
    put_run(0, end_ns);
    if (args.stream)
        stream();
    else
        put_batches(end_ns);
    if (args.end)
        check(occ_store_finish(store, &err));
    occ_store_close(store);
    return 0;
}
