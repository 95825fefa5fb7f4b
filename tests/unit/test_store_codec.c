/* Packed columns and histograms: decoding returns the encoded values, and nonsense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "store/codec/bytes.h"
#include "store/codec/codes.h"
#include "store/codec/columns.h"
#include "store/codec/histogram.h"
#include "support/error.h"

#define LAUNCH_COLUMNS OCC_COLUMN_BITS(config, graph_node)

static const uint32_t sets[] = {LAUNCH_COLUMNS, OCC_VALUE_COLUMNS, OCC_SAMPLE_COLUMNS};

struct codec {
    struct occ_columns_encoder *encoder;
    struct occ_columns_decoder *decoder;
    uint64_t *column[OCC_COLUMN_none];
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
    c->encoder = occ_columns_encoder_new();
    c->decoder = occ_columns_decoder_new();
    assert_true(c->encoder && c->decoder);
    for (unsigned i = 0; i < OCC_COLUMN_none; i++) {
        c->column[i] = calloc(OCC_COLUMNS_MAX_ROWS, sizeof *c->column[i]);
        assert_non_null(c->column[i]);
    }
    *state = c;
    return 0;
}

static int tear_down(void **state)
{
    struct codec *c = *state;
    occ_columns_encoder_free(c->encoder);
    occ_columns_decoder_free(c->decoder);
    for (unsigned i = 0; i < OCC_COLUMN_none; i++)
        free(c->column[i]);
    free(c);
    return 0;
}

static int encode(struct codec *c, uint32_t set, uint32_t n, bool compress, const uint8_t **ret_data,
                  size_t *ret_bytes)
{
    struct occ_column_source sources[OCC_COLUMN_none] = {{0}};
    for (unsigned i = 0; i < OCC_COLUMN_none; i++)
        if (set >> i & 1)
            sources[i] = (struct occ_column_source){c->column[i], 8, 8};
    return occ_columns_encode(c->encoder, sources, n, compress, ret_data, ret_bytes);
}

static void check_columns(const struct codec *c, const struct occ_columns *back, uint32_t n, uint32_t wanted)
{
    assert_int_equal(back->n, n);
    for (unsigned i = 0; i < OCC_COLUMN_none; i++)
        if (wanted >> i & 1)
            assert_memory_equal(back->column[i], c->column[i], n * sizeof *c->column[i]);
}

/* Packs the first `n` rows both ways, unpacks each column alone and all together. Returns the compressed
 * size. */
static size_t round_trip(struct codec *c, uint32_t set, uint32_t n)
{
    size_t bytes = 0;
    for (int compress = 0; compress <= 1; compress++) {
        const uint8_t *data = NULL;
        struct occ_columns back;
        assert_int_equal(encode(c, set, n, compress, &data, &bytes), 0);
        assert_int_equal(occ_columns_decode(c->decoder, data, bytes, set, &back), 0);
        check_columns(c, &back, n, set);
        for (unsigned i = 0; i < OCC_COLUMN_none; i++)
            if (set >> i & 1) {
                assert_int_equal(occ_columns_decode(c->decoder, data, bytes, UINT32_C(1) << i, &back), 0);
                check_columns(c, &back, n, UINT32_C(1) << i);
            }
    }
    return bytes;
}

