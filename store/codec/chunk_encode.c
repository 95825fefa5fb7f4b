/*
 * The packing half of the chunk codec (format: chunk_codec.h). Two passes a column: collect what is distinct or
 * predict, then write streams. Scratch memory grows to the largest chunk seen. One thread at a time.
 */
#include "chunk_codec.h"

#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "bytes.h"
#include "chunk_model.h"
#include "support/map.h"

struct shape_total {
    uint64_t launches, total_ns, min_ns, max_ns;
};

/* One symbol column after counting: rank of each row, values by rank. */
struct symbols {
    uint32_t *rank;
    uint64_t *value;
    uint32_t count;
};

struct occ_chunk_encoder {
    uint32_t capacity;  /* rows that the scratch arrays hold */
    uint64_t *values;   /* the column at work */
    uint32_t *order;    /* first-seen index -> rank */
    uint64_t *sort_key; /* frequency and first-seen index */
    uint8_t *bytes;     /* high bytes or ranks of the column at work */
    uint8_t *context_bytes;
    struct symbols shape, stream, other;
    struct chunk_model *models; /* by shape or stream rank */
    uint64_t *last_end;         /* by stream rank */
    struct shape_total *totals; /* by shape rank */
    uint32_t *context;          /* CHUNK_CONTEXT_SLOTS */
    struct occ_map map;
    struct occ_writer out, section, low, extra, compressed;
    ZSTD_CCtx *zstd;
    bool small;
};

struct occ_chunk_encoder *occ_chunk_encoder_new(void)
{
    struct occ_chunk_encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->zstd = ZSTD_createCCtx();
    e->context = malloc(CHUNK_CONTEXT_SLOTS * sizeof *e->context);
    if (e->zstd && e->context)
        return e;
    occ_chunk_encoder_free(e);
    return NULL;
}

static void free_arrays(struct occ_chunk_encoder *e)
{
    void *const arrays[] = {e->values,      e->order,       e->sort_key,    e->bytes,        e->context_bytes,
                            e->shape.rank,  e->shape.value, e->stream.rank, e->stream.value, e->other.rank,
                            e->other.value, e->models,      e->last_end,    e->totals};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    e->values = e->sort_key = e->last_end = e->shape.value = e->stream.value = e->other.value = NULL;
    e->order = e->shape.rank = e->stream.rank = e->other.rank = NULL;
    e->bytes = e->context_bytes = NULL;
    e->models = NULL;
    e->totals = NULL;
    e->capacity = 0;
}

void occ_chunk_encoder_free(struct occ_chunk_encoder *e)
{
    if (!e)
        return;
    free_arrays(e);
    struct occ_writer *const writers[] = {&e->out, &e->section, &e->low, &e->extra, &e->compressed};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        free(writers[i]->data);
    occ_map_free(&e->map);
    free(e->context);
    ZSTD_freeCCtx(e->zstd);
    free(e);
}

static bool make_room(struct occ_chunk_encoder *e, uint32_t n)
{
    if (n <= e->capacity)
        return true;
    free_arrays(e);
#define ARRAY(member) ((e->member = malloc(n * sizeof *e->member)) != NULL)
    bool ok = ARRAY(values) && ARRAY(order) && ARRAY(sort_key) && ARRAY(bytes) && ARRAY(context_bytes) &&
              ARRAY(shape.rank) && ARRAY(shape.value) && ARRAY(stream.rank) && ARRAY(stream.value) &&
              ARRAY(other.rank) && ARRAY(other.value) && ARRAY(models) && ARRAY(last_end) && ARRAY(totals);
#undef ARRAY
    if (ok)
        e->capacity = n;
    else
        free_arrays(e);
    return ok;
}

/* ---- streams and sections ---- */

static void write_stream(struct occ_chunk_encoder *e, const uint8_t *bytes, size_t n)
{
    occ_stream_write(&e->section, e->small ? e->zstd : NULL, &e->compressed, bytes, n);
}

static void end_section(struct occ_chunk_encoder *e)
{
    occ_write_varint(&e->out, e->section.size);
    occ_write_bytes(&e->out, e->section.data, e->section.size);
    e->out.failed |= e->section.failed;
    e->section.size = 0;
}

