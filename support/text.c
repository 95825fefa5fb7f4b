/* Parsing and formatting of numbers, durations, moments. Pure functions of their arguments; any thread. */
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct unit {
    const char *name;
    double factor;
};

int occ_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct occ_error *err)
{
    if (!isdigit((unsigned char)text[0]))
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a whole number", text);
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0')
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a whole number", text);
    if (errno == ERANGE || value < min || value > max)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%llu to %llu)", text,
                        (unsigned long long)min, (unsigned long long)max);
    *ret_value = value;
    return 0;
}

int occ_parse_double(const char *text, double min, double max, double *ret_value, struct occ_error *err)
{
    char *end = NULL;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.' && text[0] != '-')
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a number", text);
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a number", text);
    if (value < min || value > max)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%g to %g)", text, min, max);
    *ret_value = value;
    return 0;
}

/* A non-negative decimal number with one of `units`; the last unit is named "". */
static bool number_with_unit(const char *text, const struct unit *units, double *ret_value)
{
    char *end = NULL;
    if (!isdigit((unsigned char)text[0]) || strpbrk(text, "xXpP"))
        return false;
    double number = strtod(text, &end);
    if (!isfinite(number))
        return false;
    for (const struct unit *u = units;; u++) {
        if (strcmp(end, u->name) == 0) {
            *ret_value = number * u->factor;
            return true;
        }
        if (u->name[0] == '\0')
            return false;
    }
}

int occ_parse_duration_ns(const char *text, int64_t *ret_ns, struct occ_error *err)
{
    static const struct unit units[] = {
        {"ns", 1},     {"us", 1e3},   {"ms", 1e6},    {"s", 1e9},         {"m", 60e9},
        {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {"w", 7 * 86400e9}, {"", 1e9},
    };
    double value = 0;
    if (!number_with_unit(text, units, &value) || value < 1 || value >= 9.2e18)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a duration (such as 90s, 15m, 2h, 3d)", text);
    *ret_ns = (int64_t)value;
    return 0;
}

int occ_parse_bytes(const char *text, uint64_t max, uint64_t *ret_bytes, struct occ_error *err)
{
    static const struct unit units[] = {
        {"k", 1024.0},       {"K", 1024.0},       {"m", 1048576.0},       {"M", 1048576.0},
        {"g", 1073741824.0}, {"G", 1073741824.0}, {"T", 1099511627776.0}, {"", 1},
    };
    double value = 0;
    if (!number_with_unit(text, units, &value))
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is not a size (such as 4096, 64k, 16M, 2G)", text);
    if (value > (double)max)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is more than %llu bytes", text, (unsigned long long)max);
    *ret_bytes = (uint64_t)value;
    return 0;
}

/* Offset of local time from UTC at that moment, in seconds. */
static time_t offset_at(time_t seconds)
{
    struct tm tm;
    return localtime_r(&seconds, &tm) ? tm.tm_gmtoff : 0;
}

static bool is_clock(const struct tm *asked, time_t seconds)
{
    struct tm tm;
    return localtime_r(&seconds, &tm) && tm.tm_mday == asked->tm_mday && tm.tm_hour == asked->tm_hour &&
           tm.tm_min == asked->tm_min && tm.tm_sec == asked->tm_sec;
}

/* Moments at which clocks show the local time `asked`, the earlier first: two where clocks are put back, none
 * where they are put forward. Offsets are the zone's a day before and after, not tm_isdst, since zones also
 * change their offset without daylight saving. */
static size_t moments_of(const struct tm *asked, time_t ret_moments[2])
{
    enum { DAY = 86400 };
    struct tm copy = *asked;
    time_t as_utc = timegm(&copy);
    const time_t moments[] = {as_utc - offset_at(as_utc - DAY), as_utc - offset_at(as_utc + DAY)};
    size_t n = 0;
    for (size_t i = 0; i < 2; i++)
        if (is_clock(asked, moments[i]) && (n == 0 || moments[i] != ret_moments[0]))
            ret_moments[n++] = moments[i];
    return n;
}

static int fail_twice(const char *text, const time_t moments[2], struct occ_error *err)
{
    return occ_fail(err, OCC_E_INVALID,
                    "'%.64s' occurs twice, since clocks are put back: @%lld or @%lld names one of them", text,
                    (long long)moments[0], (long long)moments[1]);
}

/* OCC_E_NOT_FOUND: not a date, or a date that clocks never show. */
static int parse_date(const char *text, int64_t *ret_ns, struct occ_error *err)
{
    static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                          "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, formats[i], &tm);
        if (end && *end == '\0') {
            bool has_hours = i < sizeof formats / sizeof *formats - 1;
            struct tm asked = tm;
            time_t moments[2] = {0}, seconds = mktime(&tm);
            size_t n = moments_of(&asked, moments);
            /* February 30 becomes March 1 or 2; without a midnight (clocks put forward), a day begins
             * later */
            if (tm.tm_mday != asked.tm_mday || (n == 0 && has_hours))
                return OCC_E_NOT_FOUND;
            if (n == 2 && has_hours)
                return fail_twice(text, moments, err);
            seconds = n > 0 ? moments[0] : seconds;
            return seconds == (time_t)-1 || __builtin_mul_overflow((int64_t)seconds, 1000000000, ret_ns)
                       ? OCC_E_NOT_FOUND
                       : 0;
        }
    }
    return OCC_E_NOT_FOUND;
}