static uint64_t wild(unsigned bits)
{
    unsigned keep = (unsigned)(next_random() % (bits + 1));
    return keep == 0 ? 0 : next_random() >> (64 - keep);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Fills the columns with random values of any size that their formats hold. */
static void wild_rows(struct codec *c, uint32_t n)
{
    for (unsigned i = 0; i < OCC_COLUMN_none; i++)
        for (uint32_t row = 0; row < n; row++)
            c->column[i][row] = wild(occ_column_formats[i].bits);
    qsort(c->column[OCC_COLUMN_start_ns], n, 8, by_value);
    for (uint32_t row = 0; row < n; row++)
        for (unsigned k = OCC_COLUMN_duration_ns; k <= OCC_COLUMN_start_ns; k += 2) /* the end is < 2^63 */
            c->column[k][row] >>= 1;
}

/* kind 0: launches of 300 configurations on one stream; 1: a clock that ticks every 32 ns and a graph that is
 * replayed; 2: more configurations and streams than last[] has places. */
static void random_rows(struct codec *c, uint32_t n, int kind)
{
    uint64_t start = UINT64_C(1700000000000000000), mask = kind == 1 ? ~UINT64_C(31) : ~UINT64_C(0);
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned k = OCC_COLUMN_achieved; k < OCC_COLUMN_none; k++)
            c->column[k][i] = i % 5 == 0 ? UINT16_MAX : 4000 + next_random() % 100;
        start += 1000 + next_random() % 5000;
        c->column[OCC_COLUMN_start_ns][i] = start & mask;
        c->column[OCC_COLUMN_duration_ns][i] = (20000 + next_random() % 3000) & mask;
        c->column[OCC_COLUMN_config][i] = kind == 0   ? 1 + next_random() % 300
                                          : kind == 1 ? 1 + i % 40
                                                      : 1 + i;
        c->column[OCC_COLUMN_stream][i] = kind == 0 ? 7 : kind == 1 ? 7 + i % 5 : next_random() % 20000;
        c->column[OCC_COLUMN_correlation][i] = i * 3;
        c->column[OCC_COLUMN_context][i] = 1;
        c->column[OCC_COLUMN_graph_node][i] = kind == 1 ? (UINT64_C(7) << 32) + i % 40 : 0;
    }
}

static void what_goes_in_comes_out(void **state)
{
    struct codec *c = *state;
    static const uint32_t sizes[] = {1, 2, 3, 63, 255, 256, 257, 511, 512, 513, 1000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
            wild_rows(c, sizes[i]);
            (void)round_trip(c, sets[set], sizes[i]);
            for (int kind = 0; kind < 3; kind++) {
                random_rows(c, sizes[i], kind);
                (void)round_trip(c, sets[set], sizes[i]);
            }
        }
    random_rows(c, OCC_COLUMNS_MAX_ROWS, 2);
    (void)round_trip(c, LAUNCH_COLUMNS, OCC_COLUMNS_MAX_ROWS);
}

static void extremes_come_out(void **state)
{
    struct codec *c = *state;
    for (uint32_t n = 1; n <= 4; n++) {
        for (unsigned i = 0; i < OCC_COLUMN_none; i++)
            for (uint32_t row = 0; row < n; row++)
                c->column[i][row] = row % 2 ? UINT64_MAX >> (64 - occ_column_formats[i].bits) : 0;
        for (uint32_t row = 0; row < n; row++) {
            c->column[OCC_COLUMN_start_ns][row] = row < 2 ? 0 : INT64_MAX;
            c->column[OCC_COLUMN_duration_ns][row] = row == 1 ? INT64_MAX : 0;
        }
        (void)round_trip(c, LAUNCH_COLUMNS, n);
        (void)round_trip(c, OCC_COLUMN_BITS(config, number7), n);
    }
}

/* A plane that begins late is 0 before, whatever its memory held. */
static void large_values_come_late(void **state)
{
    struct codec *c = *state;
    wild_rows(c, 2000);
    (void)round_trip(c, LAUNCH_COLUMNS, 2000);
    for (uint32_t i = 0; i < 2000; i++)
        for (unsigned k = 0; k <= OCC_COLUMN_graph_node; k++)
            c->column[k][i] = i < 1999 ? i / 1000 : i % 4 + 0x12345678;
    (void)round_trip(c, LAUNCH_COLUMNS, 2000);
}

static void members_of_any_size_go_in(void **state)
{
    struct codec *c = *state;
    static struct {
        uint16_t achieved;
        uint32_t config;
        int64_t start_ns;
    } rows[300];
    const struct occ_column_source sources[OCC_COLUMN_none] = {
        [OCC_COLUMN_config] = OCC_COLUMN_FROM(rows, config),
        [OCC_COLUMN_start_ns] = OCC_COLUMN_FROM(rows, start_ns),
        [OCC_COLUMN_achieved] = OCC_COLUMN_FROM(rows, achieved),
    };
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_columns back;
    for (uint32_t i = 0; i < 300; i++) {
        rows[i].achieved = (uint16_t)(i * 7919);
        rows[i].config = (uint32_t)next_random();
        rows[i].start_ns = INT64_C(1700000000000000000) + i;
    }
    assert_int_equal(occ_columns_encode(c->encoder, sources, 300, true, &data, &bytes), 0);
    assert_int_equal(occ_columns_decode(
                         c->decoder, data, bytes,
                         OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BIT(achieved), &back),
                     0);
    for (uint32_t i = 0; i < 300; i++)
        assert_true(back.config[i] == rows[i].config && back.start_ns[i] == (uint64_t)rows[i].start_ns &&
                    back.achieved[i] == rows[i].achieved);
    assert_null(back.duration_ns);
}

