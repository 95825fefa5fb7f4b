/* See message.h. One thread. */
#include "message.h"

#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

struct parser {
    struct mcp_message *message;
    struct mcp_value *open[MCP_DEPTH_MAX], *last[MCP_DEPTH_MAX]; /* objects and arrays; their newest child */
    size_t depth;
    const char *key;   /* of the next value */
    const char *limit; /* the exceeded limit; NULL: none */
};

/* Adds a value to the object or array opened last. NULL: a limit is exceeded. */
static struct mcp_value *add(struct parser *p, enum mcp_type type)
{
    struct mcp_message *message = p->message;
    if (message->n == MCP_VALUES_MAX) {
        p->limit = "too many values";
        return NULL;
    }
    struct mcp_value *value = &message->values[message->n++];
    *value = (struct mcp_value){.type = type, .key = p->key};
    p->key = NULL;
    if (p->depth > 0) {
        struct mcp_value **last = &p->last[p->depth - 1];
        if (*last)
            (*last)->next = value;
        else
            p->open[p->depth - 1]->first = value;
        *last = value;
    }
    return value;
}

static const char *copy(struct parser *p, const void *text, size_t length)
{
    char *room = occ_arena_get(&p->message->texts, length + 1, 1);
    if (!room) {
        p->limit = "no memory";
        return NULL;
    }
    memcpy(room, text, length);
    room[length] = '\0';
    return room;
}

static int add_text(struct parser *p, enum mcp_type type, const void *text, size_t length)
{
    struct mcp_value *value = add(p, type);
    if (!value)
        return 0;
    value->text = copy(p, text, length);
    value->length = length;
    return value->text != NULL;
}

static int on_null(void *context)
{
    return add(context, MCP_NULL) != NULL;
}

static int on_boolean(void *context, int boolean)
{
    struct mcp_value *value = add(context, MCP_BOOLEAN);
    if (value)
        value->boolean = boolean != 0;
    return value != NULL;
}

static int on_number(void *context, const char *digits, size_t length)
{
    return add_text(context, MCP_NUMBER, digits, length);
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
    return add_text(context, MCP_STRING, text, length);
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
    struct parser *p = context;
    p->key = copy(p, text, length);
    return p->key != NULL;
}

static int open_value(struct parser *p, enum mcp_type type)
{
    struct mcp_value *value = add(p, type);
    if (!value)
        return 0;
    if (p->depth == MCP_DEPTH_MAX) {
        p->limit = "too deep";
        return 0;
    }
    p->open[p->depth] = value;
    p->last[p->depth++] = NULL;
    return 1;
}

static int on_object(void *context)
{
    return open_value(context, MCP_OBJECT);
}

static int on_array(void *context)
{
    return open_value(context, MCP_ARRAY);
}

static int on_end(void *context)
{
    struct parser *p = context;
    p->depth--;
    return 1;
}

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_object,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_end};

int mcp_message_parse(const char *line, size_t length, struct mcp_message *ret_message, struct occ_error *err)
{
    struct parser p = {.message = ret_message};
    ret_message->n = 0;
    ret_message->texts = (struct occ_arena){.failed = false};
    if (length > MCP_LINE_MAX)
        return occ_fail(err, OCC_E_FULL, "the message has more than %d bytes", MCP_LINE_MAX);
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &p);
    if (!parser)
        return occ_no_memory(err);
    yajl_status status = yajl_parse(parser, (const unsigned char *)line, length);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(parser);
    yajl_free(parser);
    if (p.limit)
        return occ_fail(err, OCC_E_FULL, "the message exceeds a limit: %s", p.limit);
    return status == yajl_status_ok && ret_message->n > 0 ? 0
                                                          : occ_fail(err, OCC_E_INVALID, "not a JSON text");
}

void mcp_message_free(struct mcp_message *message)
{
    occ_arena_free(message->texts.blocks);
    message->texts = (struct occ_arena){.failed = false};
}

const struct mcp_value *mcp_member(const struct mcp_value *object, const char *name)
{
    const struct mcp_value *value = object && object->type == MCP_OBJECT ? object->first : NULL;
    while (value && strcmp(value->key, name) != 0)
        value = value->next;
    return value;
}

const struct mcp_value *mcp_member_of(const struct mcp_value *object, const char *name, enum mcp_type type)
{
    const struct mcp_value *value = mcp_member(object, name);
    return value && value->type == type ? value : NULL;
}

bool mcp_is_text(const struct mcp_value *value, const char *text)
{
    return value && value->type == MCP_STRING && value->length == strlen(text) &&
           strcmp(value->text, text) == 0;
}

bool mcp_is_same(const struct mcp_value *a, const struct mcp_value *b)
{
    return a && b && a->type == b->type && a->text && b->text && a->length == b->length &&
           memcmp(a->text, b->text, a->length) == 0;
}
