/* See run_texts.h. No global state; one thread. */
#include "run_texts.h"

#include <stdlib.h>
#include <string.h>

#include "support/text.h"

/* A key of PROCESS records, its member of struct occ_run, and how many bytes are kept. */
static const struct text {
    const char *key;
    size_t offset; /* of a const char * in struct occ_run */
    size_t max_bytes;
} texts[] = {
#define TEXT(key, max_bytes)                                                                                 \
    {                                                                                                        \
#key, offsetof(struct occ_run, key), max_bytes                                                       \
    }
    TEXT(exe, 4096),
    TEXT(cmdline, 4096),
    TEXT(cwd, 4096),
    TEXT(label, 256),
    TEXT(session, 32),
    TEXT(slurm_job, 128),
    TEXT(slurm_step, 128),
    TEXT(k8s_pod, 256),
    TEXT(k8s_namespace, 256),
    TEXT(hostname, 256),
    {"cupti_path", offsetof(struct occ_run, cupti.path), 4096},
    {"cupti_note", offsetof(struct occ_run, cupti.note), 256},
};
#define N_TEXTS (sizeof texts / sizeof *texts)

static const char **member(struct occ_run *row, const struct text *text)
{
    return (const char **)(void *)((char *)row + text->offset);
}

int occ_run_texts_set(struct occ_run *row, const char *key, const char *value, struct occ_error *err)
{
    size_t i = 0;
    uint8_t session[16];
    char lower_case[33];
    while (i < N_TEXTS && strcmp(texts[i].key, key) != 0)
        i++;
    if (i == N_TEXTS)
        return 0;
    if (strcmp(key, "session") == 0) {
        if (!occ_hex_decode(value, session, sizeof session))
            return 0;
        occ_hex_encode(session, sizeof session, lower_case);
        value = lower_case;
    }
    char *copy = strndup(value, texts[i].max_bytes);
    if (!copy)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    occ_text_sanitise(copy);
    free((void *)(uintptr_t)*member(row, &texts[i]));
    *member(row, &texts[i]) = copy;
    return 0;
}

void occ_run_texts_free(struct occ_run *row)
{
    for (size_t i = 0; i < N_TEXTS; i++)
        free((void *)(uintptr_t)*member(row, &texts[i]));
    free((void *)(uintptr_t)row->user);
    free((void *)(uintptr_t)row->container);
}
