/* The document, streamed through yajl. Only values with a key of the table are kept, one event at a time.
 * Nesting, the length of a token and of a name have maxima. One thread. */
#include "kineto_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yajl/yajl_parse.h>

#include "decimal.h"
#include "support/cleanup.h"

#define TOKEN_MAX       (4u << 20) /* a text, or blanks between two tokens */
#define KERNEL_NAME_MAX (1u << 20)
#define CHUNK_BYTES     (64u * 1024u)
#define NUMBER_MAX      64u /* a double has at most 24 digits and signs, an integer 20 */

/* The meaning of a key's value. Integers are their enum integer. */
enum {
    PHASE = INTEGER_COUNT,
    CATEGORY,
    NAME,
    DEVICE_NAME,
    XLA_DETAILS,
    XLA_NAME,
    SIZE,
    SIGN_OF_AMD = SIZE + SIZE_COUNT, /* a key that only traces of AMD GPUs have */
    SIGN_OF_INTEL,
    NESTED
};

struct kineto_key {
    enum place place;
    const char *text;
    size_t length;
    int meaning;
    int scale;        /* decimal exponent of an integer */
    enum place inner; /* place of the map or array that is the value; ELSEWHERE: none */
};

static const struct kineto_key keys[] = {
#define X(name, place, key, scale) {place, key, sizeof key - 1, name, scale, ELSEWHERE},
    INTEGERS(X)
#define KEY(place, key, meaning, inner) {place, key, sizeof key - 1, meaning, 0, inner},
        KEY(EVENT, "ph", PHASE, ELSEWHERE) KEY(EVENT, "cat", CATEGORY, ELSEWHERE)
            KEY(EVENT, "name", NAME, ELSEWHERE) KEY(EVENT, "args", NESTED, ARGS)
                KEY(ARGS, "kernel_details", XLA_DETAILS, ELSEWHERE) KEY(ARGS, "name", XLA_NAME, ELSEWHERE)
                    KEY(ARGS, "grid", SIZE + GRID, VECTOR) KEY(ARGS, "block", SIZE + BLOCK, VECTOR)
                        KEY(ARGS, "cluster", SIZE + CLUSTER, VECTOR)
                            KEY(DEVICE, "name", DEVICE_NAME, ELSEWHERE)
                                KEY(TOP, "roctracer_version", SIGN_OF_AMD, ELSEWHERE)
                                    KEY(TOP, "hip_runtime_version", SIGN_OF_AMD, ELSEWHERE)
                                        KEY(TOP, "hip_driver_version", SIGN_OF_AMD, ELSEWHERE)
                                            KEY(ARGS, "sycl queue", SIGN_OF_INTEL, ELSEWHERE)
                                                KEY(ARGS, "l0 queue", SIGN_OF_INTEL, ELSEWHERE)
                                                    KEY(TOP, "traceEvents", NESTED, EVENTS)
                                                        KEY(TOP, "deviceProperties", NESTED, DEVICES)
                                                            KEY(TOP, "distributedInfo", NESTED, DISTRIBUTED)};

static enum place place_of(const struct occ_kineto *k)
{
    return k->stack.place[k->stack.depth];
}

static void end_token(struct occ_kineto *k)
{
    k->tokens++;
    k->token_end = yajl_get_bytes_consumed(k->parser);
}

/* The place of a map or array that begins here. */
static enum place inner_place(const struct occ_kineto *k, bool map)
{
    static const bool is_map[] = {[TOP] = true,    [EVENT] = true,       [ARGS] = true,
                                  [DEVICE] = true, [DISTRIBUTED] = true, [ELSEWHERE] = false};
    enum place inner = ELSEWHERE;
    if (k->key)
        inner = k->key->inner;
    else if (place_of(k) == EVENTS)
        inner = EVENT;
    else if (place_of(k) == DEVICES)
        inner = DEVICE;
    else if (place_of(k) == DOCUMENT)
        inner = map ? TOP : EVENTS; /* the document is only the array of events */
    return is_map[inner] == map ? inner : ELSEWHERE;
}

