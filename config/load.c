/* The loader of occtrace.yaml: events, two levels deep, straight into struct occ_config. No global state; any
 * thread. */
#include "settings.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/paths.h"
#include "support/text.h"
#include "yaml_reader.h"

struct reader {
    struct occ_yaml yaml;
    struct occ_config *config;
    bool section_given[OCC_SETTING_COUNT], given[OCC_SETTING_COUNT];
    /* mistakes in keys and values; reading continues after a mistake */
    char mistakes[OCC_ERROR_MESSAGE_BYTES];
};

/* `name`: the key with its section, printed if another section has a key of this name. */
static int fail_unknown_key(const struct reader *r, const char *name, const char *key, struct occ_error *err)
{
    const char *nearest = occ_text_nearest(key, occ_setting_words);
    if (nearest && strcmp(nearest, key) == 0)
        return occ_yaml_fail(&r->yaml, err, "unknown key '%.100s'", name);
    return occ_yaml_fail(&r->yaml, err, "unknown key '%.100s'%s%s%s", key, nearest ? "; did you mean '" : "",
                         nearest ? nearest : "", nearest ? "'?" : "");
}

/* Marks a key as given. */
static int give_once(const struct reader *r, bool *given, struct occ_error *err)
{
    if (*given)
        return occ_yaml_fail(&r->yaml, err, "'%s' is given twice", occ_yaml_scalar(&r->yaml));
    *given = true;
    return 0;
}

/* Reads one key of a section (the current event) and its value. Fails if the position of the next key is
 * unknown. */
static int read_setting(struct reader *r, const char *section, struct occ_error *err)
{
    const char *key = occ_yaml_scalar(&r->yaml), *value;
    char name[OCC_CONFIG_TEXT_BYTES];
    struct occ_error why = OCC_ERROR_INIT, mistake = OCC_ERROR_INIT;
    if (!key)
        return occ_yaml_fail(&r->yaml, err, "%s: a key is expected here", section);
    (void)snprintf(name, sizeof name, "%s.%s", section, key);
    const struct occ_setting *setting = occ_setting_find(name);
    int wrong = setting ? give_once(r, &r->given[setting - occ_settings], &mistake)
                        : fail_unknown_key(r, name, key, &mistake);
    int status = occ_yaml_next(&r->yaml, err);
    value = occ_yaml_scalar(&r->yaml);
    if (wrong == 0 && status == 0 && value && occ_setting_set(setting, value, r->config, &why) != 0)
        wrong = occ_yaml_fail(&r->yaml, &mistake, "%s: %s", name, why.message);
    if (wrong != 0)
        occ_text_append(r->mistakes, sizeof r->mistakes, "; ", "%s", mistake.message);
    return status == 0 && !value ? occ_yaml_fail(&r->yaml, err, "%s: one value is expected here", name)
                                 : status;
}

/* Reads a section: its name (the current event) and its mapping. */
static int read_section(struct reader *r, struct occ_error *err)
{
    const char *key = occ_yaml_scalar(&r->yaml);
    size_t n = key ? strlen(key) : 0, i = 0;
    char section[16];
    if (!key)
        return occ_yaml_fail(&r->yaml, err, "the name of a section is expected here");
    while (i < OCC_SETTING_COUNT &&
           (strncmp(occ_settings[i].name, key, n) != 0 || occ_settings[i].name[n] != '.'))
        i++;
    if (i == OCC_SETTING_COUNT)
        return fail_unknown_key(r, key, key, err);
    (void)snprintf(section, sizeof section, "%s", key);
    int status = give_once(r, &r->section_given[i], err);
    if (status == 0)
        status = occ_yaml_next(&r->yaml, err);
    if (status == 0 && r->yaml.event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(&r->yaml, err, "%s: keys with values are expected here", section);
    while (status == 0 && (status = occ_yaml_next(&r->yaml, err)) == 0 &&
           r->yaml.event.type != YAML_MAPPING_END_EVENT)
        status = read_setting(r, section, err);
    return status;
}

/* Reads the whole stream: nothing, or one document with one mapping of sections. */
static int read_stream(struct reader *r, struct occ_error *err)
{
    int status = 0;
    if (r->yaml.event.type == YAML_STREAM_END_EVENT)
        return 0;
    if (r->yaml.event.type != YAML_MAPPING_START_EVENT)
        return occ_yaml_fail(&r->yaml, err, "sections are expected here");
    while (status == 0 && (status = occ_yaml_next(&r->yaml, err)) == 0 &&
           r->yaml.event.type != YAML_MAPPING_END_EVENT)
        status = read_section(r, err);
    return status == 0 ? occ_yaml_end(&r->yaml, err) : status;
}

int occ_config_parse(const char *name, const char *text, size_t length, struct occ_config *config,
                     struct occ_error *err)
{
    struct occ_config result = *config;
    struct reader r = {.config = &result};
    int status = occ_yaml_open(&r.yaml, name, text, length, err);
    if (status == 0)
        status = read_stream(&r, err);
    occ_yaml_close(&r.yaml);
    if (r.mistakes[0])
        return occ_fail(err, OCC_E_INVALID, "%s", r.mistakes);
    if (status == 0)
        *config = result;
    return status;
}

int occ_config_load(const char *path, struct occ_config *config, struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t length = 0;
    int status = occ_path_read(path, OCC_CONFIG_MAX_BYTES + 1, &text, &length, err);
    return status == 0 ? occ_config_parse(path, text, length, config, err) : status;
}

/* ---- the service's settings ---- */

int occ_config_load_system(struct occ_config *config, struct occ_error *err)
{
    _cleanup_(occ_freep) char *directory = NULL;
    _cleanup_(occ_freep) char *file = NULL;
    _cleanup_(occ_freep) char *pattern = NULL;
    glob_t found = {0};
    int status = occ_path_settings(&directory, err);
    if (status == 0)
        status = occ_format_text(&file, err, "%s/occtrace.yaml", directory);
    if (status == 0)
        status = occ_format_text(&pattern, err, "%s/conf.d/*.yaml", directory);
    if (status == 0 && access(file, F_OK) == 0)
        status = occ_config_load(file, config, err);
    if (status == 0 && glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; status == 0 && i < found.gl_pathc; i++)
            status = occ_config_load(found.gl_pathv[i], config, err);
    globfree(&found);
    return status;
}
