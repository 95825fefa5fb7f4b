/*
 * The unpacking half of the chunk codec (format: chunk_codec.h). Every length is checked against what the number of
 * rows allows before memory is taken or read. Scratch memory grows to the largest chunk seen. One thread at a time.
 */
#include "chunk_codec.h"

#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "bytes.h"
#include "chunk_model.h"

struct occ_chunk_decoder {
    uint32_t capacity;
    uint64_t *start, *duration, *graph_node;
    uint32_t *shape, *stream, *correlation, *context;
    uint32_t *shape_rank, *stream_rank, *other_rank;
    uint64_t *value; /* the dictionary at work */
    struct chunk_model *models;
    uint32_t models_capacity;
    uint64_t *last_end;
    uint32_t last_end_capacity;
    uint32_t value_capacity;
    uint32_t *context_slots;
    struct occ_stream bytes, low, extra;
    ZSTD_DCtx *zstd;
};

enum section {
    SECTION_SHAPE,
    SECTION_DURATION,
    SECTION_STREAM,
    SECTION_START,
    SECTION_CORRELATION,
    SECTION_CONTEXT,
    SECTION_GRAPH_NODE,
    SECTION_COUNT
};

/* A chunk at work. */
struct chunk {
    uint32_t n;
    uint64_t base, divisor;
    struct occ_reader section[SECTION_COUNT];
    uint32_t shapes, streams; /* distinct */
};

struct occ_chunk_decoder *occ_chunk_decoder_new(void)
{
    struct occ_chunk_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->zstd = ZSTD_createDCtx();
    d->context_slots = malloc(CHUNK_CONTEXT_SLOTS * sizeof *d->context_slots);
    if (d->zstd && d->context_slots)
        return d;
    occ_chunk_decoder_free(d);
    return NULL;
}

static void free_columns(struct occ_chunk_decoder *d)
{
    void *const arrays[] = {d->start,       d->duration, d->graph_node, d->shape,       d->stream,
                            d->correlation, d->context,  d->shape_rank, d->stream_rank, d->other_rank};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    d->start = d->duration = d->graph_node = NULL;
    d->shape = d->stream = d->correlation = d->context = d->shape_rank = d->stream_rank = d->other_rank =
        NULL;
    d->capacity = 0;
}

void occ_chunk_decoder_free(struct occ_chunk_decoder *d)
{
    if (!d)
        return;
    free_columns(d);
    free(d->value);
    free(d->models);
    free(d->last_end);
    free(d->context_slots);
    free(d->bytes.memory);
    free(d->low.memory);
    free(d->extra.memory);
    ZSTD_freeDCtx(d->zstd);
    free(d);
}

static bool make_room(struct occ_chunk_decoder *d, uint32_t n)
{
    if (n <= d->capacity)
        return true;
    free_columns(d);
#define ARRAY(member) ((d->member = malloc(n * sizeof *d->member)) != NULL)
    bool ok = ARRAY(start) && ARRAY(duration) && ARRAY(graph_node) && ARRAY(shape) && ARRAY(stream) &&
              ARRAY(correlation) && ARRAY(context) && ARRAY(shape_rank) && ARRAY(stream_rank) &&
              ARRAY(other_rank);
#undef ARRAY
    if (ok)
        d->capacity = n;
    else
        free_columns(d);
    return ok;
}

/* `*array` holds at least `n` elements; what was in it is lost. */
static bool at_least(void *array, uint32_t *capacity, uint32_t n, size_t element)
{
    void *bigger = NULL;
    if (n <= *capacity)
        return true;
    memcpy(&bigger, array, sizeof bigger);
    free(bigger);
    bigger = malloc(n * element);
    memcpy(array, &bigger, sizeof bigger);
    *capacity = bigger ? n : 0;
    return bigger != NULL;
}

/* ---- streams ---- */

static int read_stream(struct occ_chunk_decoder *d, struct occ_reader *r, size_t most, struct occ_stream *s)
{
    return occ_stream_read(d->zstd, r, most, s);
}

