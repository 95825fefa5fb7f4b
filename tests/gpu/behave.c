/*
 * behave KIND N [RATE]: behaves like certain programs, with a known number of launches.
 *
 *   paced SECONDS RATE  RATE short kernels per second, while a second stream always has a kernel of about
 *                       30 ms in flight: the GPU is never idle, so no flush finds all records complete
 *   takeover N          N launches, then PyTorch's profiler (its own buffer callbacks, N launches, flush,
 *                       kernel records off), then N launches each half second for 10 s
 *   pthread_exit N      N launches; the main thread ends with pthread_exit() while another thread works for
 *                       0.2 s
 *   threads_exit N      N threads that launch; exit() while all of them still launch
 *   calls N THREADS     N launches in each thread; "call_max_ms: X" is the longest launch call
 *
 * Prints the samples' output; takeover first prints "after: N", the launches after the session. Exit codes
 * like the samples'.
 */
#include "samples/common.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/library.h"

extern const unsigned char load_image[];

enum { MOST_THREADS = 256, LONG_NS = 30000000, SIMULATED_BLOCKS = 10000000, LONG_SMEM = 40 << 10 };

static struct sample_device device;
static CUfunction spin;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

static CUstream new_stream(void)
{
    CUstream stream;
    CHECK(cu.cuCtxSetCurrent(device.context));
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void launch(CUstream stream, uint64_t ns)
{
    const struct sample_shape shape = {{1, 1, 1}, {32, 1, 1}, 0};
    sample_launch(spin, &shape, stream, (void *[]){&ns});
}

static void launch_many(CUstream stream, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        launch(stream, 0);
    CHECK(cu.cuStreamSynchronize(stream));
}

/* Launches a long kernel: on a simulated device its waves determine the duration, on a real one its argument.
 */
static void launch_long(CUstream stream)
{
    const struct sample_shape shape = {
        {device.simulated ? SIMULATED_BLOCKS : 1, 1, 1}, {32, 1, 1}, LONG_SMEM};
    uint64_t ns = LONG_NS;
    sample_launch(spin, &shape, stream, (void *[]){&ns});
}

static void *keep_busy(void *until)
{
    CUstream stream = new_stream();
    launch_long(stream);
    while (now_ns() < *(const uint64_t *)until) {
        launch_long(stream); /* the previous one is still running */
        sleep_until(now_ns() + LONG_NS);
    }
    CHECK(cu.cuStreamSynchronize(stream));
    return NULL;
}

static int pace(uint64_t seconds, uint64_t rate)
{
    pthread_t thread;
    uint64_t start = now_ns(), end = start + seconds * 1000000000u;
    CUstream stream = new_stream();
    if (rate == 0 || pthread_create(&thread, NULL, keep_busy, &end) != 0)
        sample_die(SAMPLE_USAGE, "behave paced SECONDS RATE");
    for (uint64_t i = 0; i < rate * seconds; i++) {
        sleep_until(start + i * 1000000000u / rate);
        launch(stream, 0);
    }
    (void)pthread_join(thread, NULL);
    CHECK(cu.cuStreamSynchronize(stream));
    return sample_finish();
}

/* ---- another profiler in the process ---- */

static uint8_t *own[64];                         /* own buffers that CUPTI has */
static _Atomic uint64_t own_bytes, others_bytes; /* bytes of returned records */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

/* Replaces `before` by `now`; false: `before` is not in the list. */
static bool exchange(const uint8_t *before, uint8_t *now)
{
    bool found = false;
    (void)pthread_mutex_lock(&own_lock);
    for (size_t i = 0; i < sizeof own / sizeof *own && !found; i++)
        if (own[i] == before) {
            own[i] = now;
            found = true;
        }
    (void)pthread_mutex_unlock(&own_lock);
    return found;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 20;
    *most = 0;
    *buffer = aligned_alloc(8, *size);
    if (!*buffer || !exchange(NULL, *buffer))
        sample_die(SAMPLE_FAILED, "out of memory");
}

/* Takes a buffer back. A buffer of the earlier profiler is not freed, like in Kineto. */
static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    bool is_own = exchange(buffer, NULL);
    (void)atomic_fetch_add(is_own ? &own_bytes : &others_bytes, valid);
    if (is_own)
        free(buffer);
}

/* Opens the mapped libcupti, as a program linked with it would bind it; otherwise uses the guest's search. */
static void *open_cupti(void)
{
    const char *given = getenv("OCCTRACE_CUPTI");
    struct occ_cupti_search search = {.configured = given ? given : ""};
    struct occ_cupti library;
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    if (!occ_cupti_find(&search, &library, reason))
        sample_die(SAMPLE_NO_DEVICE, "no libcupti: %s", reason[0] ? reason : "none was found");
    return library.handle;
}

