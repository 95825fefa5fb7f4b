/* The wire format of Protocol Buffers, as far as Nsight Compute's reports need it. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum occ_wire_type { OCC_WIRE_VARINT = 0, OCC_WIRE_FIXED64 = 1, OCC_WIRE_BYTES = 2, OCC_WIRE_FIXED32 = 5 };

/* A message, and its field at hand. */
struct occ_wire {
    const unsigned char *at, *end; /* what follows the field */
    uint64_t field;
    unsigned type;   /* enum occ_wire_type */
    uint64_t number; /* its value; of BYTES, how many */
    const unsigned char *bytes;
};

/* The next field. false: the end (at == end), or damaged. */
bool occ_wire_next(struct occ_wire *m);

/* Whether the rest consists of fields to its end. */
bool occ_wire_is_whole(struct occ_wire m);

/* The message in the field at hand; empty: it is another type. */
struct occ_wire occ_wire_part(const struct occ_wire *m);

/* To the first field of that path: the field's number in the message, then in that field's message, and so
 * on, a byte each. false: there is none, and *ret_field is undefined. */
bool occ_wire_find(struct occ_wire m, const char *path, struct occ_wire *ret_field);

/* Of the same: a VARINT, 0: none; text, which stays where there is none, cut at its size. */
uint64_t occ_wire_number(const struct occ_wire *m, const char *path);
void occ_wire_text(const struct occ_wire *m, const char *path, char *text, size_t size);

/* The field at hand as a number; NaN: it is none. */
double occ_wire_real(const struct occ_wire *m);
