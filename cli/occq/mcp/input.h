/* Reads a client's lines from a descriptor; can look ahead while a line is handled. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "message.h"

struct mcp_input {
    int fd;
    char *buffer; /* of INPUT_BYTES (input.c) */
    size_t n;     /* bytes in the buffer */
    size_t taken; /* bytes of the current line, with its newline */
    size_t seen;  /* bytes that mcp_input_look() has visited */
    bool has_ended, is_skipping;
};

int mcp_input_open(struct mcp_input *input, int fd, struct occ_error *err);
void mcp_input_free(struct mcp_input *input);

enum mcp_line { MCP_LINE_NONE, MCP_LINE_WHOLE, MCP_LINE_TOO_LONG };
/* Waits for the next line and returns it without its newline, valid until the next call. NONE: the input has
 * ended. */
enum mcp_line mcp_input_next(struct mcp_input *input, const char **ret_line, size_t *ret_length);

/* Reads without waiting and visits the whole lines after the current one, each once while that line is
 * current. mcp_input_next() returns them later. */
void mcp_input_look(struct mcp_input *input, void (*visit)(void *context, const char *line, size_t length),
                    void *context);
