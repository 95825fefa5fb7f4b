/* See protobuf.h. */
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/text.h"

uint8_t *protobuf_put_varint(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

uint8_t *protobuf_put_number(uint8_t *at, unsigned field, uint64_t number)
{
    return protobuf_put_varint(protobuf_put_varint(at, field << 3 | PROTOBUF_VARINT), number);
}

uint8_t *protobuf_put_double(uint8_t *at, unsigned field, double number)
{
    at = protobuf_put_varint(at, field << 3 | PROTOBUF_FIXED64);
    return (uint8_t *)memcpy(at, &number, sizeof number) + sizeof number;
}

uint8_t *protobuf_put_head(uint8_t *at, unsigned field, size_t n)
{
    return protobuf_put_varint(protobuf_put_varint(at, field << 3 | PROTOBUF_BYTES), n);
}

static void append(struct protobuf *m, const void *bytes, size_t n)
{
    m->failed |= n && !occ_grow((void **)&m->bytes, &m->allocated, m->size + n - 1, SIZE_MAX, 1);
    if (m->failed || n == 0)
        return;
    memcpy(m->bytes + m->size, bytes, n);
    m->size += n;
}

void protobuf_free(struct protobuf *m)
{
    free(m->bytes);
    *m = (struct protobuf){0};
}

void protobuf_number(struct protobuf *m, unsigned field, uint64_t number)
{
    uint8_t bytes[PROTOBUF_FIELD_MAX];
    append(m, bytes, (size_t)(protobuf_put_number(bytes, field, number) - bytes));
}

void protobuf_double(struct protobuf *m, unsigned field, double number)
{
    uint8_t bytes[PROTOBUF_FIELD_MAX];
    append(m, bytes, (size_t)(protobuf_put_double(bytes, field, number) - bytes));
}

void protobuf_bytes(struct protobuf *m, unsigned field, const void *bytes, size_t n)
{
    uint8_t head[PROTOBUF_FIELD_MAX];
    append(m, head, (size_t)(protobuf_put_head(head, field, n) - head));
    append(m, bytes, n);
}

/* Returns the length of a text without a character that crosses the maximum. */
static size_t bounded_length(const char *text)
{
    size_t n = strlen(text);
    if (n <= PROTOBUF_TEXT_MAX)
        return n;
    n = PROTOBUF_TEXT_MAX;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

void protobuf_text(struct protobuf *m, unsigned field, const char *text)
{
    char *clean = strdup(text);
    m->failed |= !clean;
    if (!clean)
        return;
    occ_text_sanitise(clean);
    protobuf_bytes(m, field, clean, bounded_length(clean));
    free(clean);
}

void protobuf_message(struct protobuf *m, unsigned field, struct protobuf *inner)
{
    m->failed |= inner->failed;
    protobuf_bytes(m, field, inner->bytes, inner->size);
    protobuf_free(inner);
}

void protobuf_splice(struct protobuf *m, struct protobuf *other)
{
    m->failed |= other->failed;
    append(m, other->bytes, other->size);
    protobuf_free(other);
}