/* Launches without ranges have no such column; one that was not asked for is not made up. */
static void ranges_are_optional(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_columns back;
    random_rows(c, 300, 0);
    assert_int_equal(encode(c, LAUNCH_COLUMNS, 300, true, &data, &bytes), 0);
    assert_int_equal(occ_columns_decode(c->decoder, data, bytes, LAUNCH_COLUMNS, &back), 0);
    assert_null(back.range);
    assert_int_equal(occ_columns_decode(c->decoder, data, bytes, OCC_COLUMN_BIT(range), &back), 0);
    for (uint32_t i = 0; i < 300; i++)
        assert_int_equal(back.range[i], 0);
    assert_int_equal(occ_columns_decode(c->decoder, data, bytes, OCC_COLUMN_BIT(number7), &back),
                     OCC_E_CORRUPT);
}

static void what_repeats_is_small(void **state)
{
    struct codec *c = *state;
    random_rows(c, 65536, 0);
    size_t plain = round_trip(c, LAUNCH_COLUMNS, 65536);
    for (uint32_t i = 0; i < 65536; i++)
        c->column[OCC_COLUMN_graph_node][i] = 5; /* one value costs nothing */
    assert_in_range(round_trip(c, LAUNCH_COLUMNS, 65536), plain - 64, plain + 64);
    assert_true(plain < 65536 * 5);
    random_rows(c, 65536, 1);
    assert_true(round_trip(c, LAUNCH_COLUMNS, 65536) < 65536 * 3);
}

/* zstd's short matches in noise cost more than they save: a plane is smaller than by zstd's level 1 as it
 * comes. */
static void noise_is_not_matched(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    static uint8_t frame[2 * 65536];
    for (uint32_t i = 1; i < 65536; i++)
        c->column[OCC_COLUMN_correlation][i] =
            c->column[OCC_COLUMN_correlation][i - 1] + 1 + next_random() % 4;
    assert_int_equal(encode(c, OCC_COLUMN_BIT(correlation), 65536, false, &data, &bytes), 0);
    size_t as_it_comes = ZSTD_compress(frame, sizeof frame, data + bytes - 65536, 65536, 1);
    assert_int_equal(encode(c, OCC_COLUMN_BIT(correlation), 65536, true, &data, &bytes), 0);
    assert_true(bytes < as_it_comes);
}

static void limits_are_kept(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    assert_int_equal(encode(c, LAUNCH_COLUMNS, 0, true, &data, &bytes), OCC_E_INVALID);
    assert_int_equal(encode(c, LAUNCH_COLUMNS, OCC_COLUMNS_MAX_ROWS + 1, true, &data, &bytes), OCC_E_INVALID);
}

static void damage_is_noticed(void **state)
{
    struct codec *c = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct occ_columns back;
    for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
        random_rows(c, 500, 0);
        assert_int_equal(encode(c, sets[set], 500, true, &data, &bytes), 0);
        uint8_t *copy = malloc(bytes + 1);
        assert_non_null(copy);
        for (size_t at = 0; at < bytes; at++) { /* the checksum sees every byte */
            memcpy(copy, data, bytes);
            copy[at] ^= (uint8_t)(1u << at % 8);
            assert_int_not_equal(occ_columns_decode(c->decoder, copy, bytes, sets[set], &back), 0);
        }
        memcpy(copy, data, bytes);
        for (size_t n = 0; n < bytes; n++)
            assert_int_not_equal(occ_columns_decode(c->decoder, copy, n, sets[set], &back), 0);
        copy[bytes] = 0;
        assert_int_not_equal(occ_columns_decode(c->decoder, copy, bytes + 1, sets[set], &back), 0);
        free(copy);
    }
    assert_int_equal(occ_columns_decode(c->decoder, NULL, 0, 0, &back), OCC_E_CORRUPT);
}

