/*
 * The words for limits, causes and statuses, from the X-macros of occupancy.h. Threads: any.
 */
#include "occupancy.h"

#include <string.h>

const char *occ_status_text(enum occ_status status)
{
    switch (status) {
#define X(name, text)                                                                                        \
    case OCC_##name:                                                                                         \
        return text;
        OCC_STATUSES(X)
#undef X
    }
    return "unknown status";
}

const char *occ_limit_word(enum occ_limit limit)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        OCC_LIMITS(X)
#undef X
    };
    return (unsigned)limit < OCC_LIMIT_COUNT ? words[limit] : "unknown";
}

const char *occ_limit_text(enum occ_limit limit)
{
    static const char *const texts[] = {
#define X(name, word, text) text,
        OCC_LIMITS(X)
#undef X
    };
    return (unsigned)limit < OCC_LIMIT_COUNT ? texts[limit] : "unknown";
}

const char *occ_cause_word(enum occ_cause cause)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        OCC_CAUSES(X)
#undef X
    };
    return (unsigned)cause < OCC_CAUSE_COUNT ? words[cause] : "unknown";
}

const char *occ_cause_text(enum occ_cause cause)
{
    static const char *const texts[] = {
#define X(name, word, text) text,
        OCC_CAUSES(X)
#undef X
    };
    return (unsigned)cause < OCC_CAUSE_COUNT ? texts[cause] : "unknown";
}

/* Appends what of `text` fits before the NUL; returns the new length. */
static size_t append(char *buffer, size_t size, size_t used, const char *text)
{
    size_t length = strlen(text);
    size_t room = size - 1 - used;
    if (length > room)
        length = room;
    memcpy(buffer + used, text, length);
    buffer[used + length] = '\0';
    return used + length;
}

const char *occ_limiters_text(uint32_t limiters, char *buffer, size_t size)
{
    if (size == 0)
        return "";
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < OCC_LIMIT_COUNT; i++) {
        if (!(limiters & 1u << i))
            continue;
        if (used > 0)
            used = append(buffer, size, used, "+");
        used = append(buffer, size, used, occ_limit_word((enum occ_limit)i));
    }
    return buffer;
}
