/*
 * launch_cost MODE LAUNCHES BLOCKS THREADS: prints nanoseconds per launch of a null kernel, from the first
 * launch to the end of the last one, in this process alone. THREADS launch at once, each into its own stream.
 *
 *   none       without CUPTI
 *   activity   with kernel records that are dropped unread: the cost of CUPTI itself
 *   disabled   the same, switched off before the measurement: the remaining cost
 *
 * CUPTI is opened at run time before the driver starts. Prints one number. Exit codes like the samples'.
 */
#include "samples/common.h"

#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/library.h"

extern const unsigned char cost_image[];

enum { WARM_UP = 1000, MOST_THREADS = 64, BUFFER_BYTES = 1 << 20 };

/* Same order as the names in open_cupti(). */
struct cupti {
    __typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
    __typeof__(&cuptiActivityEnable) enable;
    __typeof__(&cuptiActivityDisable) disable;
    __typeof__(&cuptiActivityFlushAll) flush;
};

struct job {
    pthread_t thread;
    CUcontext context;
    CUfunction kernel;
    uint64_t launches;
    unsigned blocks;
};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = BUFFER_BYTES;
    *most = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    if (!*buffer)
        sample_die(SAMPLE_FAILED, "out of memory");
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    (void)valid;
    free(buffer);
}

/* Opens libcupti with the guest's search, so that both measure the same library. */
static void open_cupti(struct cupti *cupti)
{
    static const char *const names[] = {"cuptiActivityRegisterCallbacks", "cuptiActivityEnable",
                                        "cuptiActivityDisable", "cuptiActivityFlushAll"};
    enum { NAMES = sizeof names / sizeof *names };
    const char *given = getenv("OCCTRACE_CUPTI");
    struct occ_cupti_search search = {.configured = given ? given : ""};
    struct occ_cupti library;
    char reason[OCC_CUPTI_REASON_BYTES] = "";
    if (!occ_cupti_find(&search, &library, reason))
        sample_die(SAMPLE_NO_DEVICE, "no libcupti: %s", reason[0] ? reason : "none was found");
    size_t missing = occ_library_bind(library.handle, names, NAMES, cupti);
    if (missing < NAMES)
        sample_die(SAMPLE_NO_DEVICE, "libcupti lacks %s", names[missing]);
}

static void *work(void *argument)
{
    const struct job *job = argument;
    const struct sample_shape shape = {{job->blocks, 1, 1}, {32, 1, 1}, 0};
    CUstream stream;
    CHECK(cu.cuCtxSetCurrent(job->context));
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint64_t i = 0; i < job->launches; i++)
        sample_launch(job->kernel, &shape, stream, NULL);
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuStreamDestroy(stream));
    return NULL;
}

static double measure(const struct job *pattern, unsigned threads, uint64_t launches)
{
    struct job jobs[MOST_THREADS];
    double began = now_ns();
    for (unsigned i = 0; i < threads; i++) {
        jobs[i] = *pattern;
        jobs[i].launches = launches / threads;
        if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) != 0)
            sample_die(SAMPLE_FAILED, "no thread");
    }
    for (unsigned i = 0; i < threads; i++)
        (void)pthread_join(jobs[i].thread, NULL);
    return (now_ns() - began) / (double)(launches / threads * threads);
}

int main(int argc, char **argv)
{
    struct cupti cupti = {0};
    struct sample_device device;
    if (argc != 5)
        sample_die(SAMPLE_USAGE, "launch_cost none|activity|disabled LAUNCHES BLOCKS THREADS");
    bool traced = strcmp(argv[1], "none") != 0;
    uint64_t launches = strtoull(argv[2], NULL, 10);
    unsigned blocks = (unsigned)strtoul(argv[3], NULL, 10), threads = (unsigned)strtoul(argv[4], NULL, 10);
    if (launches == 0 || blocks == 0 || threads == 0 || threads > MOST_THREADS || launches < threads)
        sample_die(SAMPLE_USAGE, "numbers out of range");
    if (traced) {
        open_cupti(&cupti);
        if (cupti.register_callbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
            cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
            sample_die(SAMPLE_FAILED, "CUPTI refuses kernel records");
    }
    sample_open(&device);
    struct job job = {.context = device.context, .blocks = blocks};
    job.kernel = sample_kernel(sample_load(cost_image), "null_kernel");
    (void)measure(&job, 1, WARM_UP);
    if (strcmp(argv[1], "disabled") == 0 &&
        (cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS ||
         cupti.flush(0) != CUPTI_SUCCESS))
        sample_die(SAMPLE_FAILED, "CUPTI does not stop");
    printf("%.1f\n", measure(&job, threads, launches));
    sample_close(&device);
    return fflush(stdout) == 0 ? 0 : SAMPLE_FAILED;
}