/* ---- bounds of the decoder: bytes made by hand, with the right checksum, in an allocation of just their
 * size ---- */

static int decode_bytes(struct codec *c, uint32_t format, uint32_t n, uint32_t set, const void *rest,
                        size_t rest_bytes, uint32_t wanted, struct occ_columns *back)
{
    struct occ_writer w = {0};
    occ_write_little_endian(&w, format, 4);
    occ_write_little_endian(&w, n, 4);
    occ_write_little_endian(&w, 0, 8);
    occ_write_little_endian(&w, set, 4);
    occ_write_bytes(&w, rest, rest_bytes);
    uint8_t *exact = malloc(w.size);
    assert_true(!w.failed && exact);
    memcpy(exact, w.data, w.size);
    occ_columns_seal(exact, w.size);
    int rc = occ_columns_decode(c->decoder, exact, w.size, wanted, back);
    free(exact);
    free(w.data);
    return rc;
}

/* Decodes a single column, once skipped and once wanted; both must return the same code. */
static int decode_one(struct codec *c, uint32_t n, enum occ_column column, const void *rest,
                      size_t rest_bytes)
{
    struct occ_columns back;
    uint32_t set = UINT32_C(1) << column;
    int passed = decode_bytes(c, OCC_COLUMNS_FORMAT, n, set, rest, rest_bytes, 0, &back);
    int rc = decode_bytes(c, OCC_COLUMNS_FORMAT, n, set, rest, rest_bytes, set, &back);
    assert_int_equal(passed, rc);
    return rc;
}

static void the_header_is_checked(void **state)
{
    struct codec *c = *state;
    struct occ_columns back;
    const uint8_t zeros[2] = {0};
    const uint32_t last = UINT32_C(1) << (OCC_COLUMN_none - 1), beyond = UINT32_C(1) << OCC_COLUMN_none;
    assert_int_equal(decode_bytes(c, 1, 1, 0, NULL, 0, 0, &back), 0);
    assert_int_equal(decode_bytes(c, 0, 1, 0, NULL, 0, 0, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 2, 1, 0, NULL, 0, 0, &back), OCC_E_VERSION);
    assert_int_equal(decode_bytes(c, 1 << 24, 1, 0, NULL, 0, 0, &back), OCC_E_VERSION);
    assert_int_equal(decode_bytes(c, 1, 0, 0, NULL, 0, 0, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, OCC_COLUMNS_MAX_ROWS, last, zeros, 2, last, &back), 0);
    assert_int_equal(back.n, OCC_COLUMNS_MAX_ROWS);
    assert_int_equal(decode_bytes(c, 1, OCC_COLUMNS_MAX_ROWS + 1, last, zeros, 2, last, &back),
                     OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, 1, beyond, zeros, 2, 0, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, 1, beyond, NULL, 0, 0, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, 1, last, zeros, 2, last | 1, &back), OCC_E_CORRUPT); /* not there */
    uint8_t header[OCC_COLUMNS_HEADER_BYTES + 4] = {1, 0, 0, 0, 1};
    for (size_t bytes = OCC_COLUMNS_HEADER_BYTES; bytes <= sizeof header; bytes++) {
        uint8_t *exact = malloc(bytes);
        assert_non_null(exact);
        memcpy(exact, header, bytes);
        occ_columns_seal(exact, bytes);
        assert_int_equal(occ_columns_decode(c->decoder, exact, bytes, 0, &back),
                         bytes == sizeof header ? 0 : OCC_E_CORRUPT);
        free(exact);
    }
}