#define OPEN(library, function) ((__typeof__(&function))find(library, #function))
static void *find(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (!address)
        sample_die(SAMPLE_NO_DEVICE, "libcupti lacks %s", name);
    return address;
}

/* Takes CUPTI over in libkineto's order (CuptiActivityApi.cpp). */
static int take_over(uint64_t n)
{
    enum { ROUNDS = 20 };
    void *library = open_cupti();
    CUstream stream = new_stream();
    uint8_t per_thread = 0;
    size_t bytes = sizeof per_thread;
    launch_many(stream, n);
    sleep_until(now_ns() + 1500000000u); /* the helper has flushed by then */
    if (OPEN(library, cuptiActivityRegisterCallbacks)(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        OPEN(library, cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
        sample_die(SAMPLE_FAILED, "CUPTI refuses a second user");
    launch_many(stream, n);
    if (OPEN(library, cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS ||
        OPEN(library, cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != CUPTI_SUCCESS)
        sample_die(SAMPLE_FAILED, "CUPTI does not stop");
    (void)OPEN(library, cuptiActivitySetAttribute)(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes,
                                                   &per_thread); /* some versions lack it */
    CUptiResult result = OPEN(library, cuptiActivityGetAttribute)(
        CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &per_thread);
    printf("session: %llu bytes of records, %llu in buffers of the profiler before; the attribute reads %d "
           "(%d)\n",
           (unsigned long long)own_bytes, (unsigned long long)others_bytes, per_thread, (int)result);
    for (int i = 0; i < ROUNDS; i++) {
        launch_many(stream, n);
        sleep_until(now_ns() + 500000000u);
    }
    printf("after: %llu\n", (unsigned long long)(ROUNDS * n));
    return sample_finish();
}

/* ---- ends and threads ---- */

static void *outlive_main(void *unused)
{
    (void)unused;
    sleep_until(now_ns() + 200000000u);
    return NULL;
}

static int end_by_thread(uint64_t n)
{
    pthread_t thread;
    launch_many(new_stream(), n);
    int status = sample_finish();
    if (status != 0 || fflush(stdout) != 0 || pthread_create(&thread, NULL, outlive_main, NULL) != 0)
        return SAMPLE_FAILED;
    pthread_exit(NULL);
}

struct job {
    uint64_t launches, longest_ns;
};

static void *time_calls(void *argument)
{
    struct job *job = argument;
    CUstream stream = new_stream();
    for (uint64_t i = 0; i < job->launches; i++) {
        uint64_t start = now_ns();
        launch(stream, 0);
        uint64_t took = now_ns() - start;
        job->longest_ns = took > job->longest_ns ? took : job->longest_ns;
    }
    CHECK(cu.cuStreamSynchronize(stream));
    return NULL;
}

/* Runs n threads; `wait` false: the program ends while the threads still launch. */
static int run_threads(uint64_t n, uint64_t launches, bool wait)
{
    static struct job jobs[MOST_THREADS];
    static pthread_t threads[MOST_THREADS];
    uint64_t longest = 0;
    if (n == 0 || n > MOST_THREADS)
        sample_die(SAMPLE_USAGE, "at most %d threads", MOST_THREADS);
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].launches = launches;
        if (pthread_create(&threads[i], NULL, time_calls, &jobs[i]) != 0)
            sample_die(SAMPLE_FAILED, "no thread");
    }
    if (!wait) {
        sleep_until(now_ns() + 300000000u);
        exit(fflush(stdout) == 0 ? 0 : SAMPLE_FAILED);
    }
    for (uint64_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
        longest = jobs[i].longest_ns > longest ? jobs[i].longest_ns : longest;
    }
    printf("call_max_ms: %.3f\n", (double)longest / 1e6);
    return sample_finish();
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
             more = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    const char *what = n > 0 ? argv[1] : "";
    sample_open(&device);
    spin = sample_kernel(sample_load(load_image), "load_spin");
    if (strcmp(what, "paced") == 0)
        return pace(n, more);
    if (strcmp(what, "takeover") == 0)
        return take_over(n);
    if (strcmp(what, "pthread_exit") == 0)
        return end_by_thread(n);
    if (strcmp(what, "threads_exit") == 0)
        return run_threads(n, UINT64_MAX, false);
    if (strcmp(what, "calls") == 0)
        return run_threads(more, n, true);
    sample_die(SAMPLE_USAGE, "behave paced|takeover|pthread_exit|threads_exit|calls N [RATE]");
}