/* ---- symbols ---- */

static int read_dictionary(struct occ_chunk_decoder *d, struct occ_reader *r, uint32_t n, uint64_t most,
                           uint32_t *ret_count)
{
    uint64_t count = occ_read_varint(r);
    if (r->failed || count == 0 || count > n)
        return OCC_E_CORRUPT;
    if (!at_least(&d->value, &d->value_capacity, (uint32_t)count, sizeof *d->value))
        return OCC_E_NO_MEMORY;
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        before += (uint64_t)occ_unzigzag(occ_read_varint(r));
        if (before > most)
            return OCC_E_CORRUPT;
        d->value[i] = before;
    }
    *ret_count = (uint32_t)count;
    return r->failed ? OCC_E_CORRUPT : 0;
}

static int read_packed(struct occ_chunk_decoder *d, struct occ_reader *r, uint32_t n, unsigned bits,
                       uint32_t count, uint32_t *rank)
{
    uint32_t per_byte = 8 / bits, bytes = (n + per_byte - 1) / per_byte, mask = (1u << bits) - 1, largest = 0;
    int rc = read_stream(d, r, bytes, &d->bytes);
    if (rc != 0 || d->bytes.size != bytes)
        return rc != 0 ? rc : OCC_E_CORRUPT;
    unsigned shift = bits == 1 ? 3 : bits == 2 ? 2 : 1;
    for (uint32_t i = 0; i < n; i++) {
        rank[i] = (uint32_t)(d->bytes.data[i >> shift] >> ((i & (per_byte - 1)) * bits)) & mask;
        largest = rank[i] > largest ? rank[i] : largest;
    }
    return largest < count ? 0 : OCC_E_CORRUPT;
}

/* Where the rare, large ranks come from. */
struct rank_reader {
    const uint8_t *low, *low_end;
    struct occ_reader extra;
    bool failed;
};

static inline uint32_t large_rank(struct rank_reader *c, uint8_t byte)
{
    if (byte == CHUNK_ESCAPE) {
        uint64_t rank = occ_read_varint(&c->extra);
        c->failed |= c->extra.failed || rank > OCC_CHUNK_MAX_ROWS;
        return (uint32_t)rank;
    }
    if (c->low == c->low_end) {
        c->failed = true;
        return 0;
    }
    return CHUNK_RANK_DIRECT + ((uint32_t)(byte - CHUNK_RANK_DIRECT) << 8) + *c->low++;
}

static void ranks_direct(const uint8_t *bytes, uint32_t n, struct rank_reader *c, uint32_t *rank)
{
    for (uint32_t i = 0; i < n; i++)
        rank[i] = bytes[i] < CHUNK_RANK_DIRECT ? bytes[i] : large_rank(c, bytes[i]);
}

static void ranks_by_context(const uint8_t *bytes, uint32_t n, struct rank_reader *c, uint32_t *slots,
                             uint32_t *rank)
{
    uint64_t history = 0;
    memset(slots, 0xff, CHUNK_CONTEXT_SLOTS * sizeof *slots);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *slot = &slots[chunk_context_slot(history)];
        if (bytes[i] != 0)
            *slot = (bytes[i] < CHUNK_RANK_DIRECT ? bytes[i] : large_rank(c, bytes[i])) - 1;
        rank[i] = *slot;
        history = chunk_context_push(history, *slot);
    }
}

static int read_ranks(struct occ_chunk_decoder *d, struct occ_reader *r, uint32_t n, bool context,
                      uint32_t count, uint32_t *rank)
{
    int rc = read_stream(d, r, n, &d->bytes);
    if (rc == 0)
        rc = read_stream(d, r, n, &d->low);
    if (rc == 0)
        rc = read_stream(d, r, (size_t)n * 10, &d->extra);
    if (rc != 0 || d->bytes.size != n)
        return rc != 0 ? rc : OCC_E_CORRUPT;
    struct rank_reader c = {.low = d->low.data,
                            .low_end = d->low.data + d->low.size,
                            .extra = {.at = d->extra.data, .end = d->extra.data + d->extra.size}};
    if (context)
        ranks_by_context(d->bytes.data, n, &c, d->context_slots, rank);
    else
        ranks_direct(d->bytes.data, n, &c, rank);
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++)
        largest = rank[i] > largest ? rank[i] : largest;
    return !c.failed && largest < count ? 0 : OCC_E_CORRUPT;
}