/* "today" and "yesterday", as the date of that day. OCC_E_NOT_FOUND: another text. */
static int parse_day(const char *text, int64_t now_ns, int64_t *ret_ns, struct occ_error *err)
{
    static const char *const words[] = {"today", "yesterday"};
    char date[32];
    for (int days = 0; days < 2; days++) {
        time_t now = (time_t)(now_ns / 1000000000);
        struct tm tm;
        if (strcmp(text, words[days]) != 0 || !localtime_r(&now, &tm))
            continue;
        struct tm noon = {.tm_year = tm.tm_year,
                          .tm_mon = tm.tm_mon,
                          .tm_mday = tm.tm_mday - days,
                          .tm_hour = 12,
                          .tm_isdst = -1};
        return mktime(&noon) != (time_t)-1 && strftime(date, sizeof date, "%Y-%m-%d", &noon) > 0
                   ? parse_date(date, ret_ns, err)
                   : OCC_E_NOT_FOUND;
    }
    return OCC_E_NOT_FOUND;
}

int occ_parse_time_ns(const char *text, int64_t now_ns, int64_t *ret_ns, struct occ_error *err)
{
    int64_t value = 0;
    uint64_t seconds = 0;
    if (text[0] == '@') {
        if (occ_parse_u64(text + 1, 0, INT64_MAX / 1000000000, &seconds, err) != 0)
            return OCC_E_INVALID;
        *ret_ns = (int64_t)seconds * 1000000000;
        return 0;
    }
    int status = parse_date(text, ret_ns, err);
    if (status == OCC_E_NOT_FOUND)
        status = parse_day(text, now_ns, ret_ns, err);
    if (status != OCC_E_NOT_FOUND)
        return status;
    if (strcmp(text, "now") != 0 && occ_parse_duration_ns(text, &value, NULL) != 0)
        return occ_fail(err, OCC_E_INVALID,
                        "'%.64s' is neither a duration (such as 2h) nor a moment of local time (YYYY-MM-DD "
                        "HH:MM) or @seconds",
                        text);
    *ret_ns = value > now_ns ? 0 : now_ns - value;
    return 0;
}

const char *occ_format_digits(double value, const char *unit, char *buffer, size_t size)
{
    double magnitude = fabs(value);
    int decimals = magnitude < 9.9995 ? 3 : magnitude < 99.995 ? 2 : magnitude < 999.95 ? 1 : 0;
    (void)snprintf(buffer, size, "%.*f%s", decimals, magnitude < 0.0005 ? 0 : value, unit); /* no "-0.000" */
    return buffer;
}

/* The largest unit that gives at least 1. */
static const struct unit *unit_of_duration(int64_t ns)
{
    static const struct unit units[] = {{" d", 86400e9}, {" h", 3600e9}, {" min", 60e9}, {" s", 1e9},
                                        {" ms", 1e6},    {" us", 1e3},   {" ns", 1}};
    const struct unit *u = units;
    while (fabs((double)ns) < u->factor && u->factor > 1)
        u++;
    return u;
}