/* ---- symbols ---- */

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Gives each distinct value of e->values a rank: by frequency if that pays, else in order of appearance. */
static bool rank_symbols(struct occ_chunk_encoder *e, uint32_t n, struct symbols *s)
{
    if (!occ_map_reset(&e->map, 128))
        return false;
    uint64_t last = ~e->values[0];
    uint32_t index = 0;
    s->count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (e->values[i] != last) {
            last = e->values[i];
            index = occ_map_put(&e->map, last, s->count);
            if (index == OCC_MAP_NONE)
                return false;
            if (index == s->count) {
                s->value[s->count++] = last;
                e->sort_key[index] = (uint64_t)(UINT32_MAX - index);
            }
        }
        s->rank[i] = index;
        e->sort_key[index] += UINT64_C(1) << 32;
    }
    if (!e->small || s->count == 1)
        return true;
    qsort(e->sort_key, s->count, sizeof *e->sort_key, compare_keys);
    uint64_t *by_rank = e->values; /* the column is not needed any more */
    for (uint32_t rank = 0; rank < s->count; rank++) {
        index = UINT32_MAX - (uint32_t)e->sort_key[rank];
        e->order[index] = rank;
        by_rank[rank] = s->value[index];
    }
    memcpy(s->value, by_rank, s->count * sizeof *s->value);
    for (uint32_t i = 0; i < n; i++)
        s->rank[i] = e->order[s->rank[i]];
    return true;
}

static void write_dictionary(struct occ_chunk_encoder *e, const struct symbols *s)
{
    occ_write_varint(&e->section, s->count);
    uint64_t before = 0;
    for (uint32_t rank = 0; rank < s->count; rank++) {
        occ_write_varint(&e->section, occ_zigzag((int64_t)(s->value[rank] - before)));
        before = s->value[rank];
    }
}

/* Few symbols: 1, 2 or 4 bits a row; zstd finds what repeats in the bytes. */
static void write_packed(struct occ_chunk_encoder *e, const struct symbols *s, uint32_t n, unsigned bits)
{
    uint32_t per_byte = 8 / bits, bytes = (n + per_byte - 1) / per_byte;
    memset(e->bytes, 0, bytes);
    for (uint32_t i = 0; i < n; i++)
        e->bytes[i / per_byte] |= (uint8_t)(s->rank[i] << (i % per_byte * bits));
    occ_write_u8(&e->section, (uint8_t)bits);
    write_stream(e, e->bytes, bytes);
}

static inline uint8_t put_rank(struct occ_chunk_encoder *e, uint32_t rank)
{
    if (rank < CHUNK_RANK_DIRECT)
        return (uint8_t)rank;
    uint32_t rest = rank - CHUNK_RANK_DIRECT;
    if (rest >> 8 < CHUNK_ESCAPE - CHUNK_RANK_DIRECT) {
        occ_write_u8(&e->low, (uint8_t)rest);
        return (uint8_t)(CHUNK_RANK_DIRECT + (rest >> 8));
    }
    occ_write_varint(&e->extra, rank);
    return CHUNK_ESCAPE;
}

static void write_rank_streams(struct occ_chunk_encoder *e, uint32_t n, enum chunk_symbol_mode mode)
{
    occ_write_u8(&e->section, (uint8_t)mode);
    write_stream(e, e->bytes, n);
    write_stream(e, e->low.data, e->low.size);
    write_stream(e, e->extra.data, e->extra.size);
    e->section.failed |= e->low.failed | e->extra.failed;
}

/* Marks in e->context_bytes which rows are what followed the same four before; how many. */
static uint32_t predict_by_context(struct occ_chunk_encoder *e, const struct symbols *s, uint32_t n)
{
    uint64_t history = 0;
    uint32_t hits = 0;
    memset(e->context, 0xff, CHUNK_CONTEXT_SLOTS * sizeof *e->context);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *slot = &e->context[chunk_context_slot(history)];
        e->context_bytes[i] = *slot == s->rank[i];
        hits += e->context_bytes[i];
        *slot = s->rank[i];
        history = chunk_context_push(history, s->rank[i]);
    }
    return hits;
}

static void write_symbols(struct occ_chunk_encoder *e, const struct symbols *s, uint32_t n)
{
    write_dictionary(e, s);
    if (s->count == 1) {
        occ_write_u8(&e->section, SYMBOL_CONSTANT);
    } else if (s->count <= 16) {
        write_packed(e, s, n, s->count <= 2 ? 1 : s->count <= 4 ? 2 : 4);
    } else {
        bool context = e->small && predict_by_context(e, s, n) > n / 2;
        e->low.size = e->extra.size = 0;
        for (uint32_t i = 0; i < n; i++)
            e->bytes[i] = !context              ? put_rank(e, s->rank[i])
                          : e->context_bytes[i] ? 0
                                                : put_rank(e, s->rank[i] + 1);
        write_rank_streams(e, n, context ? SYMBOL_CONTEXT : SYMBOL_BYTES);
    }
    end_section(e);
}

