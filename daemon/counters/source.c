/* Words of source.h. Any thread. */
#include "source.h"

const char *occ_source_state_word(enum occ_source_state state)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        OCC_SOURCE_STATES(X)
#undef X
    };
    return words[state];
}

const char *occ_source_state_text(enum occ_source_state state)
{
    static const char *const texts[] = {
#define X(name, word, text) text,
        OCC_SOURCE_STATES(X)
#undef X
    };
    return texts[state];
}
