/* See reply.h. One thread. */
#include "reply.h"

#include <stdlib.h>

void mcp_put_identity(struct occ_json *json, const char *key)
{
    occ_json_object(json, key, true);
    occ_json_string(json, "name", "occtrace");
    occ_json_string(json, "title", "occtrace: occupancy of CUDA kernels");
    occ_json_string(json, "version", OCC_VERSION);
    occ_json_close(json);
}

void mcp_put_revisions(struct occ_json *json, const char *key)
{
#define WORD(word, is_modern) occ_json_string(json, NULL, word);
    occ_json_array(json, key, true);
    MCP_REVISIONS(WORD)
    occ_json_close(json);
}

/* Writes the client's id unchanged: occ_json_string() would replace characters. */
static void put_id(struct occ_json *json, const struct mcp_value *id)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    if (id->type == MCP_STRING)
        (void)fputc('"', out);
    for (size_t i = 0; i < id->length; i++) {
        unsigned char c = (unsigned char)id->text[i];
        if (c < 0x20)
            (void)fprintf(out, "\\u%04x", c);
        else
            (void)fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    if (id->type == MCP_STRING)
        (void)fputc('"', out);
    if (fclose(out) == 0)
        occ_json_raw(json, "id", text);
    free(text);
}

static bool open_line(struct mcp_reply *reply, const struct mcp_value *id)
{
    *reply = (struct mcp_reply){.bytes = 0};
    reply->json.out = open_memstream(&reply->text, &reply->bytes);
    if (!reply->json.out)
        return false;
    occ_json_object(&reply->json, NULL, true);
    occ_json_string(&reply->json, "jsonrpc", "2.0");
    if (id)
        put_id(&reply->json, id);
    return true;
}

/* Closes the open objects and writes the line. */
static bool send_line(struct mcp_reply *reply, FILE *out)
{
    while (reply->json.depth > 0)
        occ_json_close(&reply->json);
    (void)fputc('\n', reply->json.out);
    bool is_whole = !ferror(reply->json.out);
    is_whole &= fclose(reply->json.out) == 0;
    bool is_sent = is_whole && fwrite(reply->text, 1, reply->bytes, out) == reply->bytes && fflush(out) == 0;
    free(reply->text);
    return is_sent;
}

bool mcp_reply_open(struct mcp_reply *reply, const struct mcp_value *id, bool is_modern)
{
    if (!open_line(reply, id))
        return false;
    reply->is_modern = is_modern;
    occ_json_object(&reply->json, "result", true);
    if (is_modern)
        occ_json_string(&reply->json, "resultType", "complete");
    return true;
}

bool mcp_reply_send(struct mcp_reply *reply, FILE *out)
{
    if (reply->is_modern) {
        occ_json_object(&reply->json, "_meta", true);
        mcp_put_identity(&reply->json, "io.modelcontextprotocol/serverInfo");
        occ_json_close(&reply->json);
    }
    return send_line(reply, out);
}

bool mcp_reply_error(FILE *out, const struct mcp_value *id, enum mcp_code code, const char *message,
                     const char *requested)
{
    struct mcp_reply reply;
    if (!open_line(&reply, id))
        return false;
    occ_json_object(&reply.json, "error", true);
    occ_json_integer(&reply.json, "code", code);
    occ_json_string(&reply.json, "message", message);
    if (requested) {
        occ_json_object(&reply.json, "data", true);
        mcp_put_revisions(&reply.json, "supported");
        occ_json_string(&reply.json, "requested", requested);
        occ_json_close(&reply.json);
    }
    return send_line(&reply, out);
}