/* Drops the integers from `first` to `last`. */
static void drop(struct occ_kineto *k, enum integer first, enum integer last)
{
    uint64_t bits = (BIT(last) - BIT(first)) | BIT(last);
    k->known &= ~bits;
    k->bad &= ~bits;
}

static int begin(struct occ_kineto *k, bool map)
{
    enum place inner = inner_place(k, map);
    end_token(k);
    if (k->stack.depth == DEPTH_MAX) {
        k->status = occ_fail(k->err, OCC_E_INVALID, "nested deeper than %d levels", DEPTH_MAX);
        return 0;
    }
    k->stack.place[++k->stack.depth] = inner;
    if (inner == EVENT) {
        k->event = (struct event){.gpu = -1};
        drop(k, TS, ARG_GRAPH_NODE);
    } else if (inner == ARGS) {
        k->event.has_args = true;
    } else if (inner == DEVICES) {
        k->described = true;
    } else if (inner == VECTOR) {
        k->vector = &k->event.size[k->key->meaning - SIZE];
        *k->vector = (struct vector){0};
    } else if (inner == DEVICE) {
        drop(k, DEV_ID, DEV_SMS);
        k->device_name[0] = '\0';
    }
    k->key = NULL;
    return 1;
}

static int on_end(void *context)
{
    struct occ_kineto *k = context;
    enum place inner = k->stack.place[k->stack.depth--];
    end_token(k);
    k->key = NULL;
    if (inner == EVENT)
        k->status = occ_kineto_end_event(k);
    else if (inner == DEVICE && !k->second)
        k->status = occ_kineto_end_device(k);
    return k->status == 0;
}

static int on_map(void *context)
{
    return begin(context, true);
}

static int on_array(void *context)
{
    return begin(context, false);
}

static uint32_t slot_of(enum place place, const unsigned char *text, size_t n)
{
    return ((uint32_t)n * 37 + text[0] * 5u + text[n - 1] * 11u + (uint32_t)place * 61) %
           OCC_KINETO_KEY_SLOTS;
}

static uint32_t next_slot(uint32_t slot)
{
    return (slot + 1) % OCC_KINETO_KEY_SLOTS;
}

static void index_keys(struct occ_kineto *k)
{
    memset(k->key_slots, 0, sizeof k->key_slots);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t slot = slot_of(keys[i].place, (const unsigned char *)keys[i].text, keys[i].length);
        while (k->key_slots[slot])
            slot = next_slot(slot);
        k->key_slots[slot] = (uint8_t)(i + 1);
    }
}

static int on_key(void *context, const unsigned char *text, size_t n)
{
    struct occ_kineto *k = context;
    enum place place = place_of(k);
    end_token(k);
    k->key = NULL;
    if (place == ELSEWHERE || n == 0)
        return 1;
    for (uint32_t slot = slot_of(place, text, n); k->key_slots[slot] && !k->key; slot = next_slot(slot)) {
        const struct kineto_key *key = &keys[k->key_slots[slot] - 1];
        if (key->length == n && key->place == place && memcmp(key->text, text, n) == 0)
            k->key = key;
    }
    if (k->key && k->key->meaning == SIGN_OF_AMD)
        occ_kineto_note_maker(k, "AMD", k->key->text);
    else if (k->key && k->key->meaning == SIGN_OF_INTEL)
        occ_kineto_note_maker(k, "Intel", k->key->text);
    return 1;
}

static void take_element(struct vector *vector, const char *text, size_t n)
{
    int64_t value = 0;
    if (!occ_decimal_parse(text, n, 0, &value))
        vector->bad = true;
    else if (vector->n < 3)
        vector->value[vector->n] = value;
    vector->n++;
}

static int check_number(struct occ_kineto *k, size_t n)
{
    if (n > NUMBER_MAX)
        k->status = occ_fail(k->err, OCC_E_INVALID, "a number of more than %u characters", NUMBER_MAX);
    return k->status;
}

