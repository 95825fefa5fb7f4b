// The kernels of a small transformer: single precision, written for readability, with the structure of real
// ones: tiled matrix products, one with a tile that exceeds the default limit of shared memory, row-wise
// normalisations, element-wise kernels with a tail, a sum in one block, a persistent update.
// All sums have a fixed order, so results repeat exactly.

#include "transformer.h"

namespace transformer
{

// A tile of C is (MT * rows of threads) x (NT * columns of threads); each thread computes MT x NT elements,
// spaced by the rows and columns of threads. Shared memory has two stages of the tiles of A and B: one is
// multiplied while the next one loads. Shared memory: 2 * (BM + BN) * BK floats.
template <int BM, int BN, int BK, int MT, int NT>
__global__ void __launch_bounds__((BM / MT) * (BN / NT)) matmul(gemm g)
{
    constexpr int Columns = BN / NT, Rows = BM / MT, Threads = Columns * Rows, Stage = (BM + BN) * BK;
    extern __shared__ float tiles[];
    const int sequence = blockIdx.z / g.heads, head = blockIdx.z % g.heads;
    const float *a = g.a + sequence * g.a_sequence + head * g.a_head;
    const float *b = g.b + sequence * g.b_sequence + head * g.b_head;
    float *c = g.c + sequence * g.c_sequence + head * g.c_head;
    const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
    const int column = threadIdx.x % Columns, row = threadIdx.x / Columns;
    float sum[MT][NT] = {};

    auto load = [&](int k0, float *tile_a, float *tile_b) {
        for (int i = threadIdx.x; i < BM * BK; i += Threads) {
            const int m = row0 + i / BK, k = k0 + i % BK;
            tile_a[i] = m < g.m && k < g.k ? a[m * g.a_row + k * g.a_column] : 0.0f;
        }
        for (int i = threadIdx.x; i < BN * BK; i += Threads) {
            const int n = column0 + i % BN, k = k0 + i / BN;
            tile_b[i] = n < g.n && k < g.k ? b[k * g.b_row + n * g.b_column] : 0.0f;
        }
    };
    load(0, tiles, tiles + BM * BK);
    __syncthreads();
    for (int k0 = 0, stage = 0; k0 < g.k; k0 += BK, stage ^= 1) {
        const float *tile_a = tiles + stage * Stage, *tile_b = tile_a + BM * BK;
        float *next = tiles + (stage ^ 1) * Stage;
        if (k0 + BK < g.k)
            load(k0 + BK, next, next + BM * BK);
#pragma unroll 4
        for (int k = 0; k < BK; k++)
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < NT; j++)
                    sum[i][j] += tile_a[(row + i * Rows) * BK + k] * tile_b[k * BN + column + j * Columns];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const int m = row0 + row + i * Rows, n = column0 + column + j * Columns;
            if (m < g.m && n < g.n)
                c[m * g.c_row + n] = sum[i][j] + (g.bias ? g.bias[n] : 0.0f);
        }
}
template __global__ void matmul<128, 128, 32, 8, 8>(gemm);
template __global__ void matmul<64, 64, 16, 4, 4>(gemm);

struct add {
    static __device__ float none()
    {
        return 0.0f;
    }
    static __device__ float join(float a, float b)
    {
        return a + b;
    }
};
struct most {
    static __device__ float none()
    {
        return -INFINITY;
    }
    static __device__ float join(float a, float b)
    {
        return fmaxf(a, b);
    }
};

