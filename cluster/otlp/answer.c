/* See answer.h. The document is streamed through yajl; values at other places are skipped. */
#include "answer.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "support/text.h"

#define DEPTH_MAX 16

enum key { OTHER, PARTIAL_SUCCESS, REJECTED, ERROR_MESSAGE, MESSAGE };

/* Names of keys, and the number of objects around them; ERROR_MESSAGE and REJECTED are in partialSuccess. */
static const struct {
    const char *name;
    enum key key;
    int depth;
} keys[] = {{"partialSuccess", PARTIAL_SUCCESS, 1},
            {"rejectedDataPoints", REJECTED, 2},
            {"rejectedProfiles", REJECTED, 2},
            {"errorMessage", ERROR_MESSAGE, 2},
            {"message", MESSAGE, 1}};

struct parser {
    struct occ_otlp_answer *answer;
    int depth;      /* number of open objects and arrays */
    enum key key;   /* key of the next value */
    bool is_inside; /* inside of partialSuccess */
};

static int begin(void *parser_)
{
    struct parser *p = parser_;
    if (p->depth == 1)
        p->is_inside = p->key == PARTIAL_SUCCESS;
    p->key = OTHER;
    return ++p->depth <= DEPTH_MAX;
}

static int end(void *parser_)
{
    struct parser *p = parser_;
    p->depth--;
    p->key = OTHER;
    return 1;
}

static int take_key(void *parser_, const unsigned char *name, size_t n)
{
    struct parser *p = parser_;
    p->key = OTHER;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (p->depth == keys[i].depth && strlen(keys[i].name) == n && memcmp(keys[i].name, name, n) == 0 &&
            (p->depth == 1 || p->is_inside))
            p->key = keys[i].key;
    return 1;
}

static void take_count(struct parser *p, const char *text, size_t n)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", n < sizeof digits ? (int)n : 0, text);
    (void)occ_parse_u64(digits, 0, UINT64_MAX, &p->answer->rejected, NULL);
}

/* Integers of 64 bits are texts in OTLP; numbers are allowed. */
static int take_text(void *parser_, const unsigned char *text, size_t n)
{
    struct parser *p = parser_;
    char *message = p->answer->message;
    if (p->key == REJECTED)
        take_count(p, (const char *)text, n);
    if (p->key == ERROR_MESSAGE || p->key == MESSAGE)
        (void)snprintf(message, OCC_OTLP_MESSAGE_BYTES, "%.*s",
                       n < OCC_OTLP_MESSAGE_BYTES ? (int)n : OCC_OTLP_MESSAGE_BYTES - 1, (const char *)text);
    p->key = OTHER;
    return 1;
}

static int take_number(void *parser_, const char *text, size_t n)
{
    struct parser *p = parser_;
    if (p->key == REJECTED)
        take_count(p, text, n);
    p->key = OTHER;
    return 1;
}

static int skip_null(void *parser_)
{
    ((struct parser *)parser_)->key = OTHER;
    return 1;
}

static int skip_boolean(void *parser_, int boolean)
{
    (void)boolean;
    return skip_null(parser_);
}

void occ_otlp_answer_parse(const char *text, size_t n, struct occ_otlp_answer *ret_answer)
{
    static const yajl_callbacks callbacks = {.yajl_null = skip_null,
                                             .yajl_boolean = skip_boolean,
                                             .yajl_number = take_number,
                                             .yajl_string = take_text,
                                             .yajl_start_map = begin,
                                             .yajl_map_key = take_key,
                                             .yajl_end_map = end,
                                             .yajl_start_array = begin,
                                             .yajl_end_array = end};
    *ret_answer = (struct occ_otlp_answer){0};
    struct parser parser = {.answer = ret_answer};
    yajl_handle yajl = yajl_alloc(&callbacks, NULL, &parser);
    if (!yajl)
        return; /* no memory: the answer has no details */
    if (yajl_parse(yajl, (const unsigned char *)text, n) != yajl_status_ok ||
        yajl_complete_parse(yajl) != yajl_status_ok)
        *ret_answer = (struct occ_otlp_answer){0};
    yajl_free(yajl);
    occ_text_sanitise(ret_answer->message);
}
