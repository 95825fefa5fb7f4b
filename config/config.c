/*
 * Loader of occtrace.yaml. libcyaml turns the text into `struct raw_*`: one char pointer a setting, NULL
 * where the file says nothing. Then each text goes through the check of its kind. libcyaml's own messages are
 * caught, the first line gives the text and the first backtrace line the place; for values that it accepted
 * and we refuse, the place is found again in the text.
 *
 * No global state; any thread.
 */
#include "config.h"

#include <ctype.h>
#include <cyaml/cyaml.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/text.h"

static const char *const sync_words[] = {"normal", "full", NULL};
static const char *const level_words[] = {"error", "warning", "info", "debug", NULL};
static const char *const counters_words[] = {"auto", "pm", "gpm", "none", NULL};
static const char *const mode_words[] = {"auto", "0600", "0660", "0666", NULL};

enum kind {
    KIND_PATH,
    KIND_BYTES,
    KIND_DURATION,
    KIND_COUNT,
    KIND_MODE,
    KIND_SYNC,
    KIND_LEVEL,
    KIND_COUNTERS
};

/* ---- what libcyaml fills ---- */

#define X(section, key, kind, member, default_text, min, max) char *key;
#define S(section, table)                                                                                    \
    struct raw_##section {                                                                                   \
        table(X)                                                                                             \
    };
OCC_CONFIG_SECTIONS(S)
#undef S
#undef X

struct raw {
#define S(section, table) struct raw_##section *section;
    OCC_CONFIG_SECTIONS(S)
#undef S
};

#define X(section, key, kind, member, default_text, min, max)                                                \
    CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_##section, key, 0,     \
                           OCC_CONFIG_TEXT_BYTES - 1),
#define S(section, table) static const cyaml_schema_field_t fields_##section[] = {table(X) CYAML_FIELD_END};
OCC_CONFIG_SECTIONS(S)
#undef S
#undef X

static const cyaml_schema_field_t fields_top[] = {
#define S(section, table)                                                                                    \
    CYAML_FIELD_MAPPING_PTR(#section, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw, section,         \
                            fields_##section),
    OCC_CONFIG_SECTIONS(S)
#undef S
        CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, fields_top)};

/* ---- the table of settings ---- */

struct setting {
    const char *section, *key, *default_text;
    enum kind kind;
    size_t offset;         /* in struct occ_config */
    size_t section_offset; /* in struct raw */
    size_t raw_offset;     /* in struct raw_<section> */
    uint64_t min, max;
};

static const struct setting settings[] = {
#define X(section_, key_, kind_, member_, default_, min_, max_)                                              \
    {.section = #section_,                                                                                   \
     .key = #key_,                                                                                           \
     .default_text = default_,                                                                               \
     .kind = KIND_##kind_,                                                                                   \
     .offset = offsetof(struct occ_config, member_),                                                         \
     .section_offset = offsetof(struct raw, section_),                                                       \
     .raw_offset = offsetof(struct raw_##section_, key_),                                                    \
     .min = min_,                                                                                            \
     .max = max_},
#define S(section, table) table(X)
    OCC_CONFIG_SECTIONS(S)
#undef S
#undef X
};
#define N_SETTINGS (sizeof settings / sizeof *settings)

/* Every word that may be a key, for "did you mean". */
static const char *const key_words[] = {
#define X(section, key, kind, member, default_text, min, max) #key,
#define S(section, table)                                     #section, table(X)
    OCC_CONFIG_SECTIONS(S)
#undef S
#undef X
        NULL};

/* ---- checking one value ---- */

static int index_of_word(const char *text, const char *const *words, uint64_t *ret_index,
                         struct occ_error *err)
{
    char list[128] = "";
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret_index = i;
            return 0;
        }
        size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    return occ_fail(err, OCC_E_INVALID, "'%.64s' is not one of %s", text, list);
}

static int set_path(const char *text, char *value, struct occ_error *err)
{
    if (text[0] != '\0' && text[0] != '/')
        return occ_fail(err, OCC_E_INVALID, "'%.128s' is not an absolute path", text);
    if (strlen(text) >= OCC_CONFIG_TEXT_BYTES)
        return occ_fail(err, OCC_E_INVALID, "longer than %d bytes", OCC_CONFIG_TEXT_BYTES - 1);
    memset(value, 0, OCC_CONFIG_TEXT_BYTES);
    memcpy(value, text, strlen(text) + 1);
    return 0;
}

