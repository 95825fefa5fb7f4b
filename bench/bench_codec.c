/*
 * Measures the cost of the codec per launch: bytes, nanoseconds of encoding, of decoding all columns, and of
 * decoding configuration and duration alone. Chunks of 65536 launches of one GPU, compressed: independently
 * drawn configurations, a training step, a training step on a clock that ticks every 32 ns (generate.h); and
 * chunks of 1250 launches, not compressed, as the history stores its last seconds. CPU times of this thread,
 * medians of several rounds.
 */
#include "bench_codec.h"

#include <stdbool.h>

#include "bench_report.h"
#include "generate.h"
#include "store/codec/columns.h"

#define LAUNCHES (8u * 65536u)
#define ROUNDS   9
#define ALL      OCC_COLUMN_BITS(config, graph_node)
#define BEGIN_NS (INT64_C(1700000000) * 1000000000)

struct data {
    const char *name;
    bool step;
    uint32_t tick_ns, rows; /* rows of a chunk */
};

struct codec {
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    struct occ_store_launch *launches;
};

struct costs {
    double bytes, encode_ns, decode_ns, decode_duration_ns;
};

static void die(void)
{
    (void)fprintf(stderr, "bench_store: the codec fails\n");
    exit(1);
}

static double cpu_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void generate(const struct data *data, struct occ_store_launch *launches)
{
    struct generator *g = generate_new(&(struct generate_settings){.seed = 42,
                                                                   .start_ns = BEGIN_NS,
                                                                   .gpus = 8,
                                                                   .shapes = 1000,
                                                                   .launches_per_s = 10000,
                                                                   .step = data->step,
                                                                   .tick_ns = data->tick_ns});
    if (!g)
        die();
    for (uint32_t i = 0; i < LAUNCHES; i += GENERATE_BLOCK)
        generate_block(g, 0, launches + i);
    generate_free(g);
}

static double decode(const struct codec *c, const uint8_t *bytes, size_t n, uint32_t columns)
{
    struct occ_columns decoded;
    double begin = cpu_now_ns();
    if (occ_columns_decode(c->decoder, bytes, n, columns, &decoded) != 0)
        die();
    return cpu_now_ns() - begin;
}

static void run_chunk(const struct codec *c, const struct occ_store_launch *rows, uint32_t n, bool compress,
                      struct costs *sum)
{
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_duration_ns] = OCC_COLUMN_FROM(rows, duration_ns),
        [OCC_COLUMN_stream] = OCC_COLUMN_FROM(rows, stream),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_correlation] = OCC_COLUMN_FROM(rows, correlation),
        [OCC_COLUMN_context] = OCC_COLUMN_FROM(rows, context),
        [OCC_COLUMN_graph_node] = OCC_COLUMN_FROM(rows, graph_node),
    };
    const uint8_t *bytes = NULL;
    size_t size = 0;
    double begin = cpu_now_ns();
    if (occ_columns_encode(c->encoder, sources, n, compress, &bytes, &size) != 0)
        die();
    sum->encode_ns += cpu_now_ns() - begin;
    sum->bytes += (double)size;
    sum->decode_ns += decode(c, bytes, size, ALL);
    sum->decode_duration_ns += decode(c, bytes, size, OCC_COLUMN_BITS(config, duration_ns));
}

static void print_data(const struct codec *c, const struct data *data, const char *end)
{
    double encode_ns[ROUNDS], decode_ns[ROUNDS], duration_ns[ROUNDS], bytes = 0;
    uint32_t n = LAUNCHES / data->rows * data->rows;
    generate(data, c->launches);
    for (int round = 0; round < ROUNDS; round++) {
        struct costs sum = {0};
        for (uint32_t at = 0; at < n; at += data->rows)
            run_chunk(c, c->launches + at, data->rows, data->rows > 10000, &sum);
        encode_ns[round] = sum.encode_ns / n;
        decode_ns[round] = sum.decode_ns / n;
        duration_ns[round] = sum.decode_duration_ns / n;
        bytes = sum.bytes / n;
    }
    (void)printf("    \"%s\": {\"bytes\": %.3f, \"encode_ns\": %.1f, \"decode_ns\": %.1f, "
                 "\"decode_config_and_duration_ns\": %.1f}%s\n",
                 data->name, bytes, bench_median(encode_ns, ROUNDS), bench_median(decode_ns, ROUNDS),
                 bench_median(duration_ns, ROUNDS), end);
}

void bench_codec_print(void)
{
    static const struct data kinds[] = {{"independent", false, 0, 65536},
                                        {"training_step", true, 0, 65536},
                                        {"training_step_32_ns_clock", true, 32, 65536},
                                        {"last_seconds", false, 0, 1250}};
    struct codec c = {occ_columns_encoder_new(), occ_columns_decoder_new(),
                      calloc(LAUNCHES, sizeof *c.launches)};
    if (!c.encoder || !c.decoder || !c.launches)
        die();
    (void)printf("  \"codec\": {\n");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        print_data(&c, &kinds[i], i + 1 < sizeof kinds / sizeof *kinds ? "," : "");
    (void)printf("  },\n");
    occ_columns_encoder_free(c.encoder);
    occ_columns_decoder_free(c.decoder);
    free(c.launches);
}
