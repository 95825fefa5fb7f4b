/*
 * Perfetto's native format: a sequence of Trace.packet, one packet an event; see export.h. Field numbers are
 * from protos/perfetto/trace (trace_packet, track_event, track_descriptor, counter_descriptor,
 * debug_annotation, interned_data). Names, keys and texts are interned on first use. Lanes of a stream are
 * tracks with the same name and parent, which the viewer shows as one track.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "support/array.h"
#include "support/text.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };
enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60
};
enum { FLAGS_CLEARED = 1, FLAGS_NEEDS_STATE = 2 };
enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_NAME_TEXT = 23,
    EVENT_VALUE = 44
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
    ANNOTATION_NAME = 1,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_TEXT = 17
};
enum { INTERNED_EVENT_NAMES = 2, INTERNED_KEYS = 3, INTERNED_TEXTS = 29 };
enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };

/* A growing message; without memory it becomes empty and stays empty. */
struct message {
    char *bytes;
    size_t size, allocated;
    bool failed;
};

static void put(struct message *m, const void *bytes, size_t n)
{
    m->failed |= n && !occ_grow((void **)&m->bytes, &m->allocated, m->size + n - 1, SIZE_MAX, 1);
    if (m->failed || n == 0)
        return;
    memcpy(m->bytes + m->size, bytes, n);
    m->size += n;
}

/* Encodes a number. Returns the end. */
static uint8_t *varint(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static uint8_t *number_field(uint8_t *at, unsigned field, uint64_t number)
{
    return varint(varint(at, field << 3 | VARINT), number);
}

static uint8_t *double_field(uint8_t *at, unsigned field, double number)
{
    at = varint(at, field << 3 | FIXED64); /* little-endian, like every host of this program */
    return (uint8_t *)memcpy(at, &number, sizeof number) + sizeof number;
}

static void put_varint(struct message *m, uint64_t number)
{
    uint8_t bytes[10];
    put(m, bytes, (size_t)(varint(bytes, number) - bytes));
}

static void put_number(struct message *m, unsigned field, uint64_t number)
{
    put_varint(m, field << 3 | VARINT);
    put_varint(m, number);
}

static void put_double(struct message *m, unsigned field, double number)
{
    uint8_t bytes[20];
    put(m, bytes, (size_t)(double_field(bytes, field, number) - bytes));
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t n)
{
    put_varint(m, field << 3 | BYTES);
    put_varint(m, n);
    put(m, bytes, n);
}

/* Adds a text, sanitised, since strings of protocol buffers are UTF-8. */
static void put_text(struct message *m, unsigned field, const char *text)
{
    char *clean = strdup(text);
    m->failed |= !clean;
    if (clean)
        occ_text_sanitise(clean);
    if (clean)
        put_bytes(m, field, clean, strlen(clean));
    free(clean);
}

static void put_message(struct message *m, unsigned field, struct message *inner)
{
    m->failed |= inner->failed;
    put_bytes(m, field, inner->bytes ? inner->bytes : "", inner->size);
    free(inner->bytes);
    *inner = (struct message){0};
}

static uint64_t flags(struct export_writer *w)
{
    return w->written++ ? FLAGS_NEEDS_STATE : FLAGS_CLEARED | FLAGS_NEEDS_STATE;
}

/* Writes a packet and frees it. All packets are in one sequence, which shares interned texts. */
static void write_packet(struct export_writer *w, struct message *packet)
{
    struct message framed = {0};
    put_number(packet, PACKET_SEQUENCE, 1);
    put_number(packet, PACKET_FLAGS, flags(w));
    put_message(&framed, TRACE_PACKET, packet);
    if (!framed.failed)
        (void)fwrite_unlocked(framed.bytes, 1, framed.size, w->out);
    free(framed.bytes);
}

/* Adds an entry to the packet's interned data. Returns its number. */
static uint64_t intern(struct export_writer *w, struct message *interned, unsigned field, const char *text)
{
    struct message entry = {0};
    uint64_t id = ++w->interned;
    put_number(&entry, INTERNED_ID, id);
    put_text(&entry, INTERNED_TEXT, text);
    put_message(interned, field, &entry);
    return id;
}

static uint64_t key_id(struct export_writer *w, struct message *interned, const char *key)
{
    for (size_t i = 0; i < w->n_keys; i++)
        if (strcmp(w->keys[i].key, key) == 0)
            return w->keys[i].id;
    uint64_t id = intern(w, interned, INTERNED_KEYS, key);
    if (w->n_keys < EXPORT_KEYS_MAX)
        w->keys[w->n_keys++] = (struct export_key){key, id};
    return id;
}

static void write_interned(struct export_writer *w, struct message *interned)
{
    struct message packet = {0};
    put_message(&packet, PACKET_INTERNED, interned);
    write_packet(w, &packet);
}

/* Interned numbers of the keys of launches, the first entries. */
enum { KEY_CORRELATION = 1, KEY_GRAPH_NODE, KEY_ACHIEVED, KEY_ACHIEVED_CI95, KEY_MEASURED_RATIO };
static void perfetto_begin(struct export_writer *w)
{
    static const char *const keys[] = {"correlation_id", "graph_node_id", "achieved", "achieved_ci95",
                                       "measured_ratio"};
    struct message interned = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)key_id(w, &interned, keys[i]);
    write_interned(w, &interned);
}

