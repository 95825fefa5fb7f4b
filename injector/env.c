/* Reads the variables of env.def through one table. Thread: the one that initialises CUDA, before the helper
 * exists.
 */
#include "env.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct row;
typedef bool parser(const struct row *row, const char *text, void *field);

struct row {
    const char *name;
    size_t offset;
    parser *parse;
    uint64_t min, max;
};

static bool parse_FLAG(const struct row *row, const char *text, void *field)
{
    (void)row;
    *(bool *)field = text[0] != '\0' && strcmp(text, "0") != 0;
    return true;
}

static bool parse_TEXT(const struct row *row, const char *text, void *field)
{
    size_t n = strlen(text);
    if (n < row->min || n > row->max)
        return false;
    memcpy(field, text, n + 1);
    return true;
}

static bool parse_PATH(const struct row *row, const char *text, void *field)
{
    return text[0] == '\0' || (text[0] == '/' && parse_TEXT(row, text, field));
}

static bool parse_TARGET(const struct row *row, const char *text, void *field)
{
    return (text[0] == '/' || strcmp(text, "stderr") == 0) && parse_TEXT(row, text, field);
}

static bool parse_SESSION(const struct row *row, const char *text, void *field)
{
    return strspn(text, "0123456789abcdefABCDEF") == strlen(text) && parse_TEXT(row, text, field);
}

static bool parse_NUMBER(const struct row *row, const char *text, void *field)
{
    size_t n = strlen(text);
    if (n < 1 || n > 18 || strspn(text, "0123456789") != n) /* 18 digits do not overflow */
        return false;
    uint64_t value = strtoull(text, NULL, 10);
    if (value < row->min || value > row->max)
        return false;
    *(uint64_t *)field = value;
    return true;
}

static bool parse_POWER(const struct row *row, const char *text, void *field)
{
    uint64_t value = 0;
    if (!parse_NUMBER(row, text, &value) || (value & (value - 1)) != 0)
        return false;
    *(uint64_t *)field = value;
    return true;
}

/* Parses up to four decimals. strtod is not used: its decimal point depends on the program's locale. */
static bool parse_PERCENT(const struct row *row, const char *text, void *field)
{
    size_t n = strspn(text, "0123456789"), decimals = text[n] == '.' ? strspn(text + n + 1, "0123456789") : 0;
    uint64_t value = 0;
    if (n < 1 || n > 3 || decimals > 4 || text[n + (text[n] == '.') + decimals] != '\0')
        return false;
    for (size_t i = 0; i < n + 4; i++) {
        const char *digit = i < n ? &text[i] : &text[i + 1];
        value = value * 10 + (i < n + decimals ? (uint64_t)(*digit - '0') : 0);
    }
    if (value < row->min || value > row->max)
        return false;
    *(uint64_t *)field = value;
    return true;
}

static const struct row rows[] = {
#define X(field, name, kind, min, max, text) {name, offsetof(struct occ_env, field), parse_##kind, min, max},
#include "env.def"
};

#define ROWS (sizeof rows / sizeof rows[0])
static_assert(ROWS <= 32, "occ_env.rejected has a bit for each");

void occ_env_read(struct occ_env *env, char *(*get)(const char *name))
{
    memset(env, 0, sizeof *env);
    env->ring_slots = OCC_RING_DEFAULT_SLOTS;
    env->buffers = OCC_POOL_DEFAULT_BUFFERS;
    env->buffer_bytes = OCC_POOL_DEFAULT_BYTES;
    for (unsigned int i = 0; i < ROWS; i++) {
        const char *text = get(rows[i].name);
        if (text && !rows[i].parse(&rows[i], text, (char *)env + rows[i].offset))
            env->rejected |= 1u << i;
    }
}

bool occ_env_has_bad_socket(const struct occ_env *env)
{
    unsigned int row = 0;
    while (rows[row].offset != offsetof(struct occ_env, socket))
        row++;
    return env->rejected & (1u << row);
}

const char *occ_env_name(unsigned int row)
{
    return row < ROWS ? rows[row].name : NULL;
}
