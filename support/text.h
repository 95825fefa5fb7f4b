/*
 * Numbers, durations, sizes, moments and names: parsing, formatting, spelling suggestions. No state; any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* The whole text is a number in [min, max]. Blanks, a sign on unsigned numbers and trailing text are errors:
 * OCC_E_INVALID with a message that quotes the text. */
int occ_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct occ_error *err);
int occ_parse_double(const char *text, double min, double max, double *ret_value, struct occ_error *err);

/* "90s", "15m", "2h", "3d", "1w", "500ms"; a bare number is seconds. 1 ns <= result < 2^63 ns. */
int occ_parse_duration_ns(const char *text, int64_t *ret_ns, struct occ_error *err);

/* "64k", "16M", "20G" (powers of 1024); a bare number is bytes. */
int occ_parse_bytes(const char *text, uint64_t max, uint64_t *ret_bytes, struct occ_error *err);

/* A moment in nanoseconds since 1970: a duration before `now_ns` ("2h"), "YYYY-MM-DD[ HH:MM[:SS]]" in local
 * time, "today" or "yesterday" (the first moment of the local day), "now", or "@SECONDS" since 1970. */
int occ_parse_time_ns(const char *text, int64_t now_ns, int64_t *ret_ns, struct occ_error *err);

/* "1.235 ms", "45 ns", "2.083 h", "-1.5 s": the largest unit that gives at least 1, at most four significant
 * digits. Returns `buffer`. */
const char *occ_format_duration(int64_t ns, char *buffer, size_t size);
/* Formats for columns, where numbers stand below each other: always four digits and the unit, "1.235",
 * "12.30", "123.0", "1235"; "-1.500 s", "45 ns". Return `buffer`. */
const char *occ_format_digits(double value, const char *unit, char *buffer, size_t size);
const char *occ_format_duration_digits(int64_t ns, char *buffer, size_t size);
/* "12.3 MiB". */
const char *occ_format_bytes(uint64_t bytes, char *buffer, size_t size);

/* printf() into a malloc'ed text, which the caller frees; NULL after a failure (OCC_E_NO_MEMORY). */
int occ_format_text(char **ret_text, struct occ_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends printf() output to the text in `buffer`, after `separator` if the buffer has text; cut to `size`
 * bytes. */
void occ_text_append(char *buffer, size_t size, const char *separator, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* `word` as a shell reads it back: in quotes, unless it needs none. malloc'ed; NULL: no memory. */
char *occ_text_quote(const char *word);

/* Replaces the bytes of control characters, of invisible ones (such as U+202E, which turns the text around)
 * and of invalid UTF-8 by '?', in place: names from traced programs reach terminals. */
void occ_text_sanitise(char *text);
/* Bytes of the character at `text`, 1 to 4; 0: the text ends, or occ_text_sanitise() replaces the byte. */
size_t occ_text_character(const char *text);

/* The closest of `words` (NULL-terminated) by edit distance. Among equally close words, a word with the same
 * first letter, then the first word. NULL: no word is close. */
const char *occ_text_nearest(const char *word, const char *const *words);

/* Words of an X-macro X(NAME, word, ...): {LIST(OCC_WORD)} is an array of all words. OCC_WORDS() defines
 * `const char *function(type value)`, which returns the word of an enumerator. */
#define OCC_WORD(name, word, ...) word,
#define OCC_WORDS(function, type, LIST)                                                                      \
    const char *function(type value)                                                                         \
    {                                                                                                        \
        static const char *const words[] = {LIST(OCC_WORD)};                                                 \
        return words[value];                                                                                 \
    }

/* Writes 2*n lower-case hexadecimal digits and a NUL. */
void occ_hex_encode(const uint8_t *bytes, size_t n, char *out);
/* "GPU-8-4-4-4-12", as NVML has it. */
#define OCC_GPU_UUID_BYTES 41
void occ_gpu_uuid_format(const uint8_t uuid[16], char text[OCC_GPU_UUID_BYTES]);
/* Exactly 2*n digits, or false. */
bool occ_hex_decode(const char *text, uint8_t *bytes, size_t n);