static int set_bytes(const struct setting *setting, const char *text, uint64_t *value, struct occ_error *err)
{
    uint64_t bytes = 0;
    char low[32], high[32];
    int status = occ_parse_bytes(text, UINT64_MAX / 2, &bytes, err);
    if (status != 0)
        return status;
    bool none = bytes == 0 && setting->offset == offsetof(struct occ_config, database_max_bytes);
    if (!none && (bytes < setting->min || bytes > setting->max))
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%s to %s)", text,
                        occ_format_bytes(setting->min, low, sizeof low),
                        occ_format_bytes(setting->max, high, sizeof high));
    *value = bytes;
    return 0;
}

static int set_duration(const struct setting *setting, const char *text, int64_t *value,
                        struct occ_error *err)
{
    int64_t ns = 0;
    char low[32], high[32];
    int status = occ_parse_duration_ns(text, &ns, err);
    if (status != 0)
        return status;
    if (ns < (int64_t)setting->min || ns > (int64_t)setting->max)
        return occ_fail(err, OCC_E_INVALID, "'%.64s' is out of range (%s to %s)", text,
                        occ_format_duration((int64_t)setting->min, low, sizeof low),
                        occ_format_duration((int64_t)setting->max, high, sizeof high));
    *value = ns;
    return 0;
}

static int set_mode(const char *text, uint64_t *value, struct occ_error *err)
{
    uint64_t index = 0;
    int status = index_of_word(text, mode_words, &index, err);
    if (status == 0)
        *value = strtoul(mode_words[index], NULL, 8); /* auto: 0 */
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
        return set_bytes(setting, text, value, err);
    case KIND_DURATION:
        return set_duration(setting, text, value, err);
    case KIND_COUNT:
        return occ_parse_u64(text, setting->min, setting->max, value, err);
    case KIND_MODE:
        return set_mode(text, value, err);
    case KIND_SYNC:
        return index_of_word(text, sync_words, value, err);
    case KIND_LEVEL:
        return index_of_word(text, level_words, value, err);
    case KIND_COUNTERS:
        return index_of_word(text, counters_words, value, err);
    }
    return occ_fail(err, OCC_E_INVALID, "no such kind of setting");
}

void occ_config_defaults(struct occ_config *config)
{
    *config = (struct occ_config){0};
    for (size_t i = 0; i < N_SETTINGS; i++)
        (void)set_value(&settings[i], settings[i].default_text, config,
                        NULL); /* a test checks each of them */
}

int occ_config_set(struct occ_config *config, const char *name, const char *value, struct occ_error *err)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        size_t n = strlen(settings[i].section);
        if (strncmp(name, settings[i].section, n) == 0 && name[n] == '.' &&
            strcmp(name + n + 1, settings[i].key) == 0)
            return set_value(&settings[i], value, config, err);
    }
    return occ_fail(err, OCC_E_NOT_FOUND, "there is no setting '%.64s'", name);
}

/* ---- where in the text a key is ---- */

static bool is_key_at(const char *line, const char *end, const char *key)
{
    size_t n = strlen(key);
    while (line < end && (isblank((unsigned char)*line) || *line == '{' || *line == '"' || *line == '\''))
        line++;
    if ((size_t)(end - line) <= n || strncmp(line, key, n) != 0)
        return false;
    line += n;
    while (line < end && (isblank((unsigned char)*line) || *line == '"' || *line == '\''))
        line++;
    return line < end && *line == ':';
}

/* Line of `key` after the line of `section` (NULL: anywhere), counted from 1; 0: not found. */
static unsigned int line_of(const char *text, size_t length, const char *section, const char *key)
{
    const char *end = text + length;
    bool in_section = section == NULL;
    unsigned int number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if (in_section && is_key_at(line, stop, key))
            return number;
        if (!in_section && is_key_at(line, stop, section))
            in_section = true;
        line = stop + 1;
    }
    return 0;
}

/* ---- libcyaml's messages ---- */

struct caught {
    char text[256];    /* first message */
    unsigned int line; /* first place; 0: none */
};