static void planes_are_checked(void **state)
{
    struct codec *c = *state;
    uint8_t bytes[64] = {0};
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, 0), OCC_E_CORRUPT); /* no base */
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, (uint8_t[]){0x80, 0}, 2),
                     OCC_E_CORRUPT);                                                /* 0x80 goes on */
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, 1), OCC_E_CORRUPT); /* no number of planes */
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, 2), 0);
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, 3), OCC_E_CORRUPT); /* one byte more */
    bytes[1] = 1;
    for (size_t n = 2; n < 8; n++) /* base, planes, kind, 3 rows */
        assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, n), n == 6 ? 0 : OCC_E_CORRUPT);
    bytes[2] = 2; /* neither as it is nor zstd */
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_stream, bytes, 6), OCC_E_CORRUPT);
    bytes[2] = 0;
    bytes[1] = 8;
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_graph_node, bytes, 2 + 8 * 4), 0);
    bytes[1] = 9;
    assert_int_equal(decode_one(c, 3, OCC_COLUMN_graph_node, bytes, 2 + 9 * 4), OCC_E_CORRUPT);
}

/* The column `stream` of 100 equal rows, compressed: base, 1 plane, kind, frame. */
static size_t frame_of(struct codec *c, uint32_t n, uint8_t frame[64])
{
    const uint8_t *data = NULL;
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        c->column[OCC_COLUMN_stream][i] = i > 0;
    assert_int_equal(encode(c, OCC_COLUMN_BIT(stream), n, true, &data, &bytes), 0);
    size_t rest = bytes - OCC_COLUMNS_HEADER_BYTES - 4;
    assert_true(rest < 60 && data[OCC_COLUMNS_HEADER_BYTES + 6] == 1);
    memcpy(frame, data + OCC_COLUMNS_HEADER_BYTES + 4, rest);
    return rest;
}

static void frames_are_checked(void **state)
{
    struct codec *c = *state;
    struct occ_columns back;
    uint8_t bytes[64] = {0};
    const uint32_t set = OCC_COLUMN_BIT(stream);
    size_t rest = frame_of(c, 100, bytes);
    for (size_t n = 3; n <= rest + 1; n++)
        assert_int_equal(decode_one(c, 100, OCC_COLUMN_stream, bytes, n), n == rest ? 0 : OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, 99, set, bytes, rest, set, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_bytes(c, 1, 101, set, bytes, rest, set, &back), OCC_E_CORRUPT);
    bytes[2] = 2; /* neither as it is nor zstd */
    assert_int_equal(decode_one(c, 100, OCC_COLUMN_stream, bytes, rest), OCC_E_CORRUPT);
    bytes[2] = 1;
    bytes[3] ^= 1; /* not zstd's magic number */
    assert_int_equal(decode_one(c, 100, OCC_COLUMN_stream, bytes, rest), OCC_E_CORRUPT);
}

static void values_keep_their_bits(void **state)
{
    struct codec *c = *state;
    struct occ_columns back;
    /* base 2^64 - 1, 8 planes of 2 rows: the codes are 0 and 2^64 - 1, as a difference -2^63 */
    uint8_t bytes[11 + 8 * 3] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 8};
    for (unsigned p = 0; p < 8; p++)
        bytes[11 + 3 * p + 2] = 0xff;
    for (unsigned i = 0; i < OCC_COLUMN_none; i++) {
        uint64_t mask = UINT64_MAX >> (64 - occ_column_formats[i].bits);
        if (i == OCC_COLUMN_start_ns) /* descends */
            continue;
        assert_int_equal(
            decode_bytes(c, 1, 2, UINT32_C(1) << i, bytes, sizeof bytes, UINT32_C(1) << i, &back), 0);
        assert_true(back.column[i][0] == mask);
        assert_true(back.column[i][1] == (occ_column_formats[i].as_is ? 0 : (UINT64_MAX >> 1 & mask)));
    }
}

/* Two rows of one stream: starts and durations, each as base and the second row's code. */
static int decode_times(struct codec *c, uint64_t duration, uint8_t duration_code, uint64_t start,
                        uint8_t start_code, struct occ_columns *back)
{
    struct occ_writer w = {0};
    occ_write_varint(&w, duration);
    occ_write_bytes(&w, (uint8_t[]){1, 0, 0, duration_code}, 4);
    occ_write_varint(&w, start);
    occ_write_bytes(&w, (uint8_t[]){1, 0, 0, start_code}, 4);
    int rc = decode_bytes(c, 1, 2, OCC_COLUMN_BIT(duration_ns) | OCC_COLUMN_BIT(start_ns), w.data, w.size,
                          OCC_COLUMN_BIT(start_ns), back);
    free(w.data);
    return rc;
}

