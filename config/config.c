/*
 * The loader of occtrace.yaml: libyaml's events, two levels deep, straight into struct occ_config. Scalars
 * are taken as text whatever their YAML type, so that sizes ("20G"), durations ("1s") and numbers have one
 * syntax with the command line.
 *
 * No global state; any thread.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "support/cleanup.h"
#include "support/text.h"

enum kind {
    KIND_PATH,
    KIND_BYTES,
    KIND_QUOTA,
    KIND_DURATION,
    KIND_COUNT,
    KIND_MODE,
    KIND_SYNC,
    KIND_LEVEL,
    KIND_SPLIT,
    KIND_COUNTERS,
    KIND_PERCENT,
    KIND_MAX
};

/* The words of the kinds that are set by one; the value is the word's index, for MODE the octal number. */
static const char *const words[KIND_MAX][5] = {
    [KIND_MODE] = {"auto", "0600", "0660", "0666"},
    [KIND_SYNC] = {"normal", "full"},
    [KIND_LEVEL] = {"error", "warning", "info", "debug"},
    [KIND_SPLIT] = {"owner", "none"},
    [KIND_COUNTERS] = {"auto", "pm", "gpm", "none"},
};

static const struct setting {
    const char *name, *default_text; /* section.key */
    enum kind kind;
    size_t offset; /* in struct occ_config */
    uint64_t min, max;
} settings[] = {
#define SETTING(section, key, kind, type, member, default_text, min, max)                                    \
    {#section "." #key, default_text, KIND_##kind, offsetof(struct occ_config, member), min, max},
    OCC_CONFIG_SETTINGS(SETTING)};
#define N_SETTINGS (sizeof settings / sizeof *settings)

/* Every word that may be a key, for "did you mean". */
#define KEY_WORDS(section, key, kind, type, member, default_text, min, max) #section, #key,
static const char *const key_words[] = {OCC_CONFIG_SETTINGS(KEY_WORDS) NULL};

/* ---- one value ---- */

static int set_path(const char *text, char *value, struct occ_error *err)
{
    if (text[0] != '\0' && text[0] != '/')
        return occ_fail(err, OCC_E_INVALID, "'%.128s' is not an absolute path", text);
    if (strlen(text) >= OCC_CONFIG_TEXT_BYTES)
        return occ_fail(err, OCC_E_INVALID, "longer than %d bytes", OCC_CONFIG_TEXT_BYTES - 1);
    memset(value, 0, OCC_CONFIG_TEXT_BYTES);
    memcpy(value, text, strlen(text));
    return 0;
}

/* Bytes, or nanoseconds of a duration. */
static int set_quantity(const struct setting *setting, const char *text, uint64_t *value,
                        struct occ_error *err)
{
    bool is_time = setting->kind == KIND_DURATION;
    int64_t ns = 0;
    uint64_t bytes = 0;
    char low[32], high[32];
    int status =
        is_time ? occ_parse_duration_ns(text, &ns, err) : occ_parse_bytes(text, INT64_MAX, &bytes, err);
    if (status != 0)
        return status;
    uint64_t number = is_time ? (uint64_t)ns : bytes;
    bool in_range = number >= setting->min && number <= setting->max;
    if (!in_range && !(number == 0 && setting->kind == KIND_QUOTA)) {
        (void)(is_time ? occ_format_duration((int64_t)setting->min, low, sizeof low)
                       : occ_format_bytes(setting->min, low, sizeof low));
        (void)(is_time ? occ_format_duration((int64_t)setting->max, high, sizeof high)
                       : occ_format_bytes(setting->max, high, sizeof high));
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%s to %s)", text, low, high);
    }
    *value = number;
    return 0;
}

static int set_word(enum kind kind, const char *text, uint64_t *value, struct occ_error *err)
{
    char list[128] = "";
    for (size_t i = 0; words[kind][i]; i++) {
        const char *word = words[kind][i];
        if (strcmp(text, word) == 0) {
            *value = kind == KIND_MODE ? strtoul(word, NULL, 8) : i;
            return 0;
        }
        size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", word);
    }
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is not one of %s", text, list);
}

static int set_percent(const char *text, uint64_t *value, struct occ_error *err)
{
    double percent = 0;
    int status = occ_parse_double(text, 0.0001, 100, &percent, err);
    if (status == 0)
        *value = (uint64_t)(percent * 10000 + 0.5);
    return status;
}

static int set_value(const struct setting *setting, const char *text, struct occ_config *config,
                     struct occ_error *err)
{
    void *value = (char *)config + setting->offset;
    switch (setting->kind) {
    case KIND_PATH:
        return set_path(text, value, err);
    case KIND_BYTES:
    case KIND_QUOTA:
    case KIND_DURATION:
        return set_quantity(setting, text, value, err);
    case KIND_PERCENT:
        return set_percent(text, value, err);
    case KIND_COUNT:
        return occ_parse_u64(text, setting->min, setting->max, value, err);
    default:
        return set_word(setting->kind, text, value, err);
    }
}

void occ_config_defaults(struct occ_config *config)
{
    *config = (struct occ_config){0};
    for (size_t i = 0; i < N_SETTINGS; i++) /* a test checks that each default is valid */
        (void)set_value(&settings[i], settings[i].default_text, config, NULL);
}

static const struct setting *find_setting(const char *name)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(name, settings[i].name) == 0)
            return &settings[i];
    return NULL;
}

int occ_config_set(struct occ_config *config, const char *name, const char *value, struct occ_error *err)
{
    const struct setting *setting = find_setting(name);
    if (!setting)
        return occ_fail(err, OCC_E_NOT_FOUND, "there is no setting '%.64s'", name);
    return set_value(setting, value, config, err);
}

/* ---- the file ---- */

struct reader {
    const char *name; /* of the file */
    struct occ_config *config;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    bool section_given[N_SETTINGS], given[N_SETTINGS];
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
    const char *nearest = occ_text_nearest(key, key_words);
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
    const struct setting *setting = find_setting(name);
    if (!setting)
        return fail_unknown_key(r, key, err);
    int status = give_once(r, &r->given[setting - settings], err);
    if (status == 0)
        status = next_event(r, err);
    if (status != 0)
        return status;
    if (!(value = scalar(r)))
        return fail_at(r, &r->event.start_mark, err, "%s: one value is expected here", name);
    if (set_value(setting, value, r->config, &why) != 0)
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
    while (i < N_SETTINGS && (strncmp(settings[i].name, key, n) != 0 || settings[i].name[n] != '.'))
        i++;
    if (i == N_SETTINGS)
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
