/*
 * A message of a client: one line of JSON as a tree. Lines come from another program: length, depth and
 * number of values are limited. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "support/arena.h"
#include "support/error.h"

enum { MCP_LINE_MAX = 65536, MCP_VALUES_MAX = 1024, MCP_DEPTH_MAX = 16 };

enum mcp_type { MCP_NULL, MCP_BOOLEAN, MCP_NUMBER, MCP_STRING, MCP_OBJECT, MCP_ARRAY };

struct mcp_value {
    enum mcp_type type;
    bool boolean;
    /* of strings (decoded, NUL-terminated, may contain NUL) and numbers (digits as in the line) */
    const char *text;
    size_t length;
    const char *key;                /* member's name; NULL: not a member */
    struct mcp_value *first, *next; /* first child; next sibling; NULL: none */
};

struct mcp_message {
    struct mcp_value values[MCP_VALUES_MAX]; /* the first value is the whole message */
    size_t n;
    struct occ_arena texts;
};

/* Parses a line. Returns OCC_E_INVALID if it is not JSON, OCC_E_FULL if it exceeds a limit. Free the message
 * in any case. */
int mcp_message_parse(const char *line, size_t length, struct mcp_message *ret_message,
                      struct occ_error *err);
void mcp_message_free(struct mcp_message *message);

/* Returns the object's first member of this name. NULL: there is none, or `object` is NULL or no object. */
const struct mcp_value *mcp_member(const struct mcp_value *object, const char *name);
/* Returns the member only if it has this type. */
const struct mcp_value *mcp_member_of(const struct mcp_value *object, const char *name, enum mcp_type type);
/* Returns true if `value` is a string with exactly these characters. `value` NULL: false. */
bool mcp_is_text(const struct mcp_value *value, const char *text);
/* Returns true if two strings or two numbers have the same text. */
bool mcp_is_same(const struct mcp_value *a, const struct mcp_value *b);