static void catch_message(cyaml_log_t level, void *context, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void catch_message(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct caught *caught = context;
    char message[256];
    (void)level;
    (void)vsnprintf(message, sizeof message, format, args);
    message[strcspn(message, "\n")] = '\0';
    const char *place = strstr(message, "(line: ");
    if (place) {
        if (caught->line == 0)
            caught->line = (unsigned int)strtoul(place + strlen("(line: "), NULL, 10);
        return;
    }
    const char *text = strncmp(message, "Load: ", 6) == 0 ? message + 6 : message;
    if (caught->text[0] == '\0' && strcmp(text, "Backtrace:") != 0)
        (void)snprintf(caught->text, sizeof caught->text, "%s", text);
}

static int fail_at(struct occ_error *err, const char *name, unsigned int line, const char *text)
{
    if (line)
        return occ_fail(err, OCC_E_INVALID, "%s:%u: %s", name, line, text);
    return occ_fail(err, OCC_E_INVALID, "%s: %s", name, text);
}

/* libcyaml places an unknown key at what came before it: look for it in the text. */
static int fail_unknown_key(struct occ_error *err, const char *name, const char *text, size_t length,
                            char *key)
{
    char message[320];
    occ_text_sanitise(key);
    const char *nearest = occ_text_nearest(key, key_words);
    (void)snprintf(message, sizeof message, "unknown key '%.100s'%s%s%s", key,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return fail_at(err, name, line_of(text, length, NULL, key), message);
}

static int fail_load(struct occ_error *err, const char *name, const char *text, size_t length,
                     cyaml_err_t code, struct caught *caught)
{
    static const char unknown[] = "Unexpected key: ";
    if (code == CYAML_ERR_OOM)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    if (strncmp(caught->text, unknown, sizeof unknown - 1) == 0)
        return fail_unknown_key(err, name, text, length, caught->text + sizeof unknown - 1);
    occ_text_sanitise(caught->text);
    return fail_at(err, name, caught->line, caught->text[0] ? caught->text : cyaml_strerror(code));
}

/* ---- loading ---- */

static int take_raw(const char *name, const char *text, size_t length, const struct raw *raw,
                    struct occ_config *config, struct occ_error *err)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        const char *section = *(char *const *)(const void *)((const char *)raw + setting->section_offset);
        const char *value = section ? *(char *const *)(const void *)(section + setting->raw_offset) : NULL;
        if (!value)
            continue;
        int status = set_value(setting, value, config, err);
        if (status != 0) {
            if (err)
                occ_text_sanitise(err->message);
            unsigned int line = line_of(text, length, setting->section, setting->key);
            char place[24] = "";
            if (line)
                (void)snprintf(place, sizeof place, ":%u", line);
            (void)occ_error_prefix(err, "%s%s: %s.%s", name, place, setting->section, setting->key);
            return status;
        }
    }
    return 0;
}

int occ_config_parse(const char *name, const char *text, size_t length, struct occ_config *config,
                     struct occ_error *err)
{
    if (length > OCC_CONFIG_MAX_BYTES)
        return occ_fail(err, OCC_E_INVALID, "%s: larger than %u bytes", name, OCC_CONFIG_MAX_BYTES);
    struct caught caught = {.text = ""};
    const cyaml_config_t loader = {.log_fn = catch_message,
                                   .log_ctx = &caught,
                                   .mem_fn = cyaml_mem,
                                   .log_level = CYAML_LOG_ERROR,
                                   .flags = CYAML_CFG_NO_ALIAS};
    struct raw *raw = NULL;
    cyaml_err_t code =
        cyaml_load_data((const uint8_t *)text, length, &loader, &schema, (cyaml_data_t **)&raw, NULL);
    if (code != CYAML_OK)
        return fail_load(err, name, text, length, code, &caught);
    struct occ_config result = *config;
    int status = raw ? take_raw(name, text, length, raw, &result, err) : 0;
    (void)cyaml_free(&loader, &schema, raw, 0);
    if (status == 0)
        *config = result;
    return status;
}

/* At most one byte more than allowed, so that too large shows. */
static ssize_t read_all(int fd, char *buffer, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, buffer + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
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
    _cleanup_(occ_freep) char *text = malloc(OCC_CONFIG_MAX_BYTES + 1);
    if (!text)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    ssize_t n = read_all(fd, text, OCC_CONFIG_MAX_BYTES + 1);
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read %s", path);
    return occ_config_parse(path, text, (size_t)n, config, err);
}