/* Ranks into `rank`, values by rank into d->value. */
static int read_symbols(struct occ_chunk_decoder *d, struct occ_reader *r, uint32_t n, uint64_t most,
                        uint32_t *rank, uint32_t *ret_count)
{
    uint32_t count = 0;
    int rc = read_dictionary(d, r, n, most, &count);
    if (rc != 0)
        return rc;
    uint8_t mode = occ_read_u8(r);
    *ret_count = count;
    if (r->failed)
        return OCC_E_CORRUPT;
    switch (mode) {
    case SYMBOL_CONSTANT:
        memset(rank, 0, n * sizeof *rank);
        return 0;
    case 1:
    case 2:
    case 4:
        return read_packed(d, r, n, mode, count, rank);
    case SYMBOL_BYTES:
    case SYMBOL_CONTEXT:
        return read_ranks(d, r, n, mode == SYMBOL_CONTEXT, count, rank);
    default:
        return OCC_E_CORRUPT;
    }
}

static void values_u32(const struct occ_chunk_decoder *d, const uint32_t *rank, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint32_t)d->value[rank[i]];
}

/* ---- numbers ---- */

struct numbers {
    const uint8_t *high;
    const uint8_t *low;
    size_t low_bytes;
    uint64_t bit; /* position in `low` */
    struct occ_reader extra;
};

static int numbers_begin(struct occ_chunk_decoder *d, struct occ_reader *r, uint32_t n, struct numbers *c)
{
    int rc = read_stream(d, r, n, &d->bytes);
    if (rc == 0)
        rc = read_stream(d, r, (size_t)n * 7 + 8, &d->low);
    if (rc == 0)
        rc = read_stream(d, r, (size_t)n * 10, &d->extra);
    if (rc != 0 || d->bytes.size != n)
        return rc != 0 ? rc : OCC_E_CORRUPT;
    *c = (struct numbers){.high = d->bytes.data,
                          .low = d->low.data,
                          .low_bytes = d->low.size,
                          .extra = {.at = d->extra.data, .end = d->extra.data + d->extra.size}};
    return 0;
}

/* 64 bits from byte `at` on; zeros beyond the end (numbers_ended() tells). */
static inline uint64_t load_bits(const struct numbers *c, size_t at)
{
    uint64_t word = 0;
    if (__builtin_expect(at + 8 <= c->low_bytes, 1))
        memcpy(&word, c->low + at, 8);
    else if (at < c->low_bytes)
        memcpy(&word, c->low + at, c->low_bytes - at);
    return word;
}

static inline int64_t next_number(struct numbers *c, uint32_t i, unsigned low_bits)
{
    uint64_t high = c->high[i];
    if (__builtin_expect(high == CHUNK_ESCAPE, 0))
        high = occ_read_varint(&c->extra);
    uint64_t low = load_bits(c, (size_t)(c->bit >> 3)) >> (c->bit & 7);
    low &= (UINT64_C(1) << low_bits) - 1;
    c->bit += low_bits;
    return (int64_t)((uint64_t)occ_unzigzag(high) << low_bits | low);
}

static bool numbers_ended(const struct numbers *c)
{
    return !c->extra.failed && c->bit <= (uint64_t)c->low_bytes * 8;
}

