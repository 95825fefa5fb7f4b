/*
 * Trains a small transformer for a few steps: each step runs a batch of sequences through two frozen layers
 * and the head, on several streams that split the batch between them, then adds up the loss and updates the
 * head. The first step is launched kernel by kernel, the others are replays of a CUDA graph captured from the
 * same code.
 *
 * The kernels are those of real training: matrix products with more than 48 KB of shared memory and many
 * registers, batched products on small tiles, row-wise and element-wise kernels, grids smaller than the
 * device, partial last waves, a sum in one block, a persistent kernel. Words, targets and weights come from a
 * seed. Results repeat exactly; on a real device the first step is checked against the CPU.
 *
 * One thread.
 */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reference.h"
#include "transformer.h"

extern const unsigned char transformer_image[];

enum { MAX_STREAMS = SEQUENCES };

/* X(field, mangled name) */
#define KERNELS(X)                                                                                           \
    X(matmul_128, "_ZN11transformer6matmulILi128ELi128ELi32ELi8ELi8EEEv4gemm")                               \
    X(matmul_64, "_ZN11transformer6matmulILi64ELi64ELi16ELi4ELi4EEEv4gemm")                                  \
    X(embed, "_ZN11transformer5embedEPKiPKfS3_Pf")                                                           \
    X(layer_norm, "_ZN11transformer10layer_normILi128EEEvPKfS2_S2_Pf")                                       \
    X(causal_softmax, "_ZN11transformer14causal_softmaxILi128EEEvPff")                                       \
    X(gelu, "_ZN11transformer4geluEPfi")                                                                     \
    X(add_residual, "_ZN11transformer12add_residualEPfPKfi")                                                 \
    X(cross_entropy, "_ZN11transformer13cross_entropyILi128EEEvPKfPKiPfS5_")                                 \
    X(mean_loss, "_ZN11transformer9mean_lossEPKfPfPj")                                                       \
    X(descend, "_ZN11transformer7descendEPfPKfi")

/* Tile edges and shared memory of the two instances of matmul<BM, BN, BK, ...>: 2 * (BM + BN) * BK floats. */
static const struct tile {
    int edge;
    unsigned smem_bytes;
} large_tile = {128, 2 * (128 + 128) * 32 * 4}, small_tile = {64, 2 * (64 + 64) * 16 * 4};

struct trainer {
    struct sample_device device;
    CUmodule module;
#define X(field, name) CUfunction field;
    KERNELS(X)
#undef X
    CUdeviceptr model, batch, work, losses; /* struct model, struct batch, struct activations, float[steps] */
    CUstream main, streams[MAX_STREAMS];
    CUevent started, done[MAX_STREAMS];
    unsigned stream_count;
};

/* A stream's part of the batch. */
struct slice {
    CUstream stream;
    int first_row, rows;
    int first_sequence, sequences;
};

#define MODEL(trainer, field) ((trainer)->model + offsetof(struct model, field))
#define WORK(trainer, field)  ((trainer)->work + offsetof(struct activations, field))
#define BATCH(trainer, field) ((trainer)->batch + offsetof(struct batch, field))
#define FLOATS(n)             ((CUdeviceptr)(n) * sizeof(float))

static const float *pointer(CUdeviceptr address)
{
    return (const float *)(uintptr_t)address;
}

static void launch(CUfunction kernel, CUstream stream, unsigned blocks, unsigned threads, void **arguments)
{
    const struct sample_shape shape = {{blocks, 1, 1}, {threads, 1, 1}, 0};
    sample_launch(kernel, &shape, stream, arguments);
}

static unsigned blocks_for(int n, int each)
{
    return (unsigned)((n + each - 1) / each);
}

static void matmul(const struct trainer *t, CUstream stream, const struct tile *tile, unsigned batch,
                   struct gemm g)
{
    const struct sample_shape shape = {
        {blocks_for(g.n, tile->edge), blocks_for(g.m, tile->edge), batch}, {256, 1, 1}, tile->smem_bytes};
    sample_launch(tile == &large_tile ? t->matmul_128 : t->matmul_64, &shape, stream, (void *[]){&g});
}

/* y (rows x n) = x (rows x k) * weights (k x n) + bias */
static void linear(const struct trainer *t, const struct slice *s, const struct tile *tile, CUdeviceptr x,
                   int k, CUdeviceptr weights, CUdeviceptr bias, CUdeviceptr y, int n)
{
    matmul(t, s->stream, tile, 1,
           (struct gemm){.a = pointer(x + FLOATS(s->first_row * k)),
                         .b = pointer(weights),
                         .bias = pointer(bias),
                         .c = (float *)(uintptr_t)(y + FLOATS(s->first_row * n)),
                         .m = s->rows,
                         .n = n,
                         .k = k,
                         .heads = 1,
                         .a_row = k,
                         .a_column = 1,
                         .b_row = n,
                         .b_column = 1,
                         .c_row = n});
}