static int on_number(void *context, const char *text, size_t n)
{
    struct occ_kineto *k = context;
    end_token(k);
    if (check_number(k, n) != 0)
        return 0;
    if (place_of(k) == VECTOR)
        take_element(k->vector, text, n);
    else if (k->key && k->key->meaning < INTEGER_COUNT)
        *(occ_decimal_parse(text, n, k->key->scale, &k->values[k->key->meaning]) ? &k->known : &k->bad) |=
            BIT(k->key->meaning);
    return 1;
}

/* Handles a value that is not a number, where a number may be expected. */
static int other_value(struct occ_kineto *k)
{
    end_token(k);
    if (place_of(k) == VECTOR)
        k->vector->bad = true;
    else if (k->key && k->key->meaning < INTEGER_COUNT)
        k->bad |= BIT(k->key->meaning);
    return 1;
}

static int on_null(void *context)
{
    return other_value(context);
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return other_value(context);
}

static int keep_name(struct occ_kineto *k, const unsigned char *text, size_t n)
{
    k->event.bad_name = n > KERNEL_NAME_MAX;
    if (n == 0 || n > KERNEL_NAME_MAX)
        return 0;
    if (n > k->name_allocated) {
        char *moved = realloc(k->name, n);
        if (!moved)
            return occ_no_memory(k->err);
        k->name = moved;
        k->name_allocated = n;
    }
    memcpy(k->name, text, n);
    k->event.name_bytes = n;
    return 0;
}

static bool is_text(const unsigned char *text, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp((const char *)text, word, n) == 0;
}

static const struct {
    const char *category;
    enum host host;
} hosts[] = {{"cpu_op", OPERATOR},        {"operator", OPERATOR}, {"user_annotation", ANNOTATION},
             {"python_function", PYTHON}, {"cuda_runtime", CALL}, {"cuda_driver", CALL}};

static int on_string(void *context, const unsigned char *text, size_t n)
{
    struct occ_kineto *k = context;
    int meaning = k->key ? k->key->meaning : NESTED;
    (void)other_value(k);
    if (meaning == PHASE) {
        k->event.complete = is_text(text, n, "X");
    } else if (meaning == CATEGORY) {
        k->event.kernel = is_text(text, n, "kernel");
        for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
            if (is_text(text, n, hosts[i].category))
                k->event.host = hosts[i].host;
        if (is_text(text, n, "xpu_runtime"))
            occ_kineto_note_maker(k, "Intel", "xpu_runtime");
    } else if (meaning == NAME) {
        k->status = keep_name(k, text, n);
    } else if (meaning == XLA_DETAILS) {
        occ_kineto_xla_details(k, text, n);
    } else if (meaning == XLA_NAME) {
        occ_kineto_xla_process_name(k, text, n);
    } else if (meaning == DEVICE_NAME) {
        n = n < sizeof k->device_name - 1 ? n : sizeof k->device_name - 1;
        memcpy(k->device_name, text, n);
        k->device_name[n] = '\0';
    }
    return k->status == 0;
}

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_end};

/* ---- a pass ---- */

struct pass {
    struct occ_kineto *kineto;
    yajl_handle parser;
    uint64_t bytes;                                     /* parsed bytes */
    uint64_t token_bytes;                               /* bytes since the last token */
    enum { BETWEEN_TOKENS, IN_NUMBER, IN_OTHER } state; /* position in which the last chunk ended */
    size_t number_bytes; /* length of the unfinished number at the end of the last chunk */
};

/* The error of the parser or of a callback, with its position. */
static int parse_failed(struct pass *pass, size_t consumed)
{
    struct occ_kineto *k = pass->kineto;
    unsigned long long at = (unsigned long long)(pass->bytes + consumed);
    if (k->status != 0) /* a callback's error */
        return occ_error_prefix(k->err, "byte %llu", at);
    unsigned char *message = yajl_get_error(pass->parser, 0, NULL, 0);
    if (message)
        message[strcspn((char *)message, "\n")] = '\0';
    k->status =
        occ_fail(k->err, OCC_E_INVALID, "byte %llu: invalid JSON: %s", at, message ? (char *)message : "?");
    yajl_free_error(pass->parser, message);
    return k->status;
}

