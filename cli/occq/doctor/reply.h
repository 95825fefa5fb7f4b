/* A daemon's answer of lines "key value" (support/control.h) as the row of a table. The values are checked
 * like any other input; texts are not safe to print before a table sanitises them. One thread. */
#pragma once

#include "cli/values.h"
#include "support/control.h"

enum { REPLY_PATIENCE_MS = 5000 };

struct reply {
    char text[OCC_CONTROL_BYTES + 1]; /* each line ends with a NUL */
    size_t bytes;                     /* length of all lines, without the last NUL */
};

/* Sends a request and waits at most REPLY_PATIENCE_MS for the answer. Returns 0 or an error of
 * occ_control_request(); then *ret_reply is not usable. */
int reply_ask(int fd, const char *request, struct reply *ret_reply, struct occ_error *err);

/* Returns the value of a key, a text that belongs to the reply; "": the answer does not have the key. */
const char *reply_value(const struct reply *reply, const char *key);
/* Returns the value as a number; 0: it is absent, or no number from 0 to `max`. */
uint64_t reply_number(const struct reply *reply, const char *key, uint64_t max);
/* Returns the value as a number; NAN: it is absent, or no number from -1e18 to 1e18. */
double reply_real(const struct reply *reply, const char *key);

/* Getters of columns for rows of struct reply: the value with the column's key. A value that is absent, or
 * not of the getter's type, is unknown. */
cli_getter reply_get_text, reply_get_real, reply_get_unsigned;
/* A column with a key of the answer and one of these getters. */
#define REPLY_COLUMN(name, key, unit, flags, help, get)                                                      \
    {                                                                                                        \
        name, key, unit, flags, help, get, 0, NULL, NULL                                                     \
    }
