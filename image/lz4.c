/* LZ4 block decoder. A block is a series of {token, literals, 16-bit distance}: the token's high half is the
 * number of literals, its low half the match length - 4; 15 in either is extended by the following bytes up
 * to the first below 255. The last sequence has literals only. Pure; any thread. */
#include "lz4.h"

#include <string.h>

struct reader {
    const uint8_t *at, *end;
};

/* Adds the extension bytes of a length with nibble 15. */
static bool read_length(struct reader *in, size_t *length)
{
    if (*length != 15)
        return true;
    uint8_t byte;
    do {
        if (in->at == in->end)
            return false;
        byte = *in->at++;
        *length += byte;
    } while (byte == 255);
    return true;
}

bool occ_image_lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    struct reader reader = {in, in + in_size};
    size_t done = 0;
    while (reader.at < reader.end) {
        uint8_t token = *reader.at++;
        size_t literals = token >> 4, match = token & 15;
        if (!read_length(&reader, &literals) || literals > (size_t)(reader.end - reader.at) ||
            literals > out_size - done)
            return false;
        memcpy(out + done, reader.at, literals);
        reader.at += literals;
        done += literals;
        if (reader.at == reader.end)
            break;
        if (reader.end - reader.at < 2)
            return false;
        size_t distance = (size_t)(reader.at[0] | reader.at[1] << 8);
        reader.at += 2;
        if (!read_length(&reader, &match) || distance == 0 || distance > done || match + 4 > out_size - done)
            return false;
        /* byte by byte, since source and destination of a match may overlap */
        for (match += 4; match; match--, done++)
            out[done] = out[done - distance];
    }
    return done == out_size;
}
