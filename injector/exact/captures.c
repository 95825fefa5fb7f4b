/* See captures.h. */
#include "captures.h"

#include <stddef.h>

static struct occ_capture *find(struct occ_captures *captures, const struct occ_capture_stream *of)
{
    bool is_named = of->stream || of->thread;
    for (uint32_t i = 0; is_named && i < OCC_CAPTURES_MAX; i++) {
        struct occ_capture *c = &captures->entries[i];
        if (c->is_used && c->of.stream == of->stream && c->of.thread == of->thread &&
            (!of->thread || c->of.context == of->context))
            return c;
    }
    return NULL;
}

/* Returns NULL if the table is full or the stream unknown. */
static struct occ_capture *add(struct occ_captures *captures, const struct occ_capture_stream *of)
{
    uint32_t i = of->stream || of->thread ? 0 : OCC_CAPTURES_MAX;
    while (i < OCC_CAPTURES_MAX && captures->entries[i].is_used)
        i++;
    if (i == OCC_CAPTURES_MAX)
        return NULL;
    captures->entries[i] = (struct occ_capture){.of = *of, .is_used = true};
    return &captures->entries[i];
}

static void remove_if_over(struct occ_captures *captures, struct occ_capture *c)
{
    if (c->serial != 0 || c->entered > 0)
        return;
    c->is_used = false;
    captures->n--;
}

static void end_unnamed(struct occ_captures *captures)
{
    if (captures->unnamed == 0)
        return;
    captures->unnamed--;
    captures->n--;
}

bool occ_captures_enter(struct occ_captures *captures, const struct occ_capture_stream *of)
{
    struct occ_capture *c = find(captures, of);
    bool is_new = !c;
    if (is_new) {
        captures->n++;
        c = add(captures, of);
    }
    if (c)
        c->entered++;
    else
        captures->unnamed++;
    return is_new;
}

void occ_captures_begin(struct occ_captures *captures, const struct occ_capture_stream *of, bool has_begun)
{
    struct occ_capture *c = find(captures, of);
    if (!c) {
        if (!has_begun)
            end_unnamed(captures);
        return;
    }
    c->entered -= c->entered > 0;
    if (has_begun)
        c->serial = ++captures->serials;
    remove_if_over(captures, c);
}

uint64_t occ_captures_find(struct occ_captures *captures, const struct occ_capture_stream *of,
                           bool may_be_unnamed)
{
    const struct occ_capture *c = find(captures, of);
    if (c)
        return c->serial;
    return may_be_unnamed && captures->unnamed > 0 ? OCC_CAPTURE_UNNAMED : 0;
}

void occ_captures_end(struct occ_captures *captures, uint64_t serial)
{
    if (serial == OCC_CAPTURE_UNNAMED)
        end_unnamed(captures);
    for (uint32_t i = 0; serial != 0 && i < OCC_CAPTURES_MAX; i++) {
        struct occ_capture *c = &captures->entries[i];
        if (!c->is_used || c->serial != serial)
            continue;
        c->serial = 0;
        remove_if_over(captures, c);
    }
}

void occ_captures_end_context(struct occ_captures *captures, const void *context)
{
    for (uint32_t i = 0; i < OCC_CAPTURES_MAX; i++)
        if (captures->entries[i].is_used && captures->entries[i].of.thread &&
            captures->entries[i].of.context == context)
            occ_captures_end(captures, captures->entries[i].serial);
}

void occ_captures_end_thread(struct occ_captures *captures, const void *thread)
{
    for (uint32_t i = 0; i < OCC_CAPTURES_MAX; i++)
        if (captures->entries[i].is_used && captures->entries[i].of.thread == thread)
            occ_captures_end(captures, captures->entries[i].serial);
}
