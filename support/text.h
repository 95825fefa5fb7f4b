/*
 * Text: what users type, and what we show them. No global state; any thread.
 */
#ifndef OCC_SUPPORT_TEXT_H
#define OCC_SUPPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Whole-string number in [min, max]; anything else (blanks, signs where unsigned, trailing text) fails with
 * OCC_E_INVALID and a message that quotes the text. */
int occ_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct occ_error *err);
int occ_parse_double(const char *text, double min, double max, double *ret_value, struct occ_error *err);

/* "90s", "15m", "2h", "3d", "1w", "500ms", a bare number is seconds. 0 < result < 2^63. */
int occ_parse_duration_ns(const char *text, int64_t *ret_ns, struct occ_error *err);

/* "64k", "16M", "20G" (powers of 1024) or bytes. */
int occ_parse_bytes(const char *text, uint64_t max, uint64_t *ret_bytes, struct occ_error *err);

/* A moment: a duration ago ("2h"), "YYYY-MM-DD[ HH:MM[:SS]]" in local time, or "@SECONDS" since the epoch.
 * `now_ns` is what durations are subtracted from. Nanoseconds since the epoch. */
int occ_parse_time_ns(const char *text, int64_t now_ns, int64_t *ret_ns, struct occ_error *err);

/* "1.23 ms", "45 ns", "2 h 5 min": four significant digits at most, into `buffer`; returns buffer. */
const char *occ_format_duration(int64_t ns, char *buffer, size_t size);
/* "12.3 MiB". */
const char *occ_format_bytes(uint64_t bytes, char *buffer, size_t size);

/* Replaces control characters and bytes that are not UTF-8 by '?', in place: names come from other people's
 * programs and end on terminals. */
void occ_text_sanitise(char *text);

/* The word in `words` (NULL-terminated) closest to `word` by edit distance, or NULL if none is near. */
const char *occ_text_nearest(const char *word, const char *const *words);

/* Writes 2*n lower-case hexadecimal digits and a NUL. */
void occ_hex_encode(const uint8_t *bytes, size_t n, char *out);
/* Exactly 2*n digits, or false. */
bool occ_hex_decode(const char *text, uint8_t *bytes, size_t n);

#endif
