/* The chunk codec, histograms and totals: what goes in comes out, and nonsense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/bytes.h"
#include "store/codec/chunk_codec.h"
#include "store/codec/histogram.h"

struct codec {
    struct occ_chunk_encoder *encoder;
    struct occ_chunk_decoder *decoder;
    struct occ_store_launch *rows;
};

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int set_up(void **state)
{
    struct codec *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->encoder = occ_chunk_encoder_new();
    c->decoder = occ_chunk_decoder_new();
    c->rows = calloc(OCC_CHUNK_MAX_ROWS, sizeof *c->rows);
    assert_true(c->encoder && c->decoder && c->rows);
    *state = c;
    return 0;
}

static int tear_down(void **state)
{
    struct codec *c = *state;
    occ_chunk_encoder_free(c->encoder);
    occ_chunk_decoder_free(c->decoder);
    free(c->rows);
    free(c);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct occ_store_launch *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void check_view(const struct codec *c, const struct occ_chunk_view *v, uint32_t n, unsigned columns)
{
    assert_int_equal(v->n, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct occ_store_launch *r = &c->rows[i];
        if (columns & OCC_CHUNK_START)
            assert_true(v->start_ns[i] == (uint64_t)r->start_ns);
        if (columns & OCC_CHUNK_DURATION)
            assert_true(v->duration_ns[i] == r->duration_ns);
        if (columns & OCC_CHUNK_GRAPH_NODE)
            assert_true(v->graph_node[i] == r->graph_node);
        if (columns & OCC_CHUNK_SHAPE)
            assert_true(v->shape[i] == r->shape);
        if (columns & OCC_CHUNK_STREAM)
            assert_true(v->stream[i] == r->stream);
        if (columns & OCC_CHUNK_CORRELATION)
            assert_true(v->correlation[i] == r->correlation);
        if (columns & OCC_CHUNK_CONTEXT)
            assert_true(v->context[i] == r->context);
    }
}

/* Packs the first `n` rows both ways and unpacks every column alone and all together. Returns the small size. */
static size_t round_trip(struct codec *c, uint32_t n)
{
    size_t bytes = 0;
    qsort(c->rows, n, sizeof *c->rows, by_start);
    for (int small = 0; small <= 1; small++) {
        const uint8_t *data = NULL;
        struct occ_chunk_view view;
        assert_int_equal(occ_chunk_encode(c->encoder, c->rows, n, small, &data, &bytes), 0);
        for (unsigned columns = 1; columns <= OCC_CHUNK_ALL;
             columns = columns == 64 ? OCC_CHUNK_ALL : columns * 2) {
            assert_int_equal(occ_chunk_decode(c->decoder, data, bytes, columns, &view), 0);
            check_view(c, &view, n, columns);
        }
    }
    return bytes;
}

static uint64_t wild(unsigned bits)
{
    unsigned keep = (unsigned)(next_random() % (bits + 1));
    return keep == 0 ? 0 : next_random() >> (64 - keep);
}

static void random_rows(struct codec *c, uint32_t n, int kind)
{
    uint64_t start = INT64_C(1700000000000000000);
    for (uint32_t i = 0; i < n; i++) {
        struct occ_store_launch *r = &c->rows[i];
        start += 1000 + next_random() % 5000;
        *r = (struct occ_store_launch){.start_ns = (int64_t)start,
                                       .duration_ns = 20000 + next_random() % 3000,
                                       .shape = (uint32_t)(1 + next_random() % 300),
                                       .stream = 7,
                                       .correlation = i * 3,
                                       .context = 1};
        if (kind == 1) { /* anything at all */
            r->start_ns = (int64_t)(wild(62) + 1);
            r->duration_ns = wild(62);
            r->graph_node = wild(64);
            r->shape = (uint32_t)wild(32);
            r->stream = (uint32_t)wild(32);
            r->correlation = (uint32_t)wild(32);
            r->context = (uint32_t)wild(32);
        } else if (kind == 2) { /* a ticking clock, a graph replayed */
            r->start_ns = r->start_ns / 32 * 32;
            r->duration_ns = r->duration_ns / 32 * 32;
            r->graph_node = (UINT64_C(7) << 32) + i % 40;
            r->shape = 1 + i % 40;
            r->stream = 7 + i % 5;
        } else if (kind == 3) { /* more distinct symbols than bytes hold */
            r->shape = 1 + i;
            r->stream = (uint32_t)(next_random() % 20000);
        }
    }
}