static void layer_norm(const struct trainer *t, const struct slice *s, CUdeviceptr gain, CUdeviceptr bias)
{
    CUdeviceptr x = WORK(t, x) + FLOATS(s->first_row * WIDTH);
    CUdeviceptr y = WORK(t, normed) + FLOATS(s->first_row * WIDTH);
    launch(t->layer_norm, s->stream, (unsigned)s->rows, ROW_THREADS, (void *[]){&x, &gain, &bias, &y});
}

static void add_residual(const struct trainer *t, const struct slice *s)
{
    int n = s->rows * WIDTH;
    CUdeviceptr x = WORK(t, x) + FLOATS(s->first_row * WIDTH);
    CUdeviceptr branch = WORK(t, branch) + FLOATS(s->first_row * WIDTH);
    launch(t->add_residual, s->stream, blocks_for(n, ELEMENT_THREADS), ELEMENT_THREADS,
           (void *[]){&x, &branch, &n});
}

/* Launches scores = Q * K', softmax, context = scores * V for each sequence and head. */
static void attention(const struct trainer *t, const struct slice *s)
{
    const unsigned batch = (unsigned)(s->sequences * HEADS);
    const CUdeviceptr q = WORK(t, qkv) + FLOATS(s->first_row * 3 * WIDTH);
    const CUdeviceptr scores = WORK(t, scores) + FLOATS(s->first_sequence * HEADS * TOKENS * TOKENS);
    const CUdeviceptr context = WORK(t, context) + FLOATS(s->first_row * WIDTH);
    matmul(t, s->stream, &small_tile, batch,
           (struct gemm){.a = pointer(q),
                         .b = pointer(q + FLOATS(WIDTH)),
                         .c = (float *)(uintptr_t)scores,
                         .m = TOKENS,
                         .n = TOKENS,
                         .k = HEAD_WIDTH,
                         .heads = HEADS,
                         .a_row = 3 * WIDTH,
                         .a_column = 1,
                         .b_row = 1,
                         .b_column = 3 * WIDTH,
                         .c_row = TOKENS,
                         .a_sequence = TOKENS * 3 * WIDTH,
                         .a_head = HEAD_WIDTH,
                         .b_sequence = TOKENS * 3 * WIDTH,
                         .b_head = HEAD_WIDTH,
                         .c_sequence = HEADS * TOKENS * TOKENS,
                         .c_head = TOKENS * TOKENS});
    float scale = 1.0f / sqrtf(HEAD_WIDTH);
    launch(t->causal_softmax, s->stream, batch * TOKENS, ROW_THREADS,
           (void *[]){&(CUdeviceptr){scores}, &scale});
    matmul(t, s->stream, &small_tile, batch,
           (struct gemm){.a = pointer(scores),
                         .b = pointer(q + FLOATS(2 * WIDTH)),
                         .c = (float *)(uintptr_t)context,
                         .m = TOKENS,
                         .n = HEAD_WIDTH,
                         .k = TOKENS,
                         .heads = HEADS,
                         .a_row = TOKENS,
                         .a_column = 1,
                         .b_row = 3 * WIDTH,
                         .b_column = 1,
                         .c_row = WIDTH,
                         .a_sequence = HEADS * TOKENS * TOKENS,
                         .a_head = TOKENS * TOKENS,
                         .b_sequence = TOKENS * 3 * WIDTH,
                         .b_head = HEAD_WIDTH,
                         .c_sequence = TOKENS * WIDTH,
                         .c_head = HEAD_WIDTH});
}