static void times_are_checked(void **state)
{
    struct codec *c = *state;
    struct occ_columns back;
    /* starts 1000 and 1000 + 10 - 10: equal; then one less */
    assert_int_equal(decode_times(c, 10, 0, 1000, 19, &back), 0);
    assert_true(back.start_ns[1] == 1000 && back.duration_ns[1] == 10);
    assert_int_equal(decode_times(c, 10, 0, 1000, 21, &back), OCC_E_CORRUPT);
    /* the second ends at 2^63 - 1; at 2^63; starts at 2^63, which wraps */
    assert_int_equal(decode_times(c, 10, 0, INT64_MAX - 20, 0, &back), 0);
    assert_true(back.start_ns[1] == INT64_MAX - 10);
    assert_int_equal(decode_times(c, 10, 0, INT64_MAX - 20, 2, &back), OCC_E_CORRUPT);
    assert_int_equal(decode_times(c, 10, 0, INT64_MAX - 20, 22, &back), OCC_E_CORRUPT);
    /* the first ends at 2^63 - 1, at 2^63 */
    assert_int_equal(decode_times(c, 10, 19, INT64_MAX - 10, 19, &back), 0);
    assert_int_equal(decode_times(c, 10, 19, INT64_MAX - 9, 19, &back), OCC_E_CORRUPT);
}

/* Keys 4096 apart share a place in last[], keys 4095 apart do not. */
static void keys_share_places(void **state)
{
    struct codec *c = *state;
    struct occ_columns back;
    const uint32_t set = OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(duration_ns);
    for (unsigned apart = 4095; apart <= 4096; apart++) {
        struct occ_writer w = {0};
        occ_write_varint(&w, 1);
        occ_write_bytes(&w, (uint8_t[]){2, 0, 0, (uint8_t)(apart + 1) ^ 1, 0, 0, (uint8_t)((apart + 1) >> 8)},
                        7);
        occ_write_varint(&w, 100);
        occ_write_bytes(&w, (uint8_t[]){1, 0, 10, 2}, 4); /* + 5, + 1 */
        assert_int_equal(decode_bytes(c, 1, 2, set, w.data, w.size, set, &back), 0);
        assert_int_equal(back.config[1], apart + 1);
        assert_int_equal(back.duration_ns[0], 105);
        assert_int_equal(back.duration_ns[1], apart == 4096 ? 106 : 101);
        free(w.data);
    }
}

/* ---- histograms ---- */

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
    occ_histogram_write(&b, &w);
    assert_int_equal(occ_histogram_add_bytes(&a, w.data, w.size), 0);
    w.size = 0;
    occ_histogram_write(&a, &w);
    assert_false(w.failed);
    assert_int_equal(occ_histogram_add_bytes(&back, w.data, w.size), 0);
    assert_int_equal(back.count, both.count);
    assert_memory_equal(back.bins, both.bins, both.count * sizeof *both.bins);
    static const uint8_t nonsense[] = {0xff, 0xff, 0xff, 0x7f, 1, 1};
    assert_int_equal(occ_histogram_add_bytes(&back, nonsense, sizeof nonsense), OCC_E_CORRUPT);
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
        TEST(large_values_come_late),
        TEST(members_of_any_size_go_in),
        TEST(what_repeats_is_small),
        TEST(ranges_are_optional),
        TEST(noise_is_not_matched),
        TEST(limits_are_kept),
        TEST(damage_is_noticed),
        TEST(the_header_is_checked),
        TEST(planes_are_checked),
        TEST(frames_are_checked),
        TEST(values_keep_their_bits),
        TEST(times_are_checked),
        TEST(keys_share_places),
        cmocka_unit_test(histograms_hold_every_value),
        cmocka_unit_test(histograms_merge_and_travel),
        cmocka_unit_test(quantiles_are_near),
    };
    return cmocka_run_group_tests_name("store codec", tests, NULL, NULL);
}
