/*
 * The smallest sample: one kernel, launched in the ways and numbers of its options. Tests compare it with and
 * without a profiler: its output, exit code, signal, threads, children and number of launches.
 *
 * Threads: main, and with --threads N workers, each with its own stream and buffers. --spin stops
 * at SIGTERM or SIGINT; their handler sets one flag.
 */
#include "common.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

extern const unsigned char hello_image[];

enum { MAX_THREADS = 64, BLOCK_THREADS = 256, ELEMENTS = 100000, LOG_EVERY_NS = 20000000 };

struct options {
    uint64_t launches; /* launches of each thread */
    uint64_t batch;    /* launches between two synchronizations with the device */
    uint64_t threads;
    uint64_t device;   /* number of the device, from 0 */
    uint64_t sleep_ms; /* pause after each batch */
    uint64_t stdout_bytes;
    uint64_t exit_code;
    bool fork, exec, spin, exit_at_once, abort, segv, ranges;
    const char *log;
};

struct worker {
    const struct options *options;
    const struct sample_device *device;
    CUfunction kernel;
    CUstream stream;
    CUdeviceptr a, b, c;
    int log; /* descriptor; -1: no log */
    uint64_t logged_ns, batches;
};

static atomic_int stop;            /* the signal that ends --spin; 0: none */
static _Atomic uint64_t completed; /* launches that the device has completed */

static void on_stop(int signal)
{
    atomic_store(&stop, signal);
}

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void make_buffers(struct worker *worker)
{
    static float host[ELEMENTS];
    for (unsigned i = 0; i < ELEMENTS; i++)
        host[i] = (float)i;
    CUdeviceptr *buffers[] = {&worker->a, &worker->b, &worker->c};
    for (size_t i = 0; i < 3; i++) {
        CHECK(cu.cuMemAlloc(buffers[i], sizeof host));
        CHECK(cu.cuMemcpyHtoD(*buffers[i], host, sizeof host));
    }
    CHECK(cu.cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
}

static void check_result(struct worker *worker)
{
    float *host = malloc(ELEMENTS * sizeof *host);
    if (!host)
        sample_die(SAMPLE_FAILED, "out of memory");
    CHECK(cu.cuMemcpyDtoH(host, worker->c, ELEMENTS * sizeof *host));
    for (unsigned i = 0; i < ELEMENTS; i++)
        if (host[i] != (float)(2 * i))
            sample_die(SAMPLE_FAILED, "element %u is %g, should be %u", i, (double)host[i], 2 * i);
    free(host);
}

static void free_buffers(struct worker *worker)
{
    CHECK(cu.cuStreamDestroy(worker->stream));
    CHECK(cu.cuMemFree(worker->a));
    CHECK(cu.cuMemFree(worker->b));
    CHECK(cu.cuMemFree(worker->c));
}

/* Writes a line "nanoseconds-since-1970 launches-completed" at most every 20 ms, with a single write(2), so
 * that the line survives every kind of end. */
static void write_log(struct worker *worker)
{
    uint64_t now = realtime_ns();
    if (worker->log < 0 || now - worker->logged_ns < LOG_EVERY_NS)
        return;
    char line[64];
    int length = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", now, atomic_load(&completed));
    if (write(worker->log, line, (size_t)length) != length)
        sample_die(SAMPLE_FAILED, "cannot write the log");
    worker->logged_ns = now;
}

#ifdef HAVE_NVTX
/* Pushes a range with the batch's number, in a domain of its own, at the start of a batch, and a nested range
 * at the middle. */
static void push_ranges(struct worker *worker, uint64_t i, uint64_t n)
{
    static nvtxDomainHandle_t domain;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char text[32];
    pthread_mutex_lock(&lock);
    domain = domain ? domain : nvtxDomainCreateA("hello");
    pthread_mutex_unlock(&lock);
    snprintf(text, sizeof text, "batch %" PRIu64, worker->batches);
    nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = i == 0 ? nvtxDomainRegisterStringA(domain, text) : NULL;
    if (i == 0)
        nvtxDomainRangePushEx(domain, &event);
    if (i == n / 2)
        nvtxRangePushA("second/half");
    if (i == n) {
        nvtxRangePop();
        nvtxDomainRangePop(domain);
        worker->batches++;
    }
}
#endif

static void launch_batch(struct worker *worker, uint64_t n)
{
    unsigned elements = ELEMENTS;
    void *arguments[] = {&worker->a, &worker->b, &worker->c, &elements};
    const struct sample_shape shape = {.grid = {(ELEMENTS + BLOCK_THREADS - 1) / BLOCK_THREADS, 1, 1},
                                       .block = {BLOCK_THREADS, 1, 1}};
    for (uint64_t i = 0; i <= n; i++) {
#ifdef HAVE_NVTX
        if (worker->options->ranges)
            push_ranges(worker, i, n);
#endif
        if (i < n)
            sample_launch(worker->kernel, &shape, worker->stream, arguments);
    }
    CHECK(cu.cuStreamSynchronize(worker->stream));
    atomic_fetch_add(&completed, n);
}

static void *work(void *data)
{
    struct worker *worker = data;
    const struct options *options = worker->options;
    CHECK(cu.cuCtxSetCurrent(worker->device->context));
#ifdef HAVE_NVTX
    if (options->ranges)
        nvtxRangePushA("worker");
#endif
    for (uint64_t left = options->launches; (options->spin || left > 0) && !atomic_load(&stop);) {
        uint64_t n = options->spin || options->batch < left ? options->batch : left;
        launch_batch(worker, n);
        write_log(worker);
        left -= options->spin ? 0 : n;
        if (options->sleep_ms > 0)
            usleep((useconds_t)(options->sleep_ms * 1000));
    }
#ifdef HAVE_NVTX
    if (options->ranges)
        nvtxRangePop();
#endif
    return NULL;
}

static int open_log(const char *path)
{
    if (!path)
        return -1;
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0)
        sample_die(SAMPLE_FAILED, "cannot write %s", path);
    return log;
}

