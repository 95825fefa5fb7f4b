/*
 * The loader of occtrace.yaml: libyaml's events, two levels deep, straight into struct occ_config. Scalars
 * are taken as text whatever their YAML type, so that sizes ("20G"), durations ("1s") and numbers have one
 * syntax with the command line.
 *
 * No global state; any thread.
 */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "support/cleanup.h"
#include "support/text.h"

struct reader {
    const char *name; /* of the file */
    struct occ_config *config;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    bool section_given[OCC_SETTING_COUNT], given[OCC_SETTING_COUNT];
};

static int fail_at(const struct reader *r, const yaml_mark_t *at, struct occ_error *err, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

static int fail_at(const struct reader *r, const yaml_mark_t *at, struct occ_error *err, const char *format,
                   ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    occ_text_sanitise(text);
    return occ_fail(err, OCC_E_INVALID, "%s:%zu:%zu: %s", r->name, at->line + 1, at->column + 1, text);
}

static int next_event(struct reader *r, struct occ_error *err)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    bool is_decoding = r->parser.error == YAML_READER_ERROR; /* has no mark of its own */
    return fail_at(r, is_decoding ? &r->parser.mark : &r->parser.problem_mark, err, "%s",
                   r->parser.problem ? r->parser.problem : "not YAML");
}

/* The text of a scalar; NULL: the event is another one, or the text holds a NUL. */
static const char *scalar(const struct reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    return r->event.type == YAML_SCALAR_EVENT && strlen(text) == r->event.data.scalar.length ? text : NULL;
}

static int fail_unknown_key(const struct reader *r, const char *key, struct occ_error *err)
{
    const char *nearest = occ_text_nearest(key, occ_setting_words);
    return fail_at(r, &r->event.start_mark, err, "unknown key '%.100s'%s%s%s", key,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Marks a key as given. */
static int give_once(const struct reader *r, bool *given, struct occ_error *err)
{
    if (*given)
        return fail_at(r, &r->event.start_mark, err, "'%s' is given twice", scalar(r));
    *given = true;
    return 0;
}

/* One key of a section, which is the current event, and its value. */
static int read_setting(struct reader *r, const char *section, struct occ_error *err)
{
    const char *key = scalar(r), *value;
    char name[OCC_CONFIG_TEXT_BYTES];
    struct occ_error why = OCC_ERROR_INIT;
    if (!key)
        return fail_at(r, &r->event.start_mark, err, "%s: a key is expected here", section);
    (void)snprintf(name, sizeof name, "%s.%s", section, key);
    const struct occ_setting *setting = occ_setting_find(name);
    if (!setting)
        return fail_unknown_key(r, key, err);
    int status = give_once(r, &r->given[setting - occ_settings], err);
    if (status == 0)
        status = next_event(r, err);
    if (status != 0)
        return status;
    if (!(value = scalar(r)))
        return fail_at(r, &r->event.start_mark, err, "%s: one value is expected here", name);
    if (occ_setting_set(setting, value, r->config, &why) != 0)
        return fail_at(r, &r->event.start_mark, err, "%s: %s", name, why.message);
    return 0;
}

/* A section's name, which is the current event, and its mapping. */
static int read_section(struct reader *r, struct occ_error *err)
{
    const char *key = scalar(r);
    size_t n = key ? strlen(key) : 0, i = 0;
    char section[16];
    if (!key)
        return fail_at(r, &r->event.start_mark, err, "the name of a section is expected here");
    while (i < OCC_SETTING_COUNT &&
           (strncmp(occ_settings[i].name, key, n) != 0 || occ_settings[i].name[n] != '.'))
        i++;
    if (i == OCC_SETTING_COUNT)
        return fail_unknown_key(r, key, err);
    (void)snprintf(section, sizeof section, "%s", key);
    int status = give_once(r, &r->section_given[i], err);
    if (status == 0)
        status = next_event(r, err);
    if (status == 0 && r->event.type != YAML_MAPPING_START_EVENT)
        return fail_at(r, &r->event.start_mark, err, "%s: keys with values are expected here", section);
    while (status == 0 && (status = next_event(r, err)) == 0 && r->event.type != YAML_MAPPING_END_EVENT)
        status = read_setting(r, section, err);
    return status;
}

/* The whole stream: nothing, or one document with one mapping of sections. */
static int read_stream(struct reader *r, struct occ_error *err)
{
    int status = next_event(r, err); /* the stream's start */
    if (status == 0)
        status = next_event(r, err);
    if (status != 0 || r->event.type == YAML_STREAM_END_EVENT)
        return status;
    status = next_event(r, err);
    if (status == 0 && r->event.type != YAML_MAPPING_START_EVENT)
        return fail_at(r, &r->event.start_mark, err, "sections are expected here");
    while (status == 0 && (status = next_event(r, err)) == 0 && r->event.type != YAML_MAPPING_END_EVENT)
        status = read_section(r, err);
    if (status == 0)
        status = next_event(r, err); /* the document's end */
    if (status == 0)
        status = next_event(r, err);
    if (status == 0 && r->event.type != YAML_STREAM_END_EVENT)
        return fail_at(r, &r->event.start_mark, err, "a second document is not allowed");
    return status;
}

int occ_config_parse(const char *name, const char *text, size_t length, struct occ_config *config,
                     struct occ_error *err)
{
    struct occ_config result = *config;
    struct reader r = {.name = name, .config = &result};
    if (length > OCC_CONFIG_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "%s: larger than %u bytes", name, OCC_CONFIG_MAX_BYTES);
    if (!yaml_parser_initialize(&r.parser))
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
    int status = read_stream(&r, err);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (status == 0)
        *config = result;
    return status;
}

int occ_config_load(const char *path, struct occ_config *config, struct occ_error *err)
{
    /* O_NONBLOCK: a FIFO must not hang the daemon; it is refused below. */
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return occ_fail_errno(err, errno, "cannot read %s", path);
    if (!S_ISREG(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "%s: not a regular file", path);
    char text[OCC_CONFIG_MAX_BYTES + 1]; /* one byte more than allowed, so that a larger file shows */
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, text + used, sizeof text - used)) > 0)
        used += (size_t)n;
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read %s", path);
    return occ_config_parse(path, text, used, config, err);
}
