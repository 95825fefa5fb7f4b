/*
 * Model Context Protocol over lines, for clients of revision 2026-07-28 (each request names its revision) and
 * of 2025-11-25 and 2025-06-18 (a session that begins with "initialize"). Source: the specification and its
 * schema, https://modelcontextprotocol.io/specification.
 *
 * Requests are answered in their order. While a question is answered, the server looks at the input for
 * "notifications/cancelled", and at the clock. One thread.
 */
#pragma once

#include <stdio.h>

#include "cli/agents/tools.h"
#include "input.h"

struct mcp_server {
    struct agent_place place; /* the server sets `watch` */
    FILE *out;                /* only messages of the protocol */
    struct mcp_input *input;  /* NULL: no look ahead */
    int64_t time_limit_ns;    /* of one question */
    bool is_initialized;      /* "initialize" was answered */
    /* the question being answered */
    const struct mcp_value *id;
    int64_t deadline_ns; /* monotonic */
    bool is_cancelled, is_late;
};

/* Handles one line. Returns false if the output has failed. */
bool mcp_handle(struct mcp_server *server, const char *line, size_t length);
/* Answers a line above MCP_LINE_MAX with an error. Returns false if the output has failed. */
bool mcp_refuse_long(struct mcp_server *server);
/* Handles lines until the input ends. Returns false if the output has failed. */
bool mcp_serve(struct mcp_server *server);
