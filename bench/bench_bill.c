/*
 * The bill of a history with many runs: 8 GPUs, on each of which about four programs run at any time, and
 * energies of each second.
 *
 *   bench_bill [RUNS]    default: 10000; also a half, a quarter and an eighth of it
 *
 * A time per run that does not grow with the number of runs means that the bill is not quadratic. The sum of
 * the bill is checked: the price of the time in which any run holds each GPU, which no run leaves here.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "answer/bill.h"
#include "bench_report.h"

#define SECOND INT64_C(1000000000)
#define BEGIN  (INT64_C(1700000000) * SECOND)

enum { GPUS = 8, KERNELS = 10, LAUNCHES = 50, OVERLAP = 4, TIMES = 4, STEP_S = 10 };

static struct occ_error err;

static void check(int rc)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "bench_bill: %s\n", err.message);
    exit(2);
}

struct things {
    int64_t devices[GPUS], configs[GPUS][KERNELS];
};

static void put_things(struct occ_store *store, struct things *t)
{
    int64_t kernels[KERNELS];
    for (int i = 0; i < KERNELS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "_Z7kernel%dv", i);
        check(occ_store_put_kernel(store, name, (uint64_t)i + 1, &kernels[i], &err));
    }
    for (uint8_t g = 0; g < GPUS; g++) {
        const struct occ_store_device device = {
            .uuid = {0xb1, g}, .name = "NVIDIA H100 80GB HBM3", .limits = {.cc = 90, .sm_count = 132}};
        check(occ_store_put_device(store, &device, &t->devices[g], &err));
        for (int i = 0; i < KERNELS; i++) {
            const struct occ_launch_config config = {.kernel = kernels[i],
                                                     .device = t->devices[g],
                                                     .launch = {.grid = {200 + 10 * (uint32_t)i, 1, 1},
                                                                .block = {256, 1, 1},
                                                                .cluster = {1, 1, 1},
                                                                .registers_per_thread = 64,
                                                                .carveout_percent = -1}};
            check(occ_store_put_config(store, &config, &t->configs[g][i], &err));
        }
    }
}

/* Run `at` begins STEP_S seconds after the last one on its GPU, and lasts OVERLAP steps. */
static void put_run(struct occ_store *store, const struct things *t, uint32_t at)
{
    uint32_t gpu = at % GPUS, range = 0;
    int64_t id = 0, start_ns = BEGIN + (int64_t)(at / GPUS) * STEP_S * SECOND;
    char user[16];
    struct occ_run run = {.start_ns = start_ns, .hostname = "node", .exe = "/opt/train", .user = user};
    (void)snprintf(user, sizeof user, "user%u", at % 40);
    memcpy(run.uuid, &at, sizeof at);
    run.uuid[15] = 1;
    check(occ_store_put_run(store, &run, &id, &err));
    check(occ_store_put_range(store, id, "model/layer_3/attention", "forward", &range, &err));
    for (uint32_t i = 0; i <= LAUNCHES; i++) {
        int64_t after_ns = OVERLAP * STEP_S * SECOND * i / LAUNCHES;
        const struct occ_store_launch launch = {.start_ns = start_ns + after_ns,
                                                .duration_ns = i < LAUNCHES ? SECOND / 10 : 0,
                                                .config = (uint32_t)t->configs[gpu][i % KERNELS],
                                                .stream = 7,
                                                .context = 1,
                                                .correlation = i,
                                                .range = i % 2 ? range : 0};
        check(occ_store_append(store, id, t->devices[gpu], &launch, 1, &err));
    }
    check(occ_store_end_run(store, id, &err));
}

