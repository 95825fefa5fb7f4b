/* A file that a command reads whole. One thread. */
#pragma once

#include <stddef.h>

#include "support/error.h"

#define CLI_INPUT_MAX_BYTES ((size_t)1 << 33)

/* Reads a file, or standard input ("-"), up to CLI_INPUT_MAX_BYTES; the caller frees *ret_data. Devices are
 * refused. */
int cli_read_input(const char *path, void **ret_data, size_t *ret_bytes, struct occ_error *err);