static int read_durations(struct occ_chunk_decoder *d, struct chunk *chunk)
{
    struct numbers c;
    int rc = numbers_begin(d, &chunk->section[SECTION_DURATION], chunk->n, &c);
    if (rc != 0)
        return rc;
    if (!at_least(&d->models, &d->models_capacity, chunk->shapes, sizeof *d->models))
        return OCC_E_NO_MEMORY;
    memset(d->models, 0, chunk->shapes * sizeof *d->models);
    uint64_t divisor = chunk->divisor, all = 0;
    for (uint32_t i = 0; i < chunk->n; i++) {
        struct chunk_model *m = &d->models[d->shape_rank[i]];
        int64_t distance = next_number(&c, i, m->low_bits);
        uint64_t value = chunk_model_predict(m) + (uint64_t)distance;
        if (__builtin_expect(m->count == 0, 0))
            chunk_model_first(m, value);
        else
            chunk_model_update(m, distance);
        d->duration[i] = value * divisor;
        all |= d->duration[i];
    }
    return numbers_ended(&c) && all <= INT64_MAX ? 0 : OCC_E_CORRUPT;
}

static int read_starts(struct occ_chunk_decoder *d, struct chunk *chunk)
{
    struct numbers c;
    int rc = numbers_begin(d, &chunk->section[SECTION_START], chunk->n, &c);
    if (rc != 0)
        return rc;
    if (!at_least(&d->models, &d->models_capacity, chunk->streams, sizeof *d->models) ||
        !at_least(&d->last_end, &d->last_end_capacity, chunk->streams, sizeof *d->last_end))
        return OCC_E_NO_MEMORY;
    for (uint32_t s = 0; s < chunk->streams; s++) {
        chunk_model_seed(&d->models[s], 0, 1024);
        d->last_end[s] = 0;
    }
    uint64_t all = 0;
    for (uint32_t i = 0; i < chunk->n; i++) {
        uint32_t stream = d->stream_rank[i];
        struct chunk_model *m = &d->models[stream];
        int64_t distance = next_number(&c, i, m->low_bits);
        /* in units of the divisor: both sums are multiples of it */
        uint64_t start = d->last_end[stream] + (chunk_model_predict(m) + (uint64_t)distance) * chunk->divisor;
        chunk_model_update(m, distance);
        d->last_end[stream] = start + d->duration[i];
        d->start[i] = chunk->base + start;
        all |= d->start[i] | (d->start[i] + d->duration[i]);
    }
    return numbers_ended(&c) && all <= INT64_MAX ? 0 : OCC_E_CORRUPT;
}

static int read_correlations(struct occ_chunk_decoder *d, struct chunk *chunk)
{
    struct numbers c;
    struct chunk_model m;
    int rc = numbers_begin(d, &chunk->section[SECTION_CORRELATION], chunk->n, &c);
    if (rc != 0)
        return rc;
    chunk_model_seed(&m, 1, 1);
    uint64_t before = 0, all = 0;
    for (uint32_t i = 0; i < chunk->n; i++) {
        int64_t distance = next_number(&c, i, m.low_bits);
        before += chunk_model_predict(&m) + (uint64_t)distance;
        chunk_model_update(&m, distance);
        d->correlation[i] = (uint32_t)before;
        all |= before;
    }
    return numbers_ended(&c) && all <= UINT32_MAX ? 0 : OCC_E_CORRUPT;
}

/* ---- the whole ---- */

static int open_chunk(const void *data, size_t bytes, struct chunk *chunk)
{
    struct occ_reader r = {0};
    int rc = occ_blob_open(data, bytes, OCC_CHUNK_FORMAT, 0, OCC_CHUNK_MAX_ROWS, &chunk->n, &r);
    if (rc != 0)
        return rc;
    chunk->base = occ_read_varint(&r);
    chunk->divisor = occ_read_varint(&r);
    for (unsigned i = 0; i < SECTION_COUNT; i++) {
        uint64_t size = occ_read_varint(&r);
        const uint8_t *from = size <= SIZE_MAX ? occ_read_bytes(&r, (size_t)size) : NULL;
        if (!from)
            return OCC_E_CORRUPT;
        chunk->section[i] = (struct occ_reader){.at = from, .end = from + size};
    }
    return !r.failed && r.at == r.end && chunk->base <= INT64_MAX && chunk->divisor != 0 ? 0 : OCC_E_CORRUPT;
}

