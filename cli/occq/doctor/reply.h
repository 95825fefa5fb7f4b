/* A daemon's answer of lines "key value" (support/control.h) as the row of a table. The answer is checked
 * like any other input. One thread. */
#pragma once

#include "cli/values.h"
#include "support/control.h"

enum { REPLY_PATIENCE_MS = 5000 };

struct reply {
    char text[OCC_CONTROL_BYTES + 1]; /* each line ends with a NUL */
    size_t bytes;
};

int reply_ask(int fd, const char *request, struct reply *ret_reply, struct occ_error *err);

/* The value of a key; "": the answer does not have the key. */
const char *reply_value(const struct reply *reply, const char *key);
/* 0: not a number from 0 to `max`. */
uint64_t reply_number(const struct reply *reply, const char *key, uint64_t max);
/* NAN: not a number. */
double reply_real(const struct reply *reply, const char *key);

/* Values of columns of a struct reply; the column's key is the answer's. */
cli_getter reply_get_text, reply_get_real, reply_get_unsigned;
#define REPLY_COLUMN(name, key, unit, flags, help, get)                                                      \
    {                                                                                                        \
        name, key, unit, flags, help, get, 0, NULL, NULL                                                     \
    }
