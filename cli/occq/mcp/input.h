/* Lines of a client from a descriptor, with a look ahead while a line is handled. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "message.h"

struct mcp_input {
    int fd;
    char *buffer; /* of MCP_INPUT_BYTES */
    size_t n;     /* bytes in the buffer */
    size_t taken; /* bytes of the line that is handled, with its end */
    size_t seen;  /* bytes before it were shown by mcp_input_look() */
    bool has_ended, is_skipping;
};

int mcp_input_open(struct mcp_input *input, int fd, struct occ_error *err);
void mcp_input_free(struct mcp_input *input);

enum mcp_line { MCP_LINE_NONE, MCP_LINE_WHOLE, MCP_LINE_TOO_LONG };
/* Waits for the next line, without its end; it stays valid until the next call. NONE: the input has ended. */
enum mcp_line mcp_input_next(struct mcp_input *input, const char **ret_line, size_t *ret_length);

/* Reads without waiting and visits every whole line behind the current one, once for each current line. The
 * lines stay in the input. */
void mcp_input_look(struct mcp_input *input, void (*visit)(void *context, const char *line, size_t length),
                    void *context);