/* ---- numbers ---- */

/* Low bits waiting to become bytes. */
struct bits {
    uint64_t pending;
    unsigned count;
    uint8_t *at;
};

static inline void put_bits(struct bits *b, uint64_t value, unsigned n)
{
    b->pending |= value << b->count;
    b->count += n;
    if (b->count >= 64) {
        memcpy(b->at, &b->pending, 8);
        b->at += 8;
        b->count -= 64;
        b->pending = b->count ? value >> (n - b->count) : 0;
    }
}

/* A number column at work. */
struct numbers {
    struct bits bits;
    uint8_t *extra;
};

static bool numbers_begin(struct occ_chunk_encoder *e, uint32_t n, struct numbers *c)
{
    e->low.size = e->extra.size = 0;
    if (!occ_writer_reserve(&e->low, (size_t)n * 7 + 16) || !occ_writer_reserve(&e->extra, (size_t)n * 10))
        return false;
    *c = (struct numbers){.bits = {.at = e->low.data}, .extra = e->extra.data};
    return true;
}

static inline uint8_t put_number(struct numbers *c, int64_t d, unsigned low_bits)
{
    put_bits(&c->bits, (uint64_t)d & ((UINT64_C(1) << low_bits) - 1), low_bits);
    uint64_t high = occ_zigzag(d >> low_bits);
    if (high < CHUNK_ESCAPE)
        return (uint8_t)high;
    c->extra = occ_varint_put(c->extra, high);
    return CHUNK_ESCAPE;
}

static void numbers_end(struct occ_chunk_encoder *e, uint32_t n, struct numbers *c)
{
    memcpy(c->bits.at, &c->bits.pending, 8);
    e->low.size = (size_t)(c->bits.at - e->low.data) + (c->bits.count + 7) / 8;
    e->extra.size = (size_t)(c->extra - e->extra.data);
    write_stream(e, e->bytes, n);
    write_stream(e, e->low.data, e->low.size);
    write_stream(e, e->extra.data, e->extra.size);
    end_section(e);
}

static void add_total(struct shape_total *t, uint64_t duration)
{
    t->launches++;
    t->total_ns += duration;
    if (t->total_ns > INT64_MAX) /* SQL has no larger number */
        t->total_ns = INT64_MAX;
    t->min_ns = duration < t->min_ns ? duration : t->min_ns;
    t->max_ns = duration > t->max_ns ? duration : t->max_ns;
}

static bool write_durations(struct occ_chunk_encoder *e, const struct occ_store_launch *rows, uint32_t n,
                            uint64_t divisor)
{
    struct numbers c;
    if (!numbers_begin(e, n, &c))
        return false;
    memset(e->models, 0, e->shape.count * sizeof *e->models);
    for (uint32_t rank = 0; rank < e->shape.count; rank++)
        e->totals[rank] = (struct shape_total){.min_ns = UINT64_MAX};
    for (uint32_t i = 0; i < n; i++) {
        struct chunk_model *m = &e->models[e->shape.rank[i]];
        uint64_t value = divisor == 1 ? rows[i].duration_ns : rows[i].duration_ns / divisor;
        int64_t d = (int64_t)(value - chunk_model_predict(m));
        e->bytes[i] = put_number(&c, d, m->low_bits);
        if (m->count == 0)
            chunk_model_first(m, value);
        else
            chunk_model_update(m, d);
        add_total(&e->totals[e->shape.rank[i]], rows[i].duration_ns);
    }
    numbers_end(e, n, &c);
    return true;
}

static bool write_starts(struct occ_chunk_encoder *e, const struct occ_store_launch *rows, uint32_t n,
                         uint64_t divisor)
{
    struct numbers c;
    if (!numbers_begin(e, n, &c))
        return false;
    for (uint32_t rank = 0; rank < e->stream.count; rank++) {
        chunk_model_seed(&e->models[rank], 0, 1024);
        e->last_end[rank] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stream = e->stream.rank[i];
        struct chunk_model *m = &e->models[stream];
        uint64_t start = (uint64_t)(rows[i].start_ns - rows[0].start_ns), duration = rows[i].duration_ns;
        if (divisor != 1) {
            start /= divisor;
            duration /= divisor;
        }
        int64_t d = (int64_t)(start - e->last_end[stream] - chunk_model_predict(m));
        e->bytes[i] = put_number(&c, d, m->low_bits);
        chunk_model_update(m, d);
        e->last_end[stream] = start + duration;
    }
    numbers_end(e, n, &c);
    return true;
}

