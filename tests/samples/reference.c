/*
 * The transformer on the CPU; see reference.h. Sums are in double, so that differences from the device are
 * the device's rounding only.
 */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scratch {
    float x[TOKENS * WIDTH], normed[TOKENS * WIDTH], qkv[TOKENS * 3 * WIDTH];
    float context[TOKENS * WIDTH], branch[TOKENS * WIDTH], hidden[TOKENS * HIDDEN];
};

/* c (m x n) = a (m x k) * b (k x n) + bias */
static void product(const float *a, const float *b, const float *bias, float *c, int m, int n, int k)
{
    double sum[3 * HIDDEN];
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            sum[j] = bias ? (double)bias[j] : 0.0;
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++)
                sum[j] += (double)a[i * k + l] * (double)b[l * n + j];
        for (int j = 0; j < n; j++)
            c[i * n + j] = (float)sum[j];
    }
}

static void norm_row(const float *x, const float *gain, const float *bias, float *y)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += (double)x[i];
    for (int i = 0; i < WIDTH; i++)
        squares += pow((double)x[i] - sum / WIDTH, 2);
    double scale = 1 / sqrt(squares / WIDTH + (double)NORM_EPSILON);
    for (int i = 0; i < WIDTH; i++)
        y[i] = (float)(((double)x[i] - sum / WIDTH) * scale * (double)gain[i] + (double)bias[i]);
}

static void norm(const float *x, const float *gain, const float *bias, float *y)
{
    for (int row = 0; row < TOKENS; row++)
        norm_row(x + row * WIDTH, gain, bias, y + row * WIDTH);
}

/* Computes the attention of one token in one head. */
static void attend(const float *qkv, int token, int head, float *context)
{
    const float *q = qkv + token * 3 * WIDTH + head * HEAD_WIDTH;
    double weight[TOKENS], sum = 0;
    for (int t = 0; t <= token; t++) {
        const float *k = qkv + t * 3 * WIDTH + WIDTH + head * HEAD_WIDTH;
        double dot = 0;
        for (int i = 0; i < HEAD_WIDTH; i++)
            dot += (double)q[i] * (double)k[i];
        weight[t] = exp(dot / sqrt(HEAD_WIDTH));
        sum += weight[t];
    }
    for (int i = 0; i < HEAD_WIDTH; i++) {
        double value = 0;
        for (int t = 0; t <= token; t++)
            value += weight[t] / sum * (double)qkv[t * 3 * WIDTH + 2 * WIDTH + head * HEAD_WIDTH + i];
        context[token * WIDTH + head * HEAD_WIDTH + i] = (float)value;
    }
}

static void add(float *x, const float *branch)
{
    for (int i = 0; i < TOKENS * WIDTH; i++)
        x[i] += branch[i];
}

static void run_layer(const struct layer *layer, struct scratch *s)
{
    norm(s->x, layer->norm1_gain, layer->norm1_bias, s->normed);
    product(s->normed, layer->qkv, layer->qkv_bias, s->qkv, TOKENS, 3 * WIDTH, WIDTH);
    for (int token = 0; token < TOKENS; token++)
        for (int head = 0; head < HEADS; head++)
            attend(s->qkv, token, head, s->context);
    product(s->context, layer->out, layer->out_bias, s->branch, TOKENS, WIDTH, WIDTH);
    add(s->x, s->branch);
    norm(s->x, layer->norm2_gain, layer->norm2_bias, s->normed);
    product(s->normed, layer->up, layer->up_bias, s->hidden, TOKENS, HIDDEN, WIDTH);
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        double h = (double)s->hidden[i];
        s->hidden[i] = (float)(0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * h * h * h))));
    }
    product(s->hidden, layer->down, layer->down_bias, s->branch, TOKENS, WIDTH, HIDDEN);
    add(s->x, s->branch);
}

bool reference_logits(const struct model *model, const int *words, float *logits)
{
    struct scratch *s = malloc(sizeof *s);
    if (!s)
        return false;
    for (int i = 0; i < TOKENS * WIDTH; i++)
        s->x[i] = model->words[words[i / WIDTH] * WIDTH + i % WIDTH] + model->positions[i];
    for (int i = 0; i < LAYERS; i++)
        run_layer(&model->layers[i], s);
    norm(s->x, model->norm_gain, model->norm_bias, s->normed);
    product(s->normed, model->head, NULL, logits, TOKENS, WORDS, WIDTH);
    free(s);
    return true;
}

double reference_loss(const float *logits, int target)
{
    double sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += exp((double)logits[i]);
    return log(sum) - (double)logits[target];
}

double reference_gradient(const float *normed, const float *gradient_logits, int i, int j)
{
    double sum = 0;
    for (int row = 0; row < ROWS; row++)
        sum += (double)normed[row * WIDTH + i] * (double)gradient_logits[row * WORDS + j];
    return sum;
}
