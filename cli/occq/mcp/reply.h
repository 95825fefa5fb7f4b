/* Messages to the client: one line each, written whole or not at all. One thread. */
#pragma once

#include <stdio.h>

#include "message.h"
#include "support/json.h"

/* Codes of JSON-RPC, and of the protocol. */
enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_UNSUPPORTED_VERSION = -32022,
};

/* Revisions, the newest first. X(word, true: a request names its revision) */
#define MCP_REVISIONS(X)  X("2026-07-28", true) X("2025-11-25", false) X("2025-06-18", false)
#define MCP_NEWEST_LEGACY "2025-11-25"

struct mcp_reply {
    struct occ_json json; /* the result's object is open for members */
    bool is_modern;       /* the request names its revision */
    char *text;
    size_t bytes;
};

/* Begins a result; `id` is the request's. False: no memory. */
bool mcp_reply_open(struct mcp_reply *reply, const struct mcp_value *id, bool is_modern);
/* Writes the line. False: writing has failed. */
bool mcp_reply_send(struct mcp_reply *reply, FILE *out);

/* Writes a line with an error; `id` NULL: the request has no readable id. `requested`: an unsupported
 * revision, else NULL. False: writing has failed. */
bool mcp_reply_error(FILE *out, const struct mcp_value *id, enum mcp_code code, const char *message,
                     const char *requested);

/* Writes the members that identify the server: "name", "title" and "version". */
void mcp_put_identity(struct occ_json *json, const char *key);
/* Writes an array of the revisions. */
void mcp_put_revisions(struct occ_json *json, const char *key);
