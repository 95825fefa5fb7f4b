/* See reply.h. */
#include "reply.h"

#include <math.h>
#include <string.h>

#include "support/text.h"

int reply_ask(int fd, const char *request, struct reply *ret_reply, struct occ_error *err)
{
    struct reply *reply = ret_reply;
    int status = occ_control_request(fd, request, REPLY_PATIENCE_MS, reply->text, sizeof reply->text, err);
    if (status != 0)
        return status;
    reply->bytes = strlen(reply->text);
    for (char *at = reply->text; (at = strchr(at, '\n')); at++)
        *at = '\0';
    return 0;
}

const char *reply_value(const struct reply *reply, const char *key)
{
    size_t length = strlen(key);
    for (size_t at = 0; at < reply->bytes; at += strlen(reply->text + at) + 1)
        if (strncmp(reply->text + at, key, length) == 0 && reply->text[at + length] == ' ')
            return reply->text + at + length + 1;
    return "";
}

uint64_t reply_number(const struct reply *reply, const char *key, uint64_t max)
{
    uint64_t number = 0;
    (void)occ_parse_u64(reply_value(reply, key), 0, max, &number, NULL);
    return number;
}

double reply_real(const struct reply *reply, const char *key)
{
    double number = NAN;
    (void)occ_parse_double(reply_value(reply, key), -1e18, 1e18, &number, NULL);
    return number;
}

struct cli_value reply_get_text(const struct cli_column *column, const void *row)
{
    const char *text = reply_value(row, column->key);
    return cli_string(text[0] ? text : NULL);
}

struct cli_value reply_get_real(const struct cli_column *column, const void *row)
{
    return cli_real(reply_real(row, column->key));
}

struct cli_value reply_get_unsigned(const struct cli_column *column, const void *row)
{
    uint64_t number = 0;
    bool is_number = occ_parse_u64(reply_value(row, column->key), 0, UINT64_MAX, &number, NULL) == 0;
    return is_number ? cli_unsigned(number) : cli_real(NAN);
}