/* Columns that others are computed from. */
static unsigned with_needed(unsigned columns)
{
    if (columns & OCC_CHUNK_START)
        columns |= OCC_CHUNK_DURATION | OCC_CHUNK_STREAM;
    if (columns & OCC_CHUNK_DURATION)
        columns |= OCC_CHUNK_SHAPE;
    return columns;
}

static int decode_symbols(struct occ_chunk_decoder *d, struct chunk *chunk, enum section section,
                          uint32_t *rank, uint32_t *out, uint32_t *ret_count)
{
    int rc = read_symbols(d, &chunk->section[section], chunk->n, UINT32_MAX, rank, ret_count);
    if (rc == 0)
        values_u32(d, rank, chunk->n, out);
    return rc;
}

static int decode_graph_nodes(struct occ_chunk_decoder *d, struct chunk *chunk)
{
    uint32_t count = 0;
    int rc =
        read_symbols(d, &chunk->section[SECTION_GRAPH_NODE], chunk->n, UINT64_MAX, d->other_rank, &count);
    for (uint32_t i = 0; rc == 0 && i < chunk->n; i++)
        d->graph_node[i] = d->value[d->other_rank[i]];
    return rc;
}

static int decode_columns(struct occ_chunk_decoder *d, struct chunk *chunk, unsigned columns)
{
    uint32_t ignored = 0;
    int rc = 0;
    if (columns & OCC_CHUNK_SHAPE)
        rc = decode_symbols(d, chunk, SECTION_SHAPE, d->shape_rank, d->shape, &chunk->shapes);
    if (rc == 0 && columns & OCC_CHUNK_DURATION)
        rc = read_durations(d, chunk);
    if (rc == 0 && columns & OCC_CHUNK_STREAM)
        rc = decode_symbols(d, chunk, SECTION_STREAM, d->stream_rank, d->stream, &chunk->streams);
    if (rc == 0 && columns & OCC_CHUNK_START)
        rc = read_starts(d, chunk);
    if (rc == 0 && columns & OCC_CHUNK_CORRELATION)
        rc = read_correlations(d, chunk);
    if (rc == 0 && columns & OCC_CHUNK_CONTEXT)
        rc = decode_symbols(d, chunk, SECTION_CONTEXT, d->other_rank, d->context, &ignored);
    if (rc == 0 && columns & OCC_CHUNK_GRAPH_NODE)
        rc = decode_graph_nodes(d, chunk);
    return rc;
}

int occ_chunk_decode(struct occ_chunk_decoder *d, const void *data, size_t bytes, unsigned columns,
                     struct occ_chunk_view *ret_view)
{
    struct chunk chunk = {0};
    int rc = open_chunk(data, bytes, &chunk);
    if (rc != 0)
        return rc;
    if (!make_room(d, chunk.n))
        return OCC_E_NO_MEMORY;
    rc = decode_columns(d, &chunk, with_needed(columns));
    if (rc != 0)
        return rc;
    *ret_view = (struct occ_chunk_view){.n = chunk.n,
                                        .start_ns = d->start,
                                        .duration_ns = d->duration,
                                        .graph_node = d->graph_node,
                                        .shape = d->shape,
                                        .stream = d->stream,
                                        .correlation = d->correlation,
                                        .context = d->context};
    return 0;
}

int64_t occ_chunk_totals_open(const void *data, size_t bytes, struct occ_reader *reader)
{
    const uint8_t *at = data;
    *reader = (struct occ_reader){.at = at, .end = at ? at + bytes : NULL};
    uint64_t count = occ_read_varint(reader);
    return !reader->failed && count <= OCC_CHUNK_MAX_ROWS ? (int64_t)count : OCC_E_CORRUPT;
}

bool occ_chunk_totals_next(struct occ_reader *r, struct occ_chunk_total *t)
{
    t->shape += occ_read_varint(r);
    t->launches = occ_read_varint(r);
    t->total_ns = occ_read_varint(r);
    t->min_ns = occ_read_varint(r);
    t->max_ns = t->min_ns + occ_read_varint(r);
    return !r->failed;
}
