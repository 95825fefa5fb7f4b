/*
 * JSON as some recorders write it, made strict while it is read: control characters in texts, backslashes
 * that begin no escape (paths of Windows), NaN and Infinity, a byte order mark. Nothing else changes. One
 * thread.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "readers.h"

#define GROWTH_MAX                                                                                           \
    8u /* output bytes for one input byte: "\u001f" for a control character, and the held text */

static void put(struct occ_repair *r, const char *text, size_t n)
{
    memcpy(r->out + r->n, text, n);
    r->n += n;
}

/* Writes the held text unchanged. */
static void put_held(struct occ_repair *r)
{
    put(r, r->held, r->n_held);
    r->n_held = 0;
}

/* Ends a word or sign outside of texts: NaN and infinities become null. */
static void end_word(struct occ_repair *r)
{
    static const char *const none[] = {"NaN", "-NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strlen(none[i]) == r->n_held && memcmp(none[i], r->held, r->n_held) == 0) {
            memcpy(r->held, "null", 4);
            r->n_held = 4;
        }
    put_held(r);
}

static void outside(struct occ_repair *r, char c)
{
    if ((isalpha((unsigned char)c) || (c == '-' && r->n_held == 0)) && r->n_held < sizeof r->held) {
        r->held[r->n_held++] = c;
        return;
    }
    end_word(r);
    put(r, &c, 1);
    r->state = c == '"' ? OCC_REPAIR_TEXT : OCC_REPAIR_OUTSIDE;
}

static void inside(struct occ_repair *r, char c)
{
    char escape[8];
    if (c == '\\') {
        r->held[r->n_held++] = c;
        r->state = OCC_REPAIR_ESCAPE;
    } else if ((unsigned char)c < ' ') {
        put(r, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c));
    } else {
        put(r, &c, 1);
        r->state = c == '"' ? OCC_REPAIR_OUTSIDE : OCC_REPAIR_TEXT;
    }
}

/* Continues an escape; held text: a backslash, perhaps "u" and digits. */
static void escaped(struct occ_repair *r, char c)
{
    bool is_unicode = r->n_held > 1, is_digit = isxdigit((unsigned char)c);
    if (is_unicode ? is_digit : c == 'u') {
        r->held[r->n_held++] = c;
        if (r->n_held < 6)
            return;
        put_held(r);
        r->state = OCC_REPAIR_TEXT;
        return;
    }
    bool is_escape = !is_unicode && c != '\0' && strchr("\"\\/bfnrt", c);
    r->state = OCC_REPAIR_TEXT;
    if (!is_escape)
        put(r, "\\", 1); /* a literal backslash */
    put_held(r);
    if (is_escape)
        put(r, &c, 1);
    else
        inside(r, c);
}

static void skip_mark(struct occ_repair *r, unsigned char *data, size_t *n)
{
    if (!r->begun && *n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        *n -= 3;
        memmove(data, data + 3, *n);
    }
    r->begun = true;
}

static int repair_read(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                       struct occ_error *err)
{
    struct occ_repair *r = (struct occ_repair *)input;
    unsigned char raw[4096];
    size_t room = (size - sizeof r->held) / GROWTH_MAX, n = 0;
    bool is_end = false;
    int status = 0;
    r->out = (char *)data;
    r->n = 0;
    do {
        status = r->from->read(r->from, raw, room < sizeof raw ? room : sizeof raw, &n, err);
        is_end = n == 0;
        skip_mark(r, raw, &n);
        for (size_t i = 0; i < n && status == 0; i++)
            (r->state == OCC_REPAIR_OUTSIDE ? outside
             : r->state == OCC_REPAIR_TEXT  ? inside
                                            : escaped)(r, (char)raw[i]);
    } while (status == 0 && !is_end && r->n == 0);
    if (is_end)
        end_word(r);
    input->done = r->from->done;
    *ret_n = r->n;
    return status;
}

static int repair_rewind(struct occ_kineto_input *input, struct occ_error *err)
{
    struct occ_repair *r = (struct occ_repair *)input;
    *r = occ_repair(r->from);
    return r->from->rewind(r->from, err);
}

struct occ_repair occ_repair(struct occ_kineto_input *from)
{
    return (struct occ_repair){.input = {.read = repair_read, .rewind = repair_rewind, .total = from->total},
                               .from = from};
}
