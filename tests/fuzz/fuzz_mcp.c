/*
 * Fuzzes the server of occq mcp: lines of a client, over an empty history. Every line that the server writes
 * is a JSON object of JSON-RPC without control characters, and an answer's document keeps its limit. Input:
 * lines; bits of the first byte: 1 no session began with "initialize", 2 the lines are read from a file with
 * a look ahead, 4 there is a history (slow: each question opens it).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/occq/mcp/server.h"

static char path[] = "/tmp/fuzz_mcp.XXXXXX";

static void remove_history(void)
{
    (void)unlink(path);
}

static const struct cli_args nowhere = {.db = "/nonexistent/history.db"};

/* Makes an empty history once. */
static const struct cli_args *history(void)
{
    static struct cli_args where;
    if (where.db)
        return &where;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    struct occ_store *store = NULL;
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 || occ_store_open(path, &options, &store, NULL) != 0)
        abort();
    occ_store_close(store);
    (void)atexit(remove_history);
    where.db = path;
    return &where;
}

static void check_line(const char *line, size_t length)
{
    static const char start[] = "{\"jsonrpc\": \"2.0\"";
    struct mcp_message *message = malloc(sizeof *message);
    if (length < sizeof start || strncmp(line, start, sizeof start - 1) != 0)
        abort();
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            abort();
    if (length <= MCP_LINE_MAX && mcp_message_parse(line, length, message, NULL) == OCC_E_INVALID)
        abort();
    mcp_message_free(message);
    free(message);
}

static void check(const char *out, size_t bytes)
{
    while (bytes > 0) {
        const char *end = memchr(out, '\n', bytes);
        if (!end)
            abort();
        check_line(out, (size_t)(end - out));
        bytes -= (size_t)(end - out) + 1;
        out = end + 1;
    }
}

/* Handles the lines one by one. */
static void handle_all(struct mcp_server *server, const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        (void)mcp_handle(server, text, length);
        length += end != NULL;
        text += length;
        size -= length;
    }
}

/* Serves the text from a file. */
static void serve(struct mcp_server *server, const char *text, size_t size)
{
    struct mcp_input input;
    FILE *file = tmpfile();
    if (!file || fwrite(text, 1, size, file) != size || fflush(file) != 0 ||
        lseek(fileno(file), 0, SEEK_SET) != 0 || mcp_input_open(&input, fileno(file), NULL) != 0)
        abort();
    server->input = &input;
    (void)mcp_serve(server);
    mcp_input_free(&input);
    (void)fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *out = NULL;
    size_t bytes = 0;
    if (size < 1)
        return 0;
    struct mcp_server server = {.place = {.where = data[0] & 4 ? history() : &nowhere},
                                .time_limit_ns = INT64_C(200000000),
                                .is_initialized = (data[0] & 1) == 0,
                                .out = open_memstream(&out, &bytes)};
    if (!server.out)
        abort();
    if (data[0] & 2)
        serve(&server, (const char *)data + 1, size - 1);
    else
        handle_all(&server, (const char *)data + 1, size - 1);
    (void)fclose(server.out);
    check(out, bytes);
    free(out);
    return 0;
}
