/*
 * Shared definitions of the transformer's kernels (transformer.cu), host code (transformer.c) and check
 * (reference.c). Plain C, also compiled by nvcc. Matrices are row-major.
 */
#pragma once

enum {
    LAYERS = 2,
    WIDTH = 256,
    HEADS = 4,
    HEAD_WIDTH = WIDTH / HEADS,
    HIDDEN = 4 * WIDTH,
    TOKENS = 128, /* tokens per sequence */
    SEQUENCES = 8,
    ROWS = SEQUENCES * TOKENS,
    WORDS = 500, /* not a multiple of a tile, so that tiles have edges */

    ROW_THREADS = 128,     /* threads of a block that works on one row */
    ELEMENT_THREADS = 256, /* threads of a block that works on single elements */
    SUM_THREADS = 1024     /* threads of the only block that adds the losses */
};

#define LEARNING_RATE 0.5f
#define NORM_EPSILON  1e-5f

/* C[z] = A[z] * B[z] + bias; A is m x k and B k x n with any strides, so that swapped strides transpose a
 * matrix. z = sequence * heads + head. */
struct gemm {
    const float *a, *b, *bias; /* bias: n values; null: no bias */
    float *c;
    int m, n, k, heads;
    int a_row, a_column, b_row, b_column, c_row;
    int a_sequence, a_head, b_sequence, b_head, c_sequence, c_head;
};

struct layer {
    float norm1_gain[WIDTH], norm1_bias[WIDTH];
    float qkv[WIDTH * 3 * WIDTH], qkv_bias[3 * WIDTH];
    float out[WIDTH * WIDTH], out_bias[WIDTH];
    float norm2_gain[WIDTH], norm2_bias[WIDTH];
    float up[WIDTH * HIDDEN], up_bias[HIDDEN];
    float down[HIDDEN * WIDTH], down_bias[WIDTH];
};

/* All weights; only the head is trained. */
struct model {
    float words[WORDS * WIDTH], positions[TOKENS * WIDTH];
    struct layer layers[LAYERS];
    float norm_gain[WIDTH], norm_bias[WIDTH];
    float head[WIDTH * WORDS];
};

struct batch {
    int words[ROWS], targets[ROWS];
};

struct activations {
    float x[ROWS * WIDTH], normed[ROWS * WIDTH];
    float qkv[ROWS * 3 * WIDTH];
    float scores[SEQUENCES * HEADS * TOKENS * TOKENS];
    float context[ROWS * WIDTH], branch[ROWS * WIDTH];
    float hidden[ROWS * HIDDEN];
    float logits[ROWS * WORDS], gradient_logits[ROWS * WORDS];
    float row_loss[ROWS];
    float gradient_head[WIDTH * WORDS];
    unsigned step;
};
