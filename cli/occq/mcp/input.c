/* See input.h. One thread. */
#include "input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_BYTES = 4 * MCP_LINE_MAX };

int mcp_input_open(struct mcp_input *input, int fd, struct occ_error *err)
{
    *input = (struct mcp_input){.fd = fd, .buffer = malloc(INPUT_BYTES)};
    return input->buffer ? 0 : occ_no_memory(err);
}

void mcp_input_free(struct mcp_input *input)
{
    free(input->buffer);
    input->buffer = NULL;
}

/* Waits for input and reads the available bytes. An error ends the input. */
static void read_more(struct mcp_input *input)
{
    ssize_t n = 0;
    do
        n = read(input->fd, input->buffer + input->n, INPUT_BYTES - input->n);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        input->n += (size_t)n;
    else
        input->has_ended = true;
}

static void drop(struct mcp_input *input, size_t bytes)
{
    memmove(input->buffer, input->buffer + bytes, input->n - bytes);
    input->n -= bytes;
}

/* Looks for a line in the buffer. Returns NONE if more bytes are needed. */
static enum mcp_line find_line(struct mcp_input *input, size_t *ret_length)
{
    const char *end = memchr(input->buffer, '\n', input->n);
    if (!end && !input->has_ended) {
        if (input->n > MCP_LINE_MAX) { /* drop the line piece by piece */
            input->is_skipping = true;
            drop(input, input->n);
        }
        return MCP_LINE_NONE;
    }
    if (!end && input->n == 0 && !input->is_skipping)
        return MCP_LINE_NONE;
    *ret_length = end ? (size_t)(end - input->buffer) : input->n;
    input->taken = *ret_length + (end != NULL);
    bool is_long = input->is_skipping || *ret_length > MCP_LINE_MAX;
    input->is_skipping = false;
    return is_long ? MCP_LINE_TOO_LONG : MCP_LINE_WHOLE;
}

enum mcp_line mcp_input_next(struct mcp_input *input, const char **ret_line, size_t *ret_length)
{
    drop(input, input->taken);
    input->taken = input->seen = 0;
    for (;;) {
        enum mcp_line line = find_line(input, ret_length);
        *ret_line = input->buffer;
        if (line != MCP_LINE_NONE || input->has_ended)
            return line;
        read_more(input);
    }
}

void mcp_input_look(struct mcp_input *input, void (*visit)(void *context, const char *line, size_t length),
                    void *context)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};
    if (!input->has_ended && input->n < INPUT_BYTES && poll(&ready, 1, 0) > 0)
        read_more(input);
    size_t at = input->seen > input->taken ? input->seen : input->taken;
    const char *end;
    while ((end = memchr(input->buffer + at, '\n', input->n - at)) != NULL) {
        visit(context, input->buffer + at, (size_t)(end - input->buffer) - at);
        at = (size_t)(end - input->buffer) + 1;
    }
    input->seen = at;
}