static bool write_correlations(struct occ_chunk_encoder *e, const struct occ_store_launch *rows, uint32_t n)
{
    struct numbers c;
    if (!numbers_begin(e, n, &c))
        return false;
    struct chunk_model m;
    chunk_model_seed(&m, 1, 1);
    uint64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t d = (int64_t)(rows[i].correlation - before - chunk_model_predict(&m));
        e->bytes[i] = put_number(&c, d, m.low_bits);
        chunk_model_update(&m, d);
        before = rows[i].correlation;
    }
    numbers_end(e, n, &c);
    return true;
}

/* ---- the whole ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest number that divides all times: clocks that tick every 32 ns are common. */
static uint64_t find_divisor(const struct occ_store_launch *rows, uint32_t n)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < n && divisor != 1; i++) {
        divisor = gcd(divisor, rows[i].duration_ns);
        divisor = gcd(divisor, (uint64_t)(rows[i].start_ns - rows[0].start_ns));
    }
    return divisor ? divisor : 1;
}

#define COLUMN(e, rows, n, member)                                                                           \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                                    \
    (e)->values[i_] = (rows)[i_].member

static bool encode_columns(struct occ_chunk_encoder *e, const struct occ_store_launch *rows, uint32_t n,
                           uint64_t divisor)
{
    COLUMN(e, rows, n, shape);
    if (!rank_symbols(e, n, &e->shape))
        return false;
    write_symbols(e, &e->shape, n);
    if (!write_durations(e, rows, n, divisor))
        return false;
    COLUMN(e, rows, n, stream);
    if (!rank_symbols(e, n, &e->stream))
        return false;
    write_symbols(e, &e->stream, n);
    if (!write_starts(e, rows, n, divisor) || !write_correlations(e, rows, n))
        return false;
    COLUMN(e, rows, n, context);
    if (!rank_symbols(e, n, &e->other))
        return false;
    write_symbols(e, &e->other, n);
    COLUMN(e, rows, n, graph_node);
    if (!rank_symbols(e, n, &e->other))
        return false;
    write_symbols(e, &e->other, n);
    return true;
}

int occ_chunk_encode(struct occ_chunk_encoder *e, const struct occ_store_launch *rows, uint32_t n, bool small,
                     const uint8_t **ret_data, size_t *ret_bytes)
{
    if (n == 0 || n > OCC_CHUNK_MAX_ROWS)
        return OCC_E_INVALID;
    struct occ_writer *const writers[] = {&e->out, &e->section, &e->low, &e->extra, &e->compressed};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        writers[i]->size = 0;
        writers[i]->failed = false;
    }
    e->small = small;
    if (!make_room(e, n))
        return OCC_E_NO_MEMORY;
    occ_blob_begin(&e->out, OCC_CHUNK_FORMAT, 0, n);
    uint64_t divisor = find_divisor(rows, n);
    occ_write_varint(&e->out, (uint64_t)rows[0].start_ns);
    occ_write_varint(&e->out, divisor);
    if (!encode_columns(e, rows, n, divisor) || e->out.failed)
        return OCC_E_NO_MEMORY;
    occ_blob_seal(&e->out);
    *ret_data = e->out.data;
    *ret_bytes = e->out.size;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    return compare_keys(b, a);
}

int occ_chunk_encode_totals(struct occ_chunk_encoder *e, const uint8_t **ret_data, size_t *ret_bytes)
{
    struct occ_writer *w = &e->section;
    w->size = 0;
    occ_write_varint(w, e->shape.count);
    for (uint32_t rank = 0; rank < e->shape.count; rank++)
        e->sort_key[rank] = e->shape.value[rank] << 32 | rank;
    qsort(e->sort_key, e->shape.count, sizeof *e->sort_key, compare_ids);
    uint64_t before = 0;
    for (uint32_t i = 0; i < e->shape.count; i++) {
        uint64_t id = e->sort_key[i] >> 32;
        const struct shape_total *t = &e->totals[(uint32_t)e->sort_key[i]];
        occ_write_varint(w, id - before);
        occ_write_varint(w, t->launches);
        occ_write_varint(w, t->total_ns);
        occ_write_varint(w, t->min_ns);
        occ_write_varint(w, t->max_ns - t->min_ns);
        before = id;
    }
    if (w->failed)
        return OCC_E_NO_MEMORY;
    *ret_data = w->data;
    *ret_bytes = w->size;
    return 0;
}
