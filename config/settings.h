/* The table of settings, for config.c and load.c only. */
#pragma once

#include "config.h"

enum kind {
    KIND_PATH,
    KIND_TEXT,
    KIND_NAME,
    KIND_COMMAND,
    KIND_LISTEN,
    KIND_BYTES,
    KIND_QUOTA,
    KIND_DURATION,
    KIND_AGE,
    KIND_COUNT,
    KIND_MODE,
    KIND_SYNC,
    KIND_LEVEL,
    KIND_SPLIT,
    KIND_USERS,
    KIND_RECORD,
    KIND_COUNTERS,
    KIND_COVERAGE,
    KIND_SWITCH,
    KIND_PERCENT,
    KIND_MAX
};

struct occ_setting {
    const char *name, *default_text; /* section.key */
    enum kind kind;
    size_t offset; /* in struct occ_config */
    uint64_t min, max;
    enum { WHEN_RESTART, WHEN_LIVE, WHEN_OTHER } when;
};

#define OCC_SETTING_ONE(section, key, kind, type, member, when, default_text, min, max) +1
enum { OCC_SETTING_COUNT = OCC_CONFIG_SETTINGS(OCC_SETTING_ONE) };
extern const struct occ_setting occ_settings[OCC_SETTING_COUNT];

/* All section and key names, for "did you mean"; ends with NULL. */
extern const char *const occ_setting_words[];

/* Returns NULL for an unknown name. */
const struct occ_setting *occ_setting_find(const char *name);
int occ_setting_set(const struct occ_setting *setting, const char *text, struct occ_config *config,
                    struct occ_error *err);
