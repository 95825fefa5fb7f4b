/* See ncu_wire.h. Pure. */
#include "ncu_wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool read_varint(struct occ_wire *m, uint64_t *ret_value)
{
    *ret_value = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        *ret_value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct occ_wire *m, size_t size)
{
    if ((size_t)(m->end - m->at) < size)
        return false;
    for (size_t i = 0; i < size; i++)
        m->number |= (uint64_t)m->at[i] << (8 * i);
    m->at += size;
    return true;
}

static bool read_value(struct occ_wire *m)
{
    m->number = 0;
    switch (m->type) {
    case OCC_WIRE_VARINT:
        return read_varint(m, &m->number);
    case OCC_WIRE_FIXED64:
        return read_fixed(m, 8);
    case OCC_WIRE_FIXED32:
        return read_fixed(m, 4);
    case OCC_WIRE_BYTES:
        if (!read_varint(m, &m->number) || m->number > (uint64_t)(m->end - m->at))
            return false;
        m->bytes = m->at;
        m->at += m->number;
        return true;
    default: /* groups, which proto3 does not have */
        return false;
    }
}

bool occ_wire_next(struct occ_wire *m)
{
    uint64_t key;
    const unsigned char *start = m->at;
    if (start == m->end)
        return false;
    if (read_varint(m, &key)) {
        m->field = key >> 3;
        m->type = key & 7;
        if (m->field != 0 && read_value(m))
            return true;
    }
    m->at = start; /* damaged: at != end */
    return false;
}

struct occ_wire occ_wire_part(const struct occ_wire *m)
{
    const unsigned char *end = m->type == OCC_WIRE_BYTES ? m->bytes + m->number : m->end;
    return (struct occ_wire){.at = m->type == OCC_WIRE_BYTES ? m->bytes : end, .end = end};
}

bool occ_wire_find(struct occ_wire m, const char *path, struct occ_wire *ret_field)
{
    while (occ_wire_next(&m))
        if (m.field == (unsigned char)*path) {
            *ret_field = m;
            if (!path[1] || occ_wire_find(occ_wire_part(&m), path + 1, ret_field))
                return true;
        }
    return false;
}

uint64_t occ_wire_number(const struct occ_wire *m, const char *path)
{
    struct occ_wire field;
    return occ_wire_find(*m, path, &field) && field.type == OCC_WIRE_VARINT ? field.number : 0;
}

void occ_wire_text(const struct occ_wire *m, const char *path, char *text, size_t size)
{
    struct occ_wire field;
    if (occ_wire_find(*m, path, &field) && field.type == OCC_WIRE_BYTES && field.number > 0)
        (void)snprintf(text, size, "%.*s", (int)(field.number < size ? field.number : size), field.bytes);
}

bool occ_wire_is_whole(struct occ_wire m)
{
    while (occ_wire_next(&m))
        ;
    return m.at == m.end;
}

double occ_wire_real(const struct occ_wire *m)
{
    double real = NAN;
    float small = NAN;
    uint32_t bits = (uint32_t)m->number;
    if (m->type == OCC_WIRE_VARINT)
        return (double)m->number;
    if (m->type == OCC_WIRE_FIXED64)
        memcpy(&real, &m->number, sizeof real);
    if (m->type == OCC_WIRE_FIXED32) {
        memcpy(&small, &bits, sizeof small);
        real = (double)small;
    }
    return real;
}
