/* The settings and their values: see config.h. No global state; any thread. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "support/address.h"
#include "support/text.h"

/* The words of kinds with a fixed set of words; a value is the word's index, with MODE the octal number. */
static const char *const words[KIND_MAX][5] = {
    [KIND_MODE] = {"auto", "0600", "0660", "0666"},
    [KIND_SYNC] = {"normal", "full"},
    [KIND_LEVEL] = {"error", "warning", "info", "debug"},
    [KIND_SPLIT] = {"owner", "none"},
    [KIND_USERS] = {"name", "hash", "none"},
    [KIND_RECORD] = {"auto", "full", "program", "none"},
    [KIND_COUNTERS] = {"auto", "pm", "gpm", "none"},
    [KIND_COVERAGE] = {"auto", "none"},
    [KIND_SWITCH] = {"false", "true"},
};

const struct occ_setting occ_settings[] = {
#define SETTING(section, key, kind, type, member, when, default_text, min, max)                              \
    {#section "." #key, default_text, KIND_##kind, offsetof(struct occ_config, member), min, max,            \
     WHEN_##when},
    OCC_CONFIG_SETTINGS(SETTING)};

/* All section and key names, for "did you mean". */
#define KEY_WORDS(section, key, kind, type, member, when, default_text, min, max) #section, #key,
const char *const occ_setting_words[] = {OCC_CONFIG_SETTINGS(KEY_WORDS) NULL};

/* ---- one value ---- */

static bool is_text(enum kind kind)
{
    return kind == KIND_PATH || kind == KIND_TEXT || kind == KIND_NAME || kind == KIND_COMMAND ||
           kind == KIND_LISTEN;
}

/* Checks the words of a command for a node; a placeholder must be a whole word. */
static int check_command(const char *text, struct occ_error *err)
{
    static const char *const placeholders[] = {"{node}", "{command}", "{arguments}"};
    bool has[3] = {false};
    for (size_t n; text[0]; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        bool is_known = !memchr(text, '{', n) && !memchr(text, '}', n);
        for (size_t i = 0; i < 3; i++)
            if (strlen(placeholders[i]) == n && memcmp(text, placeholders[i], n) == 0)
                is_known = has[i] = true;
        if (!is_known)
            return occ_fail(err, OCC_E_INVALID, "'%.*s' is none of the words {node}, {command}, {arguments}",
                            (int)n, text);
    }
    return has[0] && (has[1] || has[2])
               ? 0
               : occ_fail(err, OCC_E_INVALID, "the words {node}, and {command} or {arguments}, are needed");
}

static int check_text(enum kind kind, const char *text, struct occ_error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    struct sockaddr_storage address;
    socklen_t size;
    if (kind == KIND_PATH && text[0] != '\0' && text[0] != '/')
        return occ_fail(err, OCC_E_INVALID, "'%.128s' is not an absolute path", text);
    if (kind == KIND_NAME &&
        (text[strspn(text, letters)] != '\0' || text[0] == '\0' || (text[0] >= '0' && text[0] <= '9')))
        return occ_fail(err, OCC_E_INVALID, "'%.128s' is not a name of letters, digits and _", text);
    for (size_t i = 0; (kind == KIND_TEXT || kind == KIND_COMMAND) && text[i]; i++)
        if (text[i] < ' ' || text[i] > '~')
            return occ_fail(err, OCC_E_INVALID, "only printable ASCII is allowed");
    if (kind == KIND_LISTEN && text[0])
        return occ_address_parse(text, &address, &size, err);
    return kind == KIND_COMMAND ? check_command(text, err) : 0;
}

static int set_text(enum kind kind, const char *text, char *value, struct occ_error *err)
{
    int status = check_text(kind, text, err);
    if (status != 0)
        return status;
    if (strlen(text) >= OCC_CONFIG_TEXT_BYTES)
        return occ_fail(err, OCC_E_INVALID, "longer than %d bytes", OCC_CONFIG_TEXT_BYTES - 1);
    memset(value, 0, OCC_CONFIG_TEXT_BYTES);
    memcpy(value, text, strlen(text));
    return 0;
}

/* Sets a size in bytes or a duration in nanoseconds. */
static int set_quantity(const struct occ_setting *setting, const char *text, uint64_t *value,
                        struct occ_error *err)
{
    bool is_time = setting->kind == KIND_DURATION || setting->kind == KIND_AGE;
    bool may_be_0 = setting->kind == KIND_QUOTA || setting->kind == KIND_AGE;
    int64_t ns = 0;
    uint64_t bytes = 0;
    char low[32], high[32];
    int status = 0;
    if (!may_be_0 || strcmp(text, "0") != 0)
        status =
            is_time ? occ_parse_duration_ns(text, &ns, err) : occ_parse_bytes(text, INT64_MAX, &bytes, err);
    if (status != 0)
        return status;
    uint64_t number = is_time ? (uint64_t)ns : bytes;
    bool in_range = number >= setting->min && number <= setting->max;
    if (!in_range && !(number == 0 && may_be_0)) {
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
        occ_text_append(list, sizeof list, ", ", "%s", word);
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

int occ_setting_set(const struct occ_setting *setting, const char *text, struct occ_config *config,
                    struct occ_error *err)
{
    void *value = (char *)config + setting->offset;
    switch (setting->kind) {
    case KIND_PATH:
    case KIND_TEXT:
    case KIND_NAME:
    case KIND_COMMAND:
    case KIND_LISTEN:
        return set_text(setting->kind, text, value, err);
    case KIND_BYTES:
    case KIND_QUOTA:
    case KIND_DURATION:
    case KIND_AGE:
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
    for (size_t i = 0; i < OCC_SETTING_COUNT; i++) /* a test checks that each default is valid */
        (void)occ_setting_set(&occ_settings[i], occ_settings[i].default_text, config, NULL);
}

const struct occ_setting *occ_setting_find(const char *name)
{
    for (size_t i = 0; i < OCC_SETTING_COUNT; i++)
        if (strcmp(name, occ_settings[i].name) == 0)
            return &occ_settings[i];
    return NULL;
}

int occ_config_set(struct occ_config *config, const char *name, const char *value, struct occ_error *err)
{
    const struct occ_setting *setting = occ_setting_find(name);
    if (!setting)
        return occ_fail(err, OCC_E_NOT_FOUND, "there is no setting '%.64s'", name);
    return occ_setting_set(setting, value, config, err);
}

/* ---- all settings ---- */

const char *occ_config_next_change(const struct occ_config *a, const struct occ_config *b, size_t *at,
                                   bool *ret_live)
{
    while (*at < OCC_SETTING_COUNT) {
        const struct occ_setting *s = &occ_settings[(*at)++];
        size_t bytes = is_text(s->kind) ? sizeof(occ_config_text) : sizeof(uint64_t);
        *ret_live = s->when == WHEN_LIVE;
        if (s->when != WHEN_OTHER &&
            memcmp((const char *)a + s->offset, (const char *)b + s->offset, bytes) != 0)
            return s->name;
    }
    return NULL;
}

struct unit {
    const char *name;
    uint64_t size;
};

/* A path as a quoted YAML scalar. */
static void print_text(const char *text, FILE *out)
{
    (void)fputc('\'', out);
    for (; *text; text++)
        (void)fprintf(out, *text == '\'' ? "''" : "%c", *text);
    (void)fputc('\'', out);
}

/* Prints the value in the largest unit that divides it; `units` ends with unit 1. */
static void print_quantity(uint64_t value, const struct unit *unit, FILE *out)
{
    while (unit->size > 1 && (value == 0 || value % unit->size != 0))
        unit++;
    (void)fprintf(out, "%llu%s", (unsigned long long)(value / unit->size), value ? unit->name : "");
}

static void print_value(const struct occ_setting *setting, const struct occ_config *config, FILE *out)
{
    static const struct unit bytes[] = {
        {"T", UINT64_C(1) << 40}, {"G", 1u << 30}, {"M", 1u << 20}, {"k", 1u << 10}, {"", 1}};
    static const struct unit times[] = {{"d", UINT64_C(86400000000000)},
                                        {"h", UINT64_C(3600000000000)},
                                        {"min", UINT64_C(60000000000)},
                                        {"s", 1000000000},
                                        {"ms", 1000000},
                                        {"us", 1000},
                                        {"ns", 1}};
    static const struct unit counts[] = {{"", 1}};
    const char *at = (const char *)config + setting->offset;
    uint64_t value = 0;
    if (is_text(setting->kind)) {
        print_text(at, out);
        return;
    }
    memcpy(&value, at, sizeof value);
    if (setting->kind == KIND_PERCENT)
        (void)fprintf(out, "%.6g", (double)value / 1e4);
    else if (setting->kind == KIND_MODE && value)
        (void)fprintf(out, "0%llo", (unsigned long long)value);
    else if (words[setting->kind][0])
        (void)fputs(words[setting->kind][value], out);
    else
        print_quantity(value,
                       setting->kind == KIND_COUNT                                   ? counts
                       : setting->kind == KIND_DURATION || setting->kind == KIND_AGE ? times
                                                                                     : bytes,
                       out);
}

int occ_config_check_groups(const struct occ_config *config, struct occ_error *err)
{
    bool has_tls = config->tls_cert[0],
         is_whole = (config->tls_key[0] != 0) == has_tls && (config->client_ca[0] != 0) == has_tls;
    return is_whole
               ? 0
               : occ_fail(err, OCC_E_INVALID,
                          "http.tls_cert, http.tls_key and http.client_ca are set together or not at all");
}

void occ_config_print(const struct occ_config *config, FILE *out)
{
    for (size_t i = 0; i < OCC_SETTING_COUNT; i++) {
        const char *name = occ_settings[i].name, *dot = strchr(name, '.');
        size_t section = (size_t)(dot - name);
        if (i == 0 || strncmp(name, occ_settings[i - 1].name, section + 1) != 0)
            (void)fprintf(out, "%.*s:\n", (int)section, name);
        (void)fprintf(out, "  %s: ", dot + 1);
        print_value(&occ_settings[i], config, out);
        (void)fputc('\n', out);
    }
}
