/* See source.h. */
#include "source.h"

#include <pthread.h>
#include <stdlib.h>

#include "support/text.h"

OCC_WORDS(occ_source_state_word, enum occ_source_state, OCC_SOURCE_STATES)

const char *occ_source_state_text(enum occ_source_state state)
{
#define TEXT(name, word, text) text,
    static const char *const texts[] = {OCC_SOURCE_STATES(TEXT)};
    return texts[state];
}

#define READ_EVERY_NS INT64_C(50000000)
#define READ_SAMPLES  200 /* 4.7 MB at 23.3 KB per sample */

int64_t occ_source_read_every_ns(int64_t interval_ns)
{
    return interval_ns < READ_EVERY_NS / READ_SAMPLES ? interval_ns * READ_SAMPLES : READ_EVERY_NS;
}

enum occ_source_state occ_source_open(const struct occ_source_kind *kind,
                                      const struct occ_source_options *options,
                                      struct occ_source **ret_source, struct occ_error *err)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    struct occ_source *source = calloc(1, kind->bytes);
    *ret_source = NULL;
    if (!source) {
        (void)occ_no_memory(err);
        return OCC_SOURCE_FAILED;
    }
    (void)pthread_mutex_lock(&one_at_a_time);
    enum occ_source_state state = kind->begin(source, options, err);
    if (state == OCC_SOURCE_OK)
        *ret_source = source;
    else
        kind->close(source);
    (void)pthread_mutex_unlock(&one_at_a_time);
    return state;
}