static void run_layer(const struct trainer *t, const struct slice *s, int layer)
{
    const CUdeviceptr p = MODEL(t, layers) + (CUdeviceptr)layer * sizeof(struct layer);
#define LAYER(field) (p + offsetof(struct layer, field))
    int n = s->rows * HIDDEN;
    CUdeviceptr hidden = WORK(t, hidden) + FLOATS(s->first_row * HIDDEN);
    layer_norm(t, s, LAYER(norm1_gain), LAYER(norm1_bias));
    linear(t, s, &large_tile, WORK(t, normed), WIDTH, LAYER(qkv), LAYER(qkv_bias), WORK(t, qkv), 3 * WIDTH);
    attention(t, s);
    linear(t, s, &small_tile, WORK(t, context), WIDTH, LAYER(out), LAYER(out_bias), WORK(t, branch), WIDTH);
    add_residual(t, s);
    layer_norm(t, s, LAYER(norm2_gain), LAYER(norm2_bias));
    linear(t, s, &large_tile, WORK(t, normed), WIDTH, LAYER(up), LAYER(up_bias), WORK(t, hidden), HIDDEN);
    launch(t->gelu, s->stream, blocks_for(n, ELEMENT_THREADS), ELEMENT_THREADS, (void *[]){&hidden, &n});
    linear(t, s, &large_tile, WORK(t, hidden), HIDDEN, LAYER(down), LAYER(down_bias), WORK(t, branch), WIDTH);
    add_residual(t, s);
#undef LAYER
}

/* Launches the forward pass, from words to logits, for one stream's part of the batch. */
static void run_forward(const struct trainer *t, const struct slice *s)
{
    CUdeviceptr words = BATCH(t, words) + (CUdeviceptr)s->first_row * sizeof(int);
    CUdeviceptr word_table = MODEL(t, words), position_table = MODEL(t, positions);
    CUdeviceptr x = WORK(t, x) + FLOATS(s->first_row * WIDTH);
    launch(t->embed, s->stream, (unsigned)s->rows, ROW_THREADS,
           (void *[]){&words, &word_table, &position_table, &x});
    for (int i = 0; i < LAYERS; i++)
        run_layer(t, s, i);
    layer_norm(t, s, MODEL(t, norm_gain), MODEL(t, norm_bias));
    linear(t, s, &large_tile, WORK(t, normed), WIDTH, MODEL(t, head), 0, WORK(t, logits), WORDS);
}

/* Launches loss, gradient and one descent step of the head for the whole batch on the main stream. */
static void improve_head(const struct trainer *t)
{
    CUdeviceptr logits = WORK(t, logits), targets = BATCH(t, targets), row_loss = WORK(t, row_loss);
    CUdeviceptr gradient_logits = WORK(t, gradient_logits), step = WORK(t, step), losses = t->losses;
    CUdeviceptr head = MODEL(t, head), gradient_head = WORK(t, gradient_head);
    int n = WIDTH * WORDS;
    launch(t->cross_entropy, t->main, ROWS, ROW_THREADS,
           (void *[]){&logits, &targets, &gradient_logits, &row_loss});
    launch(t->mean_loss, t->main, 1, SUM_THREADS, (void *[]){&row_loss, &losses, &step});
    CHECK(cu.cuMemsetD32Async(gradient_head, 0, (size_t)n, t->main));
    matmul(t, t->main, &large_tile, 1,
           (struct gemm){.a = pointer(WORK(t, normed)),
                         .b = pointer(gradient_logits),
                         .c = (float *)(uintptr_t)gradient_head,
                         .m = WIDTH,
                         .n = WORDS,
                         .k = ROWS,
                         .heads = 1,
                         .a_row = 1,
                         .a_column = WIDTH,
                         .b_row = WORDS,
                         .b_column = 1,
                         .c_row = WORDS});
    launch(t->descend, t->main, 2 * (unsigned)t->device.sm_count, ELEMENT_THREADS,
           (void *[]){&head, &gradient_head, &n});
}

/* Launches one training step: the streams start after the main stream's earlier work, and the main stream
 * continues after them. In a capture the same calls become the graph's edges. */
static void step(const struct trainer *t)
{
    CHECK(cu.cuEventRecord(t->started, t->main));
    for (unsigned i = 0; i < t->stream_count; i++) {
        const int first = (int)(SEQUENCES * i / t->stream_count);
        const int end = (int)(SEQUENCES * (i + 1) / t->stream_count);
        const struct slice slice = {t->streams[i], first * TOKENS, (end - first) * TOKENS, first,
                                    end - first};
        CHECK(cu.cuStreamWaitEvent(slice.stream, t->started, 0));
        run_forward(t, &slice);
        CHECK(cu.cuEventRecord(t->done[i], slice.stream));
        CHECK(cu.cuStreamWaitEvent(t->main, t->done[i], 0));
    }
    improve_head(t);
}