/* Only blanks and separators are between the last token, which ended at `at`, and an unfinished one. */
static void find_unfinished_token(struct pass *pass, const unsigned char *data, size_t at, size_t n)
{
    while (at < n && memchr(" \t\r\n,:", data[at], 6))
        at++;
    pass->state = at == n ? BETWEEN_TOKENS : data[at] == '-' || isdigit(data[at]) ? IN_NUMBER : IN_OTHER;
    pass->number_bytes = n - at;
}

/* The parser reads an unfinished number again with every chunk, which takes quadratic time: a number that is
 * too long is refused before its end. */
static int check_unfinished_number(struct pass *pass, bool has_ended_token, const unsigned char *data,
                                   size_t n)
{
    struct occ_kineto *k = pass->kineto;
    if (has_ended_token || pass->state == BETWEEN_TOKENS)
        find_unfinished_token(pass, data, k->token_end, n);
    else
        pass->number_bytes += n;
    if (pass->state != IN_NUMBER || check_number(k, pass->number_bytes) == 0)
        return 0;
    return occ_error_prefix(k->err, "byte %llu", (unsigned long long)pass->bytes);
}

static int parse_chunk(struct pass *pass, const unsigned char *data, size_t n)
{
    struct occ_kineto *k = pass->kineto;
    uint64_t tokens = k->tokens;
    k->token_end = 0;
    if (yajl_parse(pass->parser, data, n) != yajl_status_ok)
        return parse_failed(pass, yajl_get_bytes_consumed(pass->parser));
    pass->bytes += n;
    pass->token_bytes = tokens == k->tokens ? pass->token_bytes + n : 0;
    if (pass->token_bytes > TOKEN_MAX)
        k->status = occ_fail(k->err, OCC_E_INVALID, "byte %llu: a text of more than %u bytes",
                             (unsigned long long)pass->bytes, TOKEN_MAX);
    return k->status == 0 ? check_unfinished_number(pass, tokens != k->tokens, data, n) : k->status;
}

static int parse_end(struct pass *pass)
{
    struct occ_kineto *k = pass->kineto;
    if (yajl_complete_parse(pass->parser) == yajl_status_ok)
        return 0;
    if (k->status != 0)
        return parse_failed(pass, 0);
    k->status = occ_fail(k->err, OCC_E_INVALID, "byte %llu: the file ends inside the JSON",
                         (unsigned long long)pass->bytes);
    return k->status;
}

static int parse_input(struct pass *pass, struct occ_kineto_input *input, unsigned char *chunk)
{
    struct occ_kineto *k = pass->kineto;
    size_t n = 0;
    int status = 0;
    while (status == 0 && (status = input->read(input, chunk, CHUNK_BYTES, &n, k->err)) == 0 && n > 0) {
        status = parse_chunk(pass, chunk, n);
        if (status == 0)
            occ_import_sink_progress(k->sink, input->done, input->total);
    }
    return status == 0 ? parse_end(pass) : status;
}

static void parser_freep(yajl_handle *parser)
{
    if (*parser)
        yajl_free(*parser);
}

int occ_kineto_parse(struct occ_kineto *k, struct occ_kineto_input *input)
{
    _cleanup_(occ_freep) unsigned char *chunk = malloc(CHUNK_BYTES);
    _cleanup_(parser_freep) yajl_handle parser = yajl_alloc(&callbacks, NULL, k);
    struct pass pass = {.kineto = k, .parser = parser};
    k->stack.depth = 0;
    k->stack.place[0] = DOCUMENT;
    k->key = NULL;
    k->parser = parser;
    index_keys(k);
    if (!chunk || !parser)
        return occ_no_memory(k->err);
    (void)yajl_config(parser, yajl_dont_validate_strings, 1);
    return parse_input(&pass, input, chunk);
}