static void what_goes_in_comes_out(void **state)
{
    struct codec *c = *state;
    static const uint32_t sizes[] = {1, 2, 3, 7, 63, 64, 65, 255, 1000, 4096, 20000};
    for (int kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            random_rows(c, sizes[i], kind);
            (void)round_trip(c, sizes[i]);
        }
    random_rows(c, OCC_CHUNK_MAX_ROWS, 3);
    (void)round_trip(c, OCC_CHUNK_MAX_ROWS);
}

static void extremes_come_out(void **state)
{
    struct codec *c = *state;
    const struct occ_store_launch odd[] = {
        {.start_ns = 0},
        {.start_ns = 0, .duration_ns = INT64_MAX},
        {.start_ns = INT64_MAX},
        {.start_ns = INT64_MAX,
         .graph_node = UINT64_MAX,
         .shape = UINT32_MAX,
         .stream = UINT32_MAX,
         .correlation = UINT32_MAX,
         .context = UINT32_MAX},
        {.start_ns = 1, .duration_ns = INT64_MAX - 1, .graph_node = 1},
    };
    for (uint32_t n = 1; n <= 5; n++) {
        memcpy(c->rows, odd, sizeof odd);
        (void)round_trip(c, n);
    }
}

static void what_repeats_is_small(void **state)
{
    struct codec *c = *state;
    random_rows(c, 65536, 0);
    size_t plain = round_trip(c, 65536);
    for (uint32_t i = 0; i < 65536; i++)
        c->rows[i].graph_node = 5; /* one value costs nothing */
    assert_in_range(round_trip(c, 65536), plain - 64, plain + 64);
    assert_true(plain < 65536 * 5);
    random_rows(c, 65536, 2);
    assert_true(round_trip(c, 65536) < 65536 * 3);
}

static void limits_are_kept(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    assert_int_equal(occ_chunk_encode(c->encoder, c->rows, 0, true, &data, &bytes), OCC_E_INVALID);
    assert_int_equal(occ_chunk_encode(c->encoder, c->rows, OCC_CHUNK_MAX_ROWS + 1, true, &data, &bytes),
                     OCC_E_INVALID);
}

static void damage_is_noticed(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_chunk_view view;
    random_rows(c, 500, 0);
    assert_int_equal(occ_chunk_encode(c->encoder, c->rows, 500, true, &data, &bytes), 0);
    uint8_t *copy = malloc(bytes + 1);
    assert_non_null(copy);
    for (size_t at = 0; at < bytes; at++) { /* the checksum sees every byte */
        memcpy(copy, data, bytes);
        copy[at] ^= (uint8_t)(1u << at % 8);
        assert_int_not_equal(occ_chunk_decode(c->decoder, copy, bytes, OCC_CHUNK_ALL, &view), 0);
    }
    memcpy(copy, data, bytes);
    for (size_t n = 0; n < bytes; n++)
        assert_int_not_equal(occ_chunk_decode(c->decoder, copy, n, OCC_CHUNK_ALL, &view), 0);
    copy[bytes] = 0;
    assert_int_not_equal(occ_chunk_decode(c->decoder, copy, bytes + 1, OCC_CHUNK_ALL, &view), 0);
    copy[0] = OCC_CHUNK_FORMAT + 1;
    assert_int_equal(occ_chunk_decode(c->decoder, copy, bytes, OCC_CHUNK_ALL, &view), OCC_E_VERSION);
    assert_int_equal(occ_chunk_decode(c->decoder, NULL, 0, OCC_CHUNK_ALL, &view), OCC_E_CORRUPT);
    free(copy);
}