static void perfetto_add_track(struct export_writer *w, const struct export_track *track)
{
    struct message packet = {0}, descriptor = {0}, counter = {0};
    put_number(&descriptor, TRACK_UUID, track->id);
    put_text(&descriptor, TRACK_NAME, track->name);
    if (track->kind != EXPORT_GPU)
        put_number(&descriptor, TRACK_PARENT, track->gpu);
    if (track->kind == EXPORT_COUNTER) {
        put_text(&counter, COUNTER_UNIT_NAME, "%");
        put_message(&descriptor, TRACK_COUNTER, &counter);
    }
    put_message(&packet, PACKET_TRACK, &descriptor);
    write_packet(w, &packet);
}

static void annotate(struct export_writer *w, struct message *interned, struct message *annotations,
                     const struct export_arg *arg)
{
    struct message annotation = {0};
    put_number(&annotation, ANNOTATION_NAME, key_id(w, interned, arg->key));
    switch (arg->value.type) {
    case CLI_STRING:
        put_number(&annotation, ANNOTATION_TEXT, intern(w, interned, INTERNED_TEXTS, arg->value.string));
        break;
    case CLI_REAL:
        put_double(&annotation, ANNOTATION_DOUBLE, arg->value.real);
        break;
    default:
        put_number(&annotation, ANNOTATION_INT, (uint64_t)arg->value.integer);
        break;
    }
    put_message(annotations, EVENT_ANNOTATION, &annotation);
}

/* Interns the kernel's name and encodes the annotations of its events. */
static bool perfetto_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args,
                                size_t n, struct export_config *config)
{
    struct message interned = {0}, annotations = {0};
    config->name = intern(w, &interned, INTERNED_EVENT_NAMES, kernel);
    for (size_t i = 0; i < n; i++)
        if (args[i].value.type != CLI_NONE)
            annotate(w, &interned, &annotations, &args[i]);
    write_interned(w, &interned);
    config->bytes = annotations.bytes;
    config->size = annotations.size;
    return !annotations.failed;
}

/* ---- events: without memory of their own ---- */

struct pieces {
    const void *bytes[3];
    size_t size[3];
};

/* Writes an event; its fields are the concatenated pieces. */
static void write_event(struct export_writer *w, int64_t ns, const struct pieces *event)
{
    uint8_t head[64], frame[16] = {TRACE_PACKET << 3 | BYTES};
    size_t size = 0;
    for (size_t i = 0; i < 3; i++)
        size += event->size[i];
    uint8_t *end = number_field(head, PACKET_TIMESTAMP, (uint64_t)ns);
    end = number_field(number_field(end, PACKET_SEQUENCE, 1), PACKET_FLAGS, flags(w));
    end = varint(varint(end, PACKET_EVENT << 3 | BYTES), size);
    uint8_t *frame_end = varint(frame + 1, (size_t)(end - head) + size);
    (void)fwrite_unlocked(frame, 1, (size_t)(frame_end - frame), w->out);
    (void)fwrite_unlocked(head, 1, (size_t)(end - head), w->out);
    for (size_t i = 0; i < 3; i++)
        (void)fwrite_unlocked(event->bytes[i], 1, event->size[i], w->out);
}

