/* Reads YAML files of mappings and scalars with libyaml's events. Every scalar is text, whatever its YAML
 * type, so that sizes, durations and numbers have the same syntax as on the command line. Messages are
 * "FILE:LINE:COLUMN: MISTAKE". One thread. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "config.h"

struct occ_yaml {
    const char *name; /* the file's name */
    yaml_parser_t parser;
    yaml_event_t event; /* the current event */
};

/* Opens a text and makes the document's first event current, or YAML_STREAM_END_EVENT for an empty file.
 * Fails for more than OCC_CONFIG_MAX_BYTES. The caller must call occ_yaml_close() also after a failure, and
 * keep the text until then. */
int occ_yaml_open(struct occ_yaml *yaml, const char *name, const char *text, size_t length,
                  struct occ_error *err);
void occ_yaml_close(struct occ_yaml *yaml);

int occ_yaml_next(struct occ_yaml *yaml, struct occ_error *err);
/* Call after the document's last event; fails if a second document follows. */
int occ_yaml_end(struct occ_yaml *yaml, struct occ_error *err);
/* The text of a scalar; NULL if the event is not a scalar, or the text has a NUL. */
const char *occ_yaml_scalar(const struct occ_yaml *yaml);
/* Fails with a message and the position of the current event. Returns OCC_E_INVALID. */
int occ_yaml_fail(const struct occ_yaml *yaml, struct occ_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