static void totals_add_up(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_reader reader;
    struct occ_chunk_total total = {0};
    random_rows(c, 5000, 0);
    assert_int_equal(occ_chunk_encode(c->encoder, c->rows, 5000, true, &data, &bytes), 0);
    assert_int_equal(occ_chunk_encode_totals(c->encoder, &data, &bytes), 0);
    int64_t shapes = occ_chunk_totals_open(data, bytes, &reader);
    assert_int_equal(shapes, 300);
    for (int64_t i = 0; i < shapes; i++) {
        uint64_t n = 0, sum = 0, least = UINT64_MAX, most = 0;
        assert_true(occ_chunk_totals_next(&reader, &total));
        for (uint32_t k = 0; k < 5000; k++)
            if (c->rows[k].shape == total.shape) {
                n++;
                sum += c->rows[k].duration_ns;
                least = c->rows[k].duration_ns < least ? c->rows[k].duration_ns : least;
                most = c->rows[k].duration_ns > most ? c->rows[k].duration_ns : most;
            }
        assert_true(n == total.launches && sum == total.total_ns && least == total.min_ns &&
                    most == total.max_ns);
    }
    assert_false(occ_chunk_totals_next(&reader, &total));
}

static void histograms_hold_every_value(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint64_t v = 0; v < 100000; v++) {
        uint32_t bin = occ_histogram_bin(v);
        assert_true(bin == before || bin == before + 1);
        assert_true(occ_histogram_low(bin) <= v && v < occ_histogram_low(bin + 1));
        before = bin;
    }
    assert_true(occ_histogram_bin(UINT64_MAX) < OCC_HISTOGRAM_BINS);
    for (unsigned e = 3; e < 64; e++)
        assert_int_equal(occ_histogram_low(occ_histogram_bin(UINT64_C(1) << e)), UINT64_C(1) << e);
}

static void histograms_merge_and_travel(void **state)
{
    (void)state;
    struct occ_histogram a = {0}, b = {0}, both = {0}, back = {0};
    struct occ_writer w = {0};
    for (int i = 0; i < 3000; i++) {
        uint64_t v = wild(64);
        assert_true(occ_histogram_add(i % 2 ? &a : &b, v, 1));
        assert_true(occ_histogram_add(&both, v, 1));
    }
    assert_true(occ_histogram_merge(&a, &b));
    occ_histogram_write(&a, &w);
    assert_false(w.failed);
    assert_true(occ_histogram_add_bytes(&back, w.data, w.size));
    assert_int_equal(back.count, both.count);
    assert_memory_equal(back.bins, both.bins, both.count * sizeof *both.bins);
    static const uint8_t nonsense[] = {0xff, 0xff, 0xff, 0x7f, 1, 1};
    assert_false(occ_histogram_add_bytes(&back, nonsense, sizeof nonsense));
    occ_histogram_free(&a);
    occ_histogram_free(&b);
    occ_histogram_free(&both);
    occ_histogram_free(&back);
    free(w.data);
}

static void quantiles_are_near(void **state)
{
    (void)state;
    struct occ_histogram h = {0};
    assert_int_equal(occ_histogram_quantile(&h, 0.5), 0);
    for (uint64_t v = 1; v <= 100000; v++)
        assert_true(occ_histogram_add(&h, v, 1));
    for (double share = 0.05; share < 1; share += 0.05) {
        double q = (double)occ_histogram_quantile(&h, share), exact = share * 100000;
        assert_true(q > exact * 0.875 && q < exact * 1.125);
    }
    occ_histogram_free(&h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_goes_in_comes_out),
        TEST(extremes_come_out),
        TEST(what_repeats_is_small),
        TEST(limits_are_kept),
        TEST(damage_is_noticed),
        TEST(totals_add_up),
        cmocka_unit_test(histograms_hold_every_value),
        cmocka_unit_test(histograms_merge_and_travel),
        cmocka_unit_test(quantiles_are_near),
    };
    return cmocka_run_group_tests_name("store codec", tests, NULL, NULL);
}
