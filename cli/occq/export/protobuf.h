/* Encodes protocol buffers: growing messages, and fields in the caller's memory. Hosts are little-endian,
 * like the format. No state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2 };
enum {
    PROTOBUF_TEXT_MAX = 4096, /* longer texts are cut at a character */
    PROTOBUF_FIELD_MAX = 20   /* bytes of a number with its tag */
};

/* A growing message; without memory it sets `failed` and takes nothing more. */
struct protobuf {
    char *bytes;
    size_t size, allocated;
    bool failed;
};
void protobuf_free(struct protobuf *m);
void protobuf_number(struct protobuf *m, unsigned field, uint64_t number);
void protobuf_double(struct protobuf *m, unsigned field, double number);
/* Adds a text as UTF-8 of at most PROTOBUF_TEXT_MAX bytes: control characters and invalid bytes become '?'.
 */
void protobuf_text(struct protobuf *m, unsigned field, const char *text);
void protobuf_bytes(struct protobuf *m, unsigned field, const void *bytes, size_t n);
/* Adds a message and frees it. */
void protobuf_message(struct protobuf *m, unsigned field, struct protobuf *inner);

/* Appends the fields of another message and frees it. */
void protobuf_splice(struct protobuf *m, struct protobuf *other);

/* Encode at `at` and return the end. */
uint8_t *protobuf_put_varint(uint8_t *at, uint64_t number);
uint8_t *protobuf_put_number(uint8_t *at, unsigned field, uint64_t number);
uint8_t *protobuf_put_double(uint8_t *at, unsigned field, double number);
/* Puts tag and size of a field with `n` bytes, which the caller puts behind them. */
uint8_t *protobuf_put_head(uint8_t *at, unsigned field, size_t n);
