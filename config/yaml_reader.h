/* Files of mappings and scalars, by libyaml's events. Scalars are text whatever their YAML type, so that
 * sizes, durations and numbers have one syntax with the command line. Messages are "FILE:LINE:COLUMN: what is
 * wrong". One thread. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "config.h"

struct occ_yaml {
    const char *name; /* of the file */
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
};

/* The current event becomes the document's first one, YAML_STREAM_END_EVENT in an empty file. Fails for more
 * than OCC_CONFIG_MAX_BYTES. occ_yaml_close() in any case; the text must live until then. */
int occ_yaml_open(struct occ_yaml *yaml, const char *name, const char *text, size_t length,
                  struct occ_error *err);
void occ_yaml_close(struct occ_yaml *yaml);

int occ_yaml_next(struct occ_yaml *yaml, struct occ_error *err);
/* After the document's last event: a second document is an error. */
int occ_yaml_end(struct occ_yaml *yaml, struct occ_error *err);
/* The text of a scalar; NULL: the event is another one, or the text holds a NUL. */
const char *occ_yaml_scalar(const struct occ_yaml *yaml);
/* At the current event. Returns OCC_E_INVALID. */
int occ_yaml_fail(const struct occ_yaml *yaml, struct occ_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