static void replay(const struct trainer *t, uint64_t times)
{
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    uint64_t before = sample_counted();
    CHECK(cu.cuStreamBeginCapture(t->main, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    step(t);
    CHECK(cu.cuStreamEndCapture(t->main, &graph));
    const uint64_t captured = sample_counted() - before;
    CHECK(cu.cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (uint64_t i = 0; i < times; i++)
        CHECK(cu.cuGraphLaunch(executable, t->main));
    sample_count(captured * (times - 1)); /* the capture launched no kernel, but it counted each once */
    CHECK(cu.cuStreamSynchronize(t->main));
    CHECK(cu.cuGraphExecDestroy(executable));
    CHECK(cu.cuGraphDestroy(graph));
}

/* Fills `values` uniformly from -limit ... limit. */
static void randomise(float *values, size_t n, float limit, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        values[i] = limit * ((float)(sample_random(state) >> 40) / (float)(1 << 23) - 1.0f);
}

#define RANDOMISE(array, limit, state) randomise(array, sizeof(array) / sizeof((array)[0]), limit, state)

static void fill(float *values, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        values[i] = value;
}

static void make_layer(struct layer *layer, uint64_t *state)
{
    fill(layer->norm1_gain, WIDTH, 1.0f);
    fill(layer->norm2_gain, WIDTH, 1.0f);
    RANDOMISE(layer->norm1_bias, 0.1f, state);
    RANDOMISE(layer->norm2_bias, 0.1f, state);
    RANDOMISE(layer->qkv, 0.1f, state);
    RANDOMISE(layer->qkv_bias, 0.1f, state);
    RANDOMISE(layer->out, 0.1f, state);
    RANDOMISE(layer->out_bias, 0.1f, state);
    RANDOMISE(layer->up, 0.1f, state);
    RANDOMISE(layer->up_bias, 0.1f, state);
    RANDOMISE(layer->down, 0.05f, state);
    RANDOMISE(layer->down_bias, 0.1f, state);
}

static void make_model(struct model *model, uint64_t *state)
{
    RANDOMISE(model->words, 1.0f, state);
    RANDOMISE(model->positions, 0.2f, state);
    for (int i = 0; i < LAYERS; i++)
        make_layer(&model->layers[i], state);
    fill(model->norm_gain, WIDTH, 1.0f);
    RANDOMISE(model->norm_bias, 0.1f, state);
    RANDOMISE(model->head, 0.05f, state);
}

static void make_batch(struct batch *batch, uint64_t *state)
{
    for (int i = 0; i < ROWS; i++) {
        batch->words[i] = (int)(sample_random(state) % WORDS);
        batch->targets[i] = (int)(sample_random(state) % WORDS);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        sample_die(SAMPLE_FAILED, "out of memory");
    return memory;
}

static CUdeviceptr on_device(const void *data, size_t bytes)
{
    CUdeviceptr address = 0;
    CHECK(cu.cuMemAlloc(&address, bytes));
    CHECK(cu.cuMemcpyHtoD(address, data, bytes));
    return address;
}

static void open_trainer(struct trainer *t, unsigned stream_count, const struct model *model,
                         const struct batch *batch, uint64_t steps)
{
    struct activations *nothing = allocate(sizeof *nothing);
    float *losses = allocate(steps * sizeof *losses);
    sample_open(&t->device);
    t->module = sample_load(transformer_image);
#define X(field, name) t->field = sample_kernel(t->module, name);
    KERNELS(X)
#undef X
    sample_permit_smem(t->matmul_128, large_tile.smem_bytes);
    t->model = on_device(model, sizeof *model);
    t->batch = on_device(batch, sizeof *batch);
    t->work = on_device(nothing, sizeof *nothing);
    t->losses = on_device(losses, steps * sizeof *losses);
    t->stream_count = stream_count;
    CHECK(cu.cuStreamCreate(&t->main, CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuEventCreate(&t->started, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < stream_count; i++) {
        CHECK(cu.cuStreamCreate(&t->streams[i], CU_STREAM_NON_BLOCKING));
        CHECK(cu.cuEventCreate(&t->done[i], CU_EVENT_DISABLE_TIMING));
    }
    free(nothing);
    free(losses);
}

static void close_trainer(struct trainer *t)
{
    for (unsigned i = 0; i < t->stream_count; i++) {
        CHECK(cu.cuEventDestroy(t->done[i]));
        CHECK(cu.cuStreamDestroy(t->streams[i]));
    }
    CHECK(cu.cuEventDestroy(t->started));
    CHECK(cu.cuStreamDestroy(t->main));
    const CUdeviceptr buffers[] = {t->model, t->batch, t->work, t->losses};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        CHECK(cu.cuMemFree(buffers[i]));
    CHECK(cu.cuModuleUnload(t->module));
    sample_close(&t->device);
}

static void expect_near(const char *what, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        sample_die(SAMPLE_FAILED, "wrong result: %s is %.7g, should be %.7g", what, got, expected);
}

/* Checks the device's first step against the CPU: logits and losses of the first sequence, and gradient and
 * updated weight for every seventh row and column of the head. */
static void check_first_step(const struct trainer *t, const struct model *model, const struct batch *batch)
{
    struct activations *got = allocate(sizeof *got);
    struct model *improved = allocate(sizeof *improved);
    float *logits = allocate(TOKENS * WORDS * sizeof *logits);
    CHECK(cu.cuStreamSynchronize(t->main));
    CHECK(cu.cuMemcpyDtoH(got, t->work, sizeof *got));
    CHECK(cu.cuMemcpyDtoH(improved, t->model, sizeof *improved));
    if (!reference_logits(model, batch->words, logits))
        sample_die(SAMPLE_FAILED, "out of memory");
    for (int i = 0; i < TOKENS * WORDS; i++)
        expect_near("a logit", (double)got->logits[i], (double)logits[i], 2e-3);
    for (int i = 0; i < TOKENS; i++)
        expect_near("a loss", (double)got->row_loss[i], reference_loss(logits + i * WORDS, batch->targets[i]),
                    2e-3);
    for (int i = 0; i < WIDTH; i += 7)
        for (int j = 0; j < WORDS; j += 7) {
            const int at = i * WORDS + j;
            double gradient = reference_gradient(got->normed, got->gradient_logits, i, j);
            expect_near("a gradient", (double)got->gradient_head[at], gradient, 1e-5);
            expect_near("a weight", (double)improved->head[at],
                        (double)model->head[at] - (double)LEARNING_RATE * gradient, 1e-5);
        }
    free(got);
    free(improved);
    free(logits);
}

static void print_losses(const struct trainer *t, uint64_t steps)
{
    float first = 0, last = 0;
    CHECK(cu.cuStreamSynchronize(t->main));
    if (t->device.simulated) {
        printf("loss: - (a simulated device computes nothing)\n");
        return;
    }
    CHECK(cu.cuMemcpyDtoH(&first, t->losses, sizeof first));
    CHECK(cu.cuMemcpyDtoH(&last, t->losses + FLOATS(steps - 1), sizeof last));
    printf("loss: %.4f, after %" PRIu64 " steps %.4f\n", (double)first, steps, (double)last);
    if (steps > 1 && !(last < first))
        sample_die(SAMPLE_FAILED, "wrong result: the loss does not fall");
}

/* Runs the steps after the first; returns their duration in seconds. */
static double train(struct trainer *t, uint64_t steps, bool no_graph)
{
    struct timespec began, ended;
    CHECK(cu.cuCtxSynchronize());
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    if (!no_graph && steps > 0)
        replay(t, steps);
    for (uint64_t i = 0; no_graph && i < steps; i++)
        step(t);
    CHECK(cu.cuCtxSynchronize());
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

int main(int argc, char **argv)
{
    uint64_t steps = 20, streams = 2, seed = 1;
    bool no_graph = false, is_timed = false;
    const struct sample_option known[] = {
        {"--steps", "N", "training steps (20)", .number = &steps, .min = 1, .max = 1000000},
        {"--streams", "N", "streams that share the batch (2)", .number = &streams, .min = 1,
         .max = MAX_STREAMS},
        {"--seed", "N", "of words, targets and weights (1)", .number = &seed, .max = UINT32_MAX},
        {"--no-graph", NULL, "launch every kernel of every step", .flag = &no_graph},
        {"--time", NULL, "print how long the steps after the first took", .flag = &is_timed},
        {.name = NULL}};
    (void)argc;
    sample_parse(argv, "transformer: trains a small transformer's head for a few steps.", known);
    struct trainer trainer = {0};
    struct model *model = allocate(sizeof *model);
    struct batch *batch = allocate(sizeof *batch);
    make_model(model, &seed);
    make_batch(batch, &seed);
    open_trainer(&trainer, (unsigned)streams, model, batch, steps);
    printf("transformer: %d layers of width %d, %d sequences of %d tokens\n", LAYERS, WIDTH, SEQUENCES,
           TOKENS);
    step(&trainer);
    if (!trainer.device.simulated)
        check_first_step(&trainer, model, batch);
    double took_s = train(&trainer, steps - 1, no_graph);
    if (is_timed)
        printf("seconds: %.6f\n", took_s);
    print_losses(&trainer, steps);
    close_trainer(&trainer);
    free(model);
    free(batch);
    return sample_finish();
}