// Reduces `value` over the block in a fixed order; every thread gets the result. Threads is a power of two.
template <class How, int Threads> __device__ float reduce(float value)
{
    __shared__ float part[Threads];
    part[threadIdx.x] = value;
    __syncthreads();
    for (int half = Threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = How::join(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    value = part[0];
    __syncthreads();
    return value;
}

// Computes x[row] = word's vector + position's vector. One block per row.
__global__ void __launch_bounds__(ROW_THREADS)
    embed(const int *words, const float *word_table, const float *position_table, float *x)
{
    const int row = blockIdx.x, word = words[row], position = row % TOKENS;
    for (int i = threadIdx.x; i < WIDTH; i += ROW_THREADS)
        x[row * WIDTH + i] = word_table[word * WIDTH + i] + position_table[position * WIDTH + i];
}

// Normalises each row to mean 0 and variance 1, then applies gain and bias. One block per row.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    layer_norm(const float *x, const float *gain, const float *bias, float *y)
{
    const float *row = x + blockIdx.x * WIDTH;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < WIDTH; i += Threads)
        sum += row[i];
    const float mean = reduce<add, Threads>(sum) / WIDTH;
    for (int i = threadIdx.x; i < WIDTH; i += Threads)
        squares += (row[i] - mean) * (row[i] - mean);
    const float scale = rsqrtf(reduce<add, Threads>(squares) / WIDTH + NORM_EPSILON);
    for (int i = threadIdx.x; i < WIDTH; i += Threads)
        y[blockIdx.x * WIDTH + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}
template __global__ void layer_norm<ROW_THREADS>(const float *, const float *, const float *, float *);

// Computes scores[row] = softmax(scale * scores[row]) over the positions up to the row's own. One block per
// row.
template <int Threads> __global__ void __launch_bounds__(Threads) causal_softmax(float *scores, float scale)
{
    float *row = scores + blockIdx.x * TOKENS;
    const int visible = blockIdx.x % TOKENS + 1;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < visible; i += Threads)
        largest = fmaxf(largest, row[i]);
    largest = reduce<most, Threads>(largest);
    for (int i = threadIdx.x; i < visible; i += Threads)
        sum += expf(scale * (row[i] - largest));
    sum = reduce<add, Threads>(sum);
    for (int i = threadIdx.x; i < TOKENS; i += Threads)
        row[i] = i < visible ? expf(scale * (row[i] - largest)) / sum : 0.0f;
}
template __global__ void causal_softmax<ROW_THREADS>(float *, float);

__global__ void __launch_bounds__(ELEMENT_THREADS) gelu(float *x, int n)
{
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i < n)
        x[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

__global__ void __launch_bounds__(ELEMENT_THREADS) add_residual(float *x, const float *branch, int n)
{
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i < n)
        x[i] += branch[i];
}

// Computes the cross entropy of each row, and the derivative of the mean over all rows by the logits. One
// block per row.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    cross_entropy(const float *logits, const int *targets, float *gradient, float *row_loss)
{
    const float *row = logits + blockIdx.x * WORDS;
    const int target = targets[blockIdx.x];
    float largest = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < WORDS; i += Threads)
        largest = fmaxf(largest, row[i]);
    largest = reduce<most, Threads>(largest);
    for (int i = threadIdx.x; i < WORDS; i += Threads)
        sum += expf(row[i] - largest);
    sum = reduce<add, Threads>(sum);
    for (int i = threadIdx.x; i < WORDS; i += Threads)
        gradient[blockIdx.x * WORDS + i] =
            (expf(row[i] - largest) / sum - (i == target ? 1.0f : 0.0f)) / ROWS;
    if (threadIdx.x == 0)
        row_loss[blockIdx.x] = logf(sum) + largest - row[target];
}
template __global__ void cross_entropy<ROW_THREADS>(const float *, const int *, float *, float *);

// Writes the mean of the rows' losses to losses[step] and increments the step. One block in total.
__global__ void __launch_bounds__(SUM_THREADS) mean_loss(const float *row_loss, float *losses, unsigned *step)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < ROWS; i += SUM_THREADS)
        sum += row_loss[i];
    sum = reduce<add, SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        losses[(*step)++] = sum / ROWS;
}

// Persistent: a few blocks per SM iterate over all weights.
__global__ void __launch_bounds__(ELEMENT_THREADS) descend(float *weights, const float *gradient, int n)
{
    for (int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < n; i += gridDim.x * ELEMENT_THREADS)
        weights[i] -= LEARNING_RATE * gradient[i];
}

} // namespace transformer
