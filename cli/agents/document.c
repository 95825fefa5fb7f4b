/* See document.h. One thread. */
#include "document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cut.h"
#include "support/text.h"

int agent_document_open(struct agent_document *document, size_t limit, struct occ_error *err)
{
    *document = (struct agent_document){.limit = limit};
    document->json.out = open_memstream(&document->text, &document->bytes);
    if (!document->json.out)
        return occ_no_memory(err);
    occ_json_object(&document->json, NULL, true);
    return 0;
}

void agent_document_free(struct agent_document *document)
{
    if (document->json.out)
        (void)fclose(document->json.out);
    free(document->text);
    *document = (struct agent_document){.limit = 0};
}

int agent_document_close(struct agent_document *document, char **ret_text, struct occ_error *err)
{
    occ_json_close(&document->json);
    bool failed = ferror(document->json.out) != 0;
    failed |= fclose(document->json.out) != 0;
    document->json.out = NULL;
    if (!failed) {
        *ret_text = document->text;
        document->text = NULL;
    }
    agent_document_free(document);
    return failed ? occ_no_memory(err) : 0;
}

size_t agent_document_bytes(struct agent_document *document)
{
    (void)fflush(document->json.out);
    return document->bytes;
}

/* ---- values ---- */

/* Copies the beginning and the end of a sanitised text, in whole characters, with an ellipsis between them.
 */
static void cut(const char *text, char copy[AGENT_QUOTE_BYTES + 1])
{
    enum { TAIL = AGENT_QUOTE_BYTES / 3, HEAD = AGENT_QUOTE_BYTES - TAIL - (int)sizeof OCC_ELLIPSIS };
    size_t length = strlen(text), head = 0, tail = length - TAIL;
    for (size_t n; (n = occ_text_character(text + head)) > 0 && head + n <= HEAD;)
        head += n;
    while (tail < length && ((unsigned char)text[tail] & 0xc0) == 0x80)
        tail++;
    (void)snprintf(copy, AGENT_QUOTE_BYTES + 1, "%.*s" OCC_ELLIPSIS "%s", (int)head, text, text + tail);
}

void agent_quote(struct occ_json *json, const char *key, const char *text)
{
    char copy[AGENT_QUOTE_BYTES + 1];
    char *safe = text ? strdup(text) : NULL;
    if (safe) {
        occ_text_sanitise(safe);
        if (strlen(safe) <= AGENT_QUOTE_BYTES)
            (void)snprintf(copy, sizeof copy, "%s", safe);
        else
            cut(safe, copy);
    }
    occ_json_string(json, key, safe ? copy : NULL);
    free(safe);
}

/* Smaller absolute values are rounding errors of sums. */
static const double noise = 1e-12;

static void put_number(struct occ_json *json, const char *key, double value, const char *otherwise)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%.6g", fabs(value) < noise ? 0 : value);
    if (isfinite(value))
        occ_json_raw(json, key, digits);
    else
        occ_json_string(json, key, otherwise);
}

void agent_measured(struct occ_json *json, const char *key, double value)
{
    put_number(json, key, value, "not measured");
}

void agent_known(struct occ_json *json, const char *key, double value)
{
    put_number(json, key, value, "unknown");
}

/* ---- lists ---- */

int agent_row_open(struct agent_row *row, struct occ_error *err)
{
    *row = (struct agent_row){.bytes = 0};
    row->json.out = open_memstream(&row->text, &row->bytes);
    if (!row->json.out)
        return occ_no_memory(err);
    occ_json_array(&row->json, NULL, true);
    return 0;
}

int agent_member_close(struct agent_row *row, const char *key, struct agent_document *document,
                       struct occ_error *err)
{
    size_t key_bytes = key ? strlen(key) + sizeof "\"\": " : 0;
    occ_json_close(&row->json);
    int status = fclose(row->json.out) == 0 ? 1 : occ_no_memory(err);
    size_t bytes = key_bytes + row->bytes + AGENT_TAIL_BYTES;
    if (status == 1 && agent_document_bytes(document) + bytes > document->limit)
        status = 0;
    if (status == 1)
        occ_json_raw(&document->json, key, row->text);
    free(row->text);
    return status;
}

int agent_row_close(struct agent_row *row, struct agent_document *document, struct occ_error *err)
{
    return agent_member_close(row, NULL, document, err);
}

void agent_list_open(struct agent_document *document, const char *const *columns)
{
    struct occ_json *json = &document->json;
    occ_json_array(json, "columns", true);
    for (; *columns; columns++)
        occ_json_string(json, NULL, *columns);
    occ_json_close(json);
    occ_json_array(json, "rows", true);
}

void agent_more(struct agent_document *document, size_t offset, size_t shown, size_t total)
{
    struct occ_json *json = &document->json;
    if (offset + shown >= total)
        return;
    occ_json_object(json, "more", true);
    occ_json_unsigned(json, "shown", shown);
    occ_json_unsigned(json, "of", total);
    occ_json_string(json, "how", "the same question with this offset, or a larger max_bytes");
    occ_json_unsigned(json, "offset", offset + shown);
    occ_json_close(json);
}

void agent_next(struct agent_document *document, const char *tool, const char *argument, int64_t value)
{
    struct occ_json *json = &document->json;
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    occ_json_object(json, "next", true);
    occ_json_string(json, "tool", tool);
    occ_json_object(json, "arguments", true);
    if (argument)
        occ_json_string(json, argument, text);
    occ_json_close(json);
    occ_json_close(json);
}