static void make_history(const char *path, uint32_t runs)
{
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    struct occ_store *store = NULL;
    struct things things;
    check(occ_store_open(path, &options, &store, &err));
    put_things(store, &things);
    for (uint32_t i = 0; i < runs; i++) {
        put_run(store, &things, i);
        if (i % 100 == 99)
            check(occ_store_commit(store, &err));
    }
    int64_t seconds = (runs / GPUS + OVERLAP) * STEP_S;
    for (int64_t s = 0; s < seconds; s++)
        for (int g = 0; g < GPUS; g++) {
            const struct occ_device_energy energy = {things.devices[g], BEGIN / SECOND + s, SECOND, 500000};
            check(occ_store_add_energy(store, &energy, &err));
            if ((s * GPUS + g) % 4000 == 3999)
                check(occ_store_commit(store, &err));
        }
    check(occ_store_finish(store, &err));
    occ_store_close(store);
}

/* Returns the seconds that the bill takes, the least of TIMES. */
static double bill(struct occ_store *store, enum occ_bill_by by, uint32_t n)
{
    struct occ_prices prices = {.n = 1};
    struct occ_bill_run *runs = calloc(n, sizeof *runs);
    double best = INFINITY, expected = 0;
    check(runs && occ_price_parse("2.50 EUR", &prices.list[0]) ? 0 : occ_no_memory(&err));
    (void)snprintf(prices.list[0].model, sizeof prices.list[0].model, "H100");
    for (uint32_t i = 0; i < n; i++)
        runs[i] = (struct occ_bill_run){.run = i + 1, .key = "user", .has_epoch = true, .is_billed = true};
    for (uint32_t g = 0; g < GPUS; g++)
        expected += ((n - 1 - g) / GPUS + OVERLAP) * STEP_S;
    for (int i = 0; i < (n > 2000 ? 1 : TIMES); i++) {
        const struct occ_bill_history history = {.store = store, .runs = runs, .n_runs = n};
        const struct occ_bill_question question = {
            .histories = &history, .n_histories = 1, .by = by, .prices = &prices};
        struct occ_bill bill = {0};
        double began_ns = bench_now_ns(), held_s = 0;
        check(occ_bill_make(&question, &bill, &err));
        double seconds = (bench_now_ns() - began_ns) * 1e-9;
        best = seconds < best ? seconds : best;
        for (size_t k = 0; k < bill.n; k++)
            held_s += bill.rows[k].held_s;
        if (fabs(held_s - expected) > 1e-6 * expected)
            check(occ_fail(&err, OCC_E_INVALID, "held %.3f s, not %.3f s", held_s, expected));
        occ_bill_free(&bill);
    }
    free(runs);
    return best;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"run", "kernel", "layer"};
    long most = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
    bool is_first = true;
    if (most < 8 * GPUS || most > 1000000) {
        (void)fputs("usage: bench_bill [RUNS], at least 64\n", stderr);
        return 2;
    }
    (void)puts("{\"name\": \"bill\",");
    bench_print_machine();
    (void)printf(",\n  \"bills\": [");
    for (long n = most / 8; n <= most; n *= 2) {
        char path[] = "/tmp/bench-bill-XXXXXX.db";
        const struct occ_store_options options = {.mode = OCC_STORE_READ};
        struct occ_store *store = NULL;
        int fd = mkstemps(path, 3);
        if (fd < 0 || close(fd) != 0 || unlink(path) != 0)
            return 2;
        make_history(path, (uint32_t)n);
        check(occ_store_open(path, &options, &store, &err));
        for (int by = OCC_BILL_BY_RUN; by <= OCC_BILL_BY_LAYER; by++) {
            double seconds = bill(store, (enum occ_bill_by)by, (uint32_t)n);
            (void)printf("%s\n    {\"runs\": %ld, \"by\": \"%s\", \"seconds\": %.3f, \"ms_per_run\": %.3f}",
                         is_first ? "" : ",", n, words[by], seconds, seconds * 1e3 / (double)n);
            (void)fflush(stdout);
            is_first = false;
        }
        occ_store_close(store);
        (void)unlink(path);
    }
    (void)puts("\n  ]}");
    return 0;
}
