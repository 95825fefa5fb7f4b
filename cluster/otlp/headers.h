/*
 * Headers of requests to the collector, such as credentials, from a file: lines "NAME: VALUE". Empty lines
 * and lines that begin with # are ignored. No state; any thread.
 */
#pragma once

#include <stddef.h>

#include "support/error.h"

#define OCC_OTLP_HEADERS_MAX   16
#define OCC_OTLP_HEADERS_BYTES 8192

struct occ_otlp_headers {
    char text[OCC_OTLP_HEADERS_BYTES];
    const char *lines[OCC_OTLP_HEADERS_MAX + 1]; /* into text; ends with NULL */
};

/* Reads the file. OCC_E_INVALID: every user may read the file, or a line is malformed. */
int occ_otlp_headers_read(const char *path, struct occ_otlp_headers *ret_headers, struct occ_error *err);
/* Splits headers->text. OCC_E_INVALID: the message has the line's number, never its text. */
int occ_otlp_headers_split(struct occ_otlp_headers *headers, struct occ_error *err);