const char *occ_format_duration(int64_t ns, char *buffer, size_t size)
{
    const struct unit *u = unit_of_duration(ns);
    (void)snprintf(buffer, size, "%.4g%s", (double)ns / u->factor, u->name);
    return buffer;
}

const char *occ_format_duration_digits(int64_t ns, char *buffer, size_t size)
{
    const struct unit *u = unit_of_duration(ns);
    return u->factor > 1 ? occ_format_digits((double)ns / u->factor, u->name, buffer, size)
                         : occ_format_duration(ns, buffer, size);
}

const char *occ_format_bytes(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t i = 0;
    while (value >= 1024 && i + 1 < sizeof names / sizeof *names) {
        value /= 1024;
        i++;
    }
    (void)snprintf(buffer, size, i == 0 ? "%.0f %s" : "%.1f %s", value, names[i]);
    return buffer;
}

char *occ_text_quote(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:,@%";
    size_t n = strlen(word);
    char *text = malloc(4 * n + 3);
    if (!text)
        return NULL;
    bool is_plain = n > 0 && strspn(word, plain) == n;
    char *end = stpcpy(text, is_plain ? word : "'");
    for (size_t i = 0; i < n && !is_plain; i++)
        end = word[i] == '\'' ? stpcpy(end, "'\\''") : stpncpy(end, word + i, 1);
    (void)stpcpy(end, is_plain ? "" : "'");
    return text;
}

void occ_text_append(char *buffer, size_t size, const char *separator, const char *format, ...)
{
    size_t used = strlen(buffer);
    va_list args;
    if (used > 0)
        (void)snprintf(buffer + used, size - used, "%s", separator);
    used += strlen(buffer + used);
    va_start(args, format);
    (void)vsnprintf(buffer + used, size - used, format, args);
    va_end(args);
}

int occ_format_text(char **ret_text, struct occ_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vasprintf(ret_text, format, args);
    va_end(args);
    if (n >= 0)
        return 0;
    *ret_text = NULL;
    return occ_no_memory(err);
}

/* Control characters, and Unicode characters that are invisible or change the direction of the surrounding
 * text. */
static bool is_invisible(unsigned int code)
{
    static const unsigned int ranges[][2] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* Length of the valid, printable UTF-8 sequence at `s` (1 to 4), or 0. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char mask, lead;
        unsigned int min;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t n = 1; n <= 4; n++) {
        if ((s[0] & forms[n - 1].mask) != forms[n - 1].lead)
            continue;
        unsigned int code = s[0] & (unsigned int)(unsigned char)~forms[n - 1].mask;
        for (size_t i = 1; i < n; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            code = (code << 6) | (s[i] & 0x3fU);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code >= forms[n - 1].min && code <= 0x10ffff && !surrogate && !is_invisible(code) ? n : 0;
    }
    return 0;
}

size_t occ_text_character(const char *text)
{
    return utf8_length((const unsigned char *)text);
}

void occ_text_sanitise(char *text)
{
    while (*text) {
        size_t n = occ_text_character(text);
        if (n == 0)
            *text = '?';
        text += n ? n : 1;
    }
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Number of characters to add, remove, replace or swap with their neighbour; three rows of the table
 * suffice. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t la = strlen(a), lb = strlen(b), rows[3][MAX + 1];
    if (la > MAX || lb > MAX)
        return MAX;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            row[j] = min_size(min_size(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_size(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

const char *occ_text_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    size_t best_score = 2 * (strlen(word) / 3 + 2);
    for (; *words; words++) {
        bool other_start = word[0] != (*words)[0];
        size_t distance = edit_distance(word, *words), score = 2 * distance + other_start;
        if (distance > 1 && other_start)
            continue; /* short words are all close to each other */
        if (score < best_score) {
            best_score = score;
            best = *words;
        }
    }
    return best;
}

void occ_hex_encode(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

void occ_gpu_uuid_format(const uint8_t uuid[16], char text[OCC_GPU_UUID_BYTES])
{
    char hex[33];
    occ_hex_encode(uuid, 16, hex);
    (void)snprintf(text, OCC_GPU_UUID_BYTES, "GPU-%.8s-%.4s-%.4s-%.4s-%s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool occ_hex_decode(const char *text, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_value(text[2 * i]);
        int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * n] == '\0';
}