static uint8_t *begin_event(uint8_t *at, unsigned type, const struct export_track *track)
{
    return number_field(number_field(at, EVENT_TYPE, type), EVENT_TRACK, track->id);
}

static void write_end(struct export_writer *w, const struct export_track *track, int64_t ns)
{
    uint8_t event[32];
    uint8_t *end = begin_event(event, TYPE_END, track);
    write_event(w, ns, &(struct pieces){{event, "", ""}, {(size_t)(end - event), 0, 0}});
}

static uint8_t *annotation(uint8_t *at, const uint8_t *inner, const uint8_t *end)
{
    size_t n = (size_t)(end - inner);
    return (uint8_t *)memcpy(varint(varint(at, EVENT_ANNOTATION << 3 | BYTES), n), inner, n) + n;
}

static uint8_t *annotation_number(uint8_t *at, unsigned key, uint64_t number)
{
    uint8_t inner[32];
    uint8_t *end = number_field(number_field(inner, ANNOTATION_NAME, key), ANNOTATION_UINT, number);
    return number ? annotation(at, inner, end) : at;
}

static uint8_t *annotation_real(uint8_t *at, unsigned key, double real)
{
    uint8_t inner[32];
    uint8_t *end = double_field(number_field(inner, ANNOTATION_NAME, key), ANNOTATION_DOUBLE, real);
    return isnan(real) ? at : annotation(at, inner, end);
}

static void perfetto_add_launch(struct export_writer *w, const struct export_track *track,
                                const struct export_config *config, const struct export_launch *launch)
{
    uint8_t head[48], tail[128];
    uint8_t *head_end = number_field(begin_event(head, TYPE_BEGIN, track), EVENT_NAME, config->name);
    uint8_t *end = annotation_number(tail, KEY_CORRELATION, launch->correlation);
    end = annotation_number(end, KEY_GRAPH_NODE, launch->graph_node);
    end = annotation_real(end, KEY_ACHIEVED, launch->achieved);
    end = annotation_real(end, KEY_ACHIEVED_CI95, launch->achieved_ci95);
    end = annotation_real(end, KEY_MEASURED_RATIO, launch->measured_ratio);
    write_event(w, launch->start_ns,
                &(struct pieces){{head, config->bytes ? config->bytes : "", tail},
                                 {(size_t)(head_end - head), config->size, (size_t)(end - tail)}});
    write_end(w, track, launch->end_ns);
}

static void perfetto_add_value(struct export_writer *w, const struct export_track *track, int64_t ns,
                               double value)
{
    uint8_t event[48];
    uint8_t *end = double_field(begin_event(event, TYPE_COUNTER, track), EVENT_VALUE, value);
    write_event(w, ns, &(struct pieces){{event, "", ""}, {(size_t)(end - event), 0, 0}});
}

static void perfetto_add_hole(struct export_writer *w, const struct export_track *lane, int64_t start_ns,
                              int64_t end_ns)
{
    struct message name = {0};
    uint8_t event[48];
    uint8_t *end = begin_event(event, TYPE_BEGIN, lane);
    put_text(&name, EVENT_NAME_TEXT, lane->name);
    if (!name.failed) {
        write_event(w, start_ns,
                    &(struct pieces){{event, name.bytes, ""}, {(size_t)(end - event), name.size, 0}});
        write_end(w, lane, end_ns);
    }
    free(name.bytes);
}

const struct export_format export_perfetto = {.name = "perfetto",
                                              .begin = perfetto_begin,
                                              .add_track = perfetto_add_track,
                                              .add_config = perfetto_add_config,
                                              .add_launch = perfetto_add_launch,
                                              .add_value = perfetto_add_value,
                                              .add_hole = perfetto_add_hole};
