/* Generates made-up launches (generate.h): xorshift, Box-Muller; a table maps a uniform number to a
 * configuration. One thread. */
#include "generate.h"

#include <math.h>
#include <stdlib.h>

#define STEP_LAUNCHES 1500u
#define TABLE_SLOTS   65536u

struct gpu {
    int64_t next_ns;  /* end of the last launch */
    int64_t block_ns; /* start of the next block */
    uint32_t correlation;
    uint32_t step_at;
    uint32_t step[STEP_LAUNCHES];
};

struct generator {
    struct generate_settings settings;
    uint64_t state;
    double *mean_ns, *spread_ns;
    uint32_t table[TABLE_SLOTS]; /* configurations in proportion to their frequency */
    struct gpu *gpus;
};

static uint64_t next_random(struct generator *g)
{
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    return g->state;
}

static double uniform(struct generator *g)
{
    return ((double)(next_random(g) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct generator *g)
{
    return sqrt(-2 * log(uniform(g))) * cos(6.283185307179586 * uniform(g));
}

static uint32_t draw_shape(struct generator *g)
{
    return g->table[next_random(g) >> 48];
}

static void fill_table(struct generator *g)
{
    uint32_t n = g->settings.shapes, shape = 0;
    double sum = 0, below = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += pow(i + 1, -1.05);
    for (uint32_t slot = 0; slot < TABLE_SLOTS; slot++) {
        while (shape + 1 < n && below + pow(shape + 1, -1.05) < (slot + 0.5) / TABLE_SLOTS * sum)
            below += pow(++shape, -1.05);
        g->table[slot] = shape;
    }
}

struct generator *generate_new(const struct generate_settings *settings)
{
    struct generator *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->settings = *settings;
    g->state = settings->seed | 1;
    g->mean_ns = calloc(settings->shapes, sizeof *g->mean_ns);
    g->spread_ns = calloc(settings->shapes, sizeof *g->spread_ns);
    g->gpus = calloc(settings->gpus, sizeof *g->gpus);
    if (!g->mean_ns || !g->spread_ns || !g->gpus) {
        generate_free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < settings->shapes; i++) {
        g->mean_ns[i] = 40000 * exp(0.8 * normal(g));
        g->spread_ns[i] = g->mean_ns[i] * (0.01 + 0.07 * uniform(g));
    }
    fill_table(g);
    for (uint32_t i = 0; i < settings->gpus; i++) {
        g->gpus[i].next_ns = g->gpus[i].block_ns = settings->start_ns + (int64_t)i * 1000003;
        for (uint32_t k = 0; k < STEP_LAUNCHES; k++)
            g->gpus[i].step[k] = draw_shape(g);
    }
    return g;
}

void generate_free(struct generator *g)
{
    if (!g)
        return;
    free(g->mean_ns);
    free(g->spread_ns);
    free(g->gpus);
    free(g);
}

static uint32_t next_shape(struct generator *g, struct gpu *gpu)
{
    if (!g->settings.step)
        return draw_shape(g);
    uint32_t *slot = &gpu->step[gpu->step_at++ % STEP_LAUNCHES];
    if (next_random(g) % 50 == 0)
        *slot = draw_shape(g);
    return *slot;
}

void generate_block(struct generator *g, uint32_t gpu_index, struct occ_store_launch *launches)
{
    struct gpu *gpu = &g->gpus[gpu_index];
    int64_t tick = g->settings.tick_ns ? g->settings.tick_ns : 1;
    if (gpu->block_ns > gpu->next_ns)
        gpu->next_ns = gpu->block_ns;
    gpu->block_ns += (int64_t)(GENERATE_BLOCK * 1e9 * g->settings.gpus / g->settings.launches_per_s);
    for (uint32_t i = 0; i < GENERATE_BLOCK; i++) {
        uint32_t shape = next_shape(g, gpu);
        double duration = g->mean_ns[shape] + g->spread_ns[shape] * normal(g);
        int64_t duration_ns = (int64_t)(duration < 1000 ? 1000 : duration) / tick * tick;
        gpu->next_ns += (int64_t)(-log(uniform(g)) * 1500);
        gpu->next_ns = gpu->next_ns / tick * tick;
        gpu->correlation += 1 + (uint32_t)(next_random(g) & 3);
        launches[i] = (struct occ_store_launch){.start_ns = gpu->next_ns,
                                                .duration_ns = (uint64_t)duration_ns,
                                                .config = shape,
                                                .stream = next_random(g) % 10 == 0 ? 14 : 7,
                                                .correlation = gpu->correlation,
                                                .context = 1};
        gpu->next_ns += duration_ns;
    }
}
