/* The subset of the Protocol Buffers wire format that Nsight Compute's reports use. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum occ_wire_type { OCC_WIRE_VARINT = 0, OCC_WIRE_FIXED64 = 1, OCC_WIRE_BYTES = 2, OCC_WIRE_FIXED32 = 5 };

/* A message, and its current field. */
struct occ_wire {
    const unsigned char *at, *end; /* the rest of the message after the field */
    uint64_t field;
    unsigned type;   /* enum occ_wire_type */
    uint64_t number; /* the field's value; for BYTES the length */
    const unsigned char *bytes;
};

/* Moves to the next field. False: the end (at == end), or damaged. */
bool occ_wire_next(struct occ_wire *m);

/* True if the rest is a sequence of whole fields. */
bool occ_wire_is_whole(struct occ_wire m);

/* The message in the current field; empty if the field has another type. */
struct occ_wire occ_wire_part(const struct occ_wire *m);

/* Finds the first field with this path: the field's number in the message, then in that field's message, and
 * so on, a byte each. False: there is none, and *ret_field is undefined. */
bool occ_wire_find(struct occ_wire m, const char *path, struct occ_wire *ret_field);

/* The field with this path: a VARINT, 0 if missing; or text, cut at its size and unchanged if missing. */
uint64_t occ_wire_number(const struct occ_wire *m, const char *path);
void occ_wire_text(const struct occ_wire *m, const char *path, char *text, size_t size);

/* The current field as a number; NaN: not a number. */
double occ_wire_real(const struct occ_wire *m);
