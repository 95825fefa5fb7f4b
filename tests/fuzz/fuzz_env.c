/*
 * Fuzzes the guest's environment variables: every valid value is within the bounds of env.def; every other
 * one is rejected and its field keeps its value. The variables of other profilers, and the PROCESS record of
 * the whole environment, are read from the same input.
 *
 * Input: "NAME=VALUE" between zero bytes; a name of one byte selects a row of env.def.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_bytes.h"
#include "injector/coexist.h"
#include "injector/env.h"
#include "injector/process.h"

#define VARIABLES_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *variables[VARIABLES_MAX + 1]; /* in the form of environ */

static void must(bool good)
{
    if (!good)
        abort();
}

static char *get(const char *name)
{
    size_t n = strlen(name);
    for (char **v = variables; *v; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
            return *v + n + 1;
    return NULL;
}

static size_t rows(void)
{
    size_t n = 0;
    while (occ_env_name((unsigned int)n))
        n++;
    return n;
}

/* Makes the variable of a part of the input; the caller frees it. */
static char *make_variable(struct fuzz_bytes part)
{
    char *text = NULL;
    bool is_short = part.n >= 2 && part.data[1] == '=';
    const char *name = is_short ? occ_env_name((unsigned int)(part.data[0] % rows())) : "";
    size_t skip = is_short ? 1 : 0;
    must(asprintf(&text, "%s%.*s", name, (int)(part.n - skip),
                  part.n ? (const char *)part.data + skip : "") >= 0);
    return text;
}

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool is_in(uint64_t value, uint64_t min, uint64_t max)
{
    return value == 0 || (value >= min && value <= max); /* 0: not set */
}

static bool is_path(const char *text)
{
    return text[0] == '\0' || text[0] == '/';
}

static void check(const struct occ_env *env)
{
    must(is_ended(env->socket, sizeof env->socket) && is_path(env->socket));
    must(is_ended(env->cupti, sizeof env->cupti) && is_path(env->cupti));
    must(is_ended(env->label, sizeof env->label));
    must(is_ended(env->session, sizeof env->session) && strlen(env->session) % 32 == 0);
    must(is_ended(env->log, sizeof env->log) && (is_path(env->log) || strcmp(env->log, "stderr") == 0));
    must(is_in(env->budget, 1, 1000000) && is_in(env->delay_ms, 0, OCC_ENV_MAX_MS));
    must(is_in(env->duration_ms, 1, OCC_ENV_MAX_MS) && is_in(env->launches, 1, INT64_MAX));
    must(env->ring_slots >= OCC_RING_MIN_SLOTS && env->ring_slots <= OCC_RING_MAX_SLOTS);
    must((env->ring_slots & (env->ring_slots - 1)) == 0 &&
         (env->buffer_bytes & (env->buffer_bytes - 1)) == 0);
    must(env->buffers >= 2 && env->buffers <= OCC_POOL_MAX_BUFFERS);
    must(env->buffer_bytes >= 16384 && env->buffer_bytes <= 16777216);
}

static void read_environment(void)
{
    static struct occ_env env, again;
    static struct occ_ring_producer ring;
    static bool has_ring;
    char reason[240] = "";
    occ_env_read(&env, get);
    check(&env);
    bool yields = occ_coexist_must_yield(variables, reason, sizeof reason);
    must(is_ended(reason, sizeof reason) && yields == (reason[0] != '\0'));
    if (!has_ring)
        must(occ_ring_create(&ring, OCC_RING_MIN_SLOTS, 1u << 16) == 0);
    has_ring = occ_process_log(&ring, &env, get); /* the log is full: make a new ring for the next input */
    if (!has_ring)
        occ_ring_close(&ring);
    occ_env_read(&again, get);
    must(memcmp(&env, &again, sizeof env) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes input = {data, size};
    size_t n = 0;
    while (n < VARIABLES_MAX && input.n > 0)
        variables[n++] = make_variable(fuzz_part(&input));
    variables[n] = NULL;
    read_environment();
    while (n > 0)
        free(variables[--n]);
    return 0;
}
