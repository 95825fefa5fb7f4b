/* Events of libyaml with messages; see yaml_reader.h. One thread. */
#include "yaml_reader.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "support/text.h"

static int fail_at(const struct occ_yaml *yaml, const yaml_mark_t *at, const char *text,
                   struct occ_error *err)
{
    char safe[320];
    (void)snprintf(safe, sizeof safe, "%s", text);
    occ_text_sanitise(safe);
    return occ_fail(err, OCC_E_INVALID, "%s:%zu:%zu: %s", yaml->name, at->line + 1, at->column + 1, safe);
}

int occ_yaml_fail(const struct occ_yaml *yaml, struct occ_error *err, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail_at(yaml, &yaml->event.start_mark, text, err);
}

int occ_yaml_next(struct occ_yaml *yaml, struct occ_error *err)
{
    yaml_parser_t *parser = &yaml->parser;
    yaml_event_delete(&yaml->event);
    if (yaml_parser_parse(parser, &yaml->event))
        return 0;
    if (parser->error == YAML_MEMORY_ERROR)
        return occ_no_memory(err);
    bool is_decoding = parser->error == YAML_READER_ERROR; /* has no mark of its own */
    return fail_at(yaml, is_decoding ? &parser->mark : &parser->problem_mark,
                   parser->problem ? parser->problem : "not YAML", err);
}

const char *occ_yaml_scalar(const struct occ_yaml *yaml)
{
    const char *text = (const char *)yaml->event.data.scalar.value;
    return yaml->event.type == YAML_SCALAR_EVENT && strlen(text) == yaml->event.data.scalar.length ? text
                                                                                                   : NULL;
}

int occ_yaml_open(struct occ_yaml *yaml, const char *name, const char *text, size_t length,
                  struct occ_error *err)
{
    *yaml = (struct occ_yaml){.name = name};
    if (length > OCC_CONFIG_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "%s: larger than %u bytes", name, OCC_CONFIG_MAX_BYTES);
    if (!yaml_parser_initialize(&yaml->parser))
        return occ_no_memory(err);
    yaml_parser_set_input_string(&yaml->parser, (const unsigned char *)text, length);
    int status = occ_yaml_next(yaml, err); /* the stream's start */
    if (status == 0)
        status = occ_yaml_next(yaml, err); /* the document's start */
    return status != 0 || yaml->event.type == YAML_STREAM_END_EVENT ? status : occ_yaml_next(yaml, err);
}

void occ_yaml_close(struct occ_yaml *yaml)
{
    yaml_event_delete(&yaml->event);
    yaml_parser_delete(&yaml->parser);
}

int occ_yaml_end(struct occ_yaml *yaml, struct occ_error *err)
{
    int status = occ_yaml_next(yaml, err); /* the document's end */
    if (status == 0)
        status = occ_yaml_next(yaml, err);
    if (status == 0 && yaml->event.type != YAML_STREAM_END_EVENT)
        return occ_yaml_fail(yaml, err, "a second document is not allowed");
    return status;
}