/* Runs all CUDA work of this process. */
static void run_workers(const struct options *options)
{
    struct sample_device device;
    struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    sample_open_number(&device, (int)options->device);
    CUmodule module = sample_load(hello_image);
    CUfunction kernel = sample_kernel(module, "vector_add");
    for (unsigned i = 0; i < options->threads; i++) {
        workers[i] = (struct worker){.options = options, .device = &device, .kernel = kernel, .log = -1};
        make_buffers(&workers[i]);
    }
    workers[0].log = open_log(options->log);
    for (unsigned i = 1; i < options->threads; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            sample_die(SAMPLE_FAILED, "cannot start a thread");
    work(&workers[0]);
    for (unsigned i = 1; i < options->threads; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < options->threads; i++) {
        if (!device.simulated && sample_counted() > 0)
            check_result(&workers[i]);
        free_buffers(&workers[i]);
    }
    CHECK(cu.cuModuleUnload(module));
    sample_close(&device);
}

/* Runs CUDA in a child before the parent uses CUDA; adds the child's launches to the parent's count. */
static void run_in_child(const struct options *options)
{
    int ends[2];
    uint64_t counted = 0;
    if (pipe(ends) != 0)
        sample_die(SAMPLE_FAILED, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0)
        sample_die(SAMPLE_FAILED, "cannot fork");
    if (child == 0) {
        run_workers(options);
        counted = sample_counted();
        exit(write(ends[1], &counted, sizeof counted) == (ssize_t)sizeof counted ? 0 : SAMPLE_FAILED);
    }
    close(ends[1]);
    int status = 0;
    ssize_t got = read(ends[0], &counted, sizeof counted);
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SAMPLE_NO_DEVICE)
        exit(SAMPLE_NO_DEVICE);
    if (got != (ssize_t)sizeof counted || status != 0)
        sample_die(SAMPLE_FAILED, "the child failed (%d)", status);
    sample_count(counted);
}

/* Executes this program again in the same process, without --exec. */
static void run_again(char **argv)
{
    size_t kept = 1;
    for (size_t i = 1; argv[i]; i++)
        if (strcmp(argv[i], "--exec") != 0)
            argv[kept++] = argv[i];
    argv[kept] = NULL;
    execv("/proc/self/exe", argv);
    sample_die(SAMPLE_FAILED, "cannot start /proc/self/exe");
}

/* Writes `bytes` bytes: lines of the alphabet; the last byte is a newline. */
static void write_text(uint64_t bytes)
{
    static const char line[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/\n";
    for (uint64_t i = 0; i < bytes; i++)
        putchar(i + 1 == bytes ? '\n' : line[i % (sizeof line - 1)]);
}

static int end_as_asked(const struct options *options)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int signal_number = atomic_load(&stop);
    if (signal_number != 0) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    if (options->segv) {
        /* use the default action also under a sanitizer with its own handler */
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (options->abort)
        abort();
    if (options->exit_at_once)
        _exit((int)options->exit_code);
    return (int)options->exit_code;
}

static void parse(char **argv, struct options *o)
{
    const struct sample_option known[] = {
        {"--launches", "N", "launches of each thread (100)", .number = &o->launches, .max = UINT32_MAX},
        {"--batch", "N", "launches between two waits for the device (64)", .number = &o->batch, .min = 1,
         .max = 1000000},
        {"--threads", "N", "threads that launch (1)", .number = &o->threads, .min = 1, .max = MAX_THREADS},
        {"--device", "N", "number of the device (0)", .number = &o->device, .max = 63},
        {"--sleep-ms", "MS", "sleep after each batch (0)", .number = &o->sleep_ms, .max = 60000},
#ifdef HAVE_NVTX
        {"--ranges", NULL, "with NVTX ranges: worker, batch N, second/half", .flag = &o->ranges},
#endif
        {"--spin", NULL, "launch until SIGTERM or SIGINT, and die by it", .flag = &o->spin},
        {"--fork", NULL, "do all of it in a child process first", .flag = &o->fork},
        {"--exec", NULL, "start this program anew in the same process first", .flag = &o->exec},
        {"--stdout", "BYTES", "write so much text before the last line", .number = &o->stdout_bytes,
         .max = 1u << 30},
        {"--log", "FILE", "keep adding lines \"time-in-ns launches-completed\"", .text = &o->log},
        {"--exit", "CODE", "end with this exit code (0)", .number = &o->exit_code, .max = 255},
        {"--_exit", NULL, "the same without running exit handlers", .flag = &o->exit_at_once},
        {"--abort", NULL, "end by abort()", .flag = &o->abort},
        {"--segv", NULL, "end by SIGSEGV", .flag = &o->segv},
        {.name = NULL}};
    sample_parse(argv, "hello: adds two vectors on a CUDA device and says how often.", known);
}

int main(int argc, char **argv)
{
    struct options options = {.launches = 100, .batch = 64, .threads = 1};
    (void)argc;
    parse(argv, &options);
    if (options.exec)
        run_again(argv);
    if (options.spin) {
        signal(SIGTERM, on_stop);
        signal(SIGINT, on_stop);
    }
    if (options.fork)
        run_in_child(&options);
    run_workers(&options);
    write_text(options.stdout_bytes);
    sample_finish();
    return end_as_asked(&options);
}
