/* See sampled.h. */
#include "sampled.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPEN_S = 30, GRACE_S = 10 };

static void died(struct gpu_child *child, struct gpu_sampled *ret)
{
    (void)snprintf(ret->why, sizeof ret->why, "%s", child->last_words);
    (void)snprintf(ret->state, sizeof ret->state, GPU_SAMPLED_DIED);
    ret->exit_code = gpu_child_stop(child);
}

/* Reads "opened state=WORD MESSAGE". */
static void take_opened(const char *line, struct gpu_sampled *ret)
{
    gpu_line_word(line, "state", ret->state, sizeof ret->state);
    ret->opened = strcmp(ret->state, "ok") == 0;
    const char *why = strstr(line, ret->state);
    why = why ? strchr(why, ' ') : NULL;
    (void)snprintf(ret->why, sizeof ret->why, "%s", why ? why + 1 : "");
}

static const struct gpu_sampled nothing_seen = {
#define X(name) .name = (double)NAN,
    GPU_SAMPLED_NUMBERS(X)
#undef X
};

/* Returns false if the process died first. */
static bool wait_until_opened(struct gpu_child *child, double seconds, struct gpu_sampled *ret)
{
    char line[512];
    *ret = nothing_seen;
    if (gpu_child_expect(child, "opened", seconds, line, sizeof line, NULL) != 0) {
        died(child, ret);
        return false;
    }
    take_opened(line, ret);
    return true;
}

int gpu_sampled_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                      const struct gpu_identity *identity, struct gpu_sampled *ret, struct occ_error *err)
{
    *ret = nothing_seen;
    int code = gpu_child_start_beside(child, "gpu_sample", words, environment, identity, err);
    if (code == 0 && wait_until_opened(child, OPEN_S, ret) && !ret->opened)
        ret->exit_code = gpu_child_wait(child, GRACE_S);
    return code;
}

/* Returns false if the process died first. */
static bool wait_until_sampled(struct gpu_child *child, double seconds, struct gpu_sampled *ret)
{
    char line[1024];
    if (gpu_child_expect(child, "sampled", seconds + GRACE_S, line, sizeof line, NULL) != 0) {
        died(child, ret);
        return false;
    }
    gpu_line_word(line, "state", ret->state, sizeof ret->state);
#define X(name) ret->name = gpu_line_number(line, #name);
    GPU_SAMPLED_NUMBERS(X)
#undef X
    return true;
}

static void take_exit(struct gpu_child *child, struct gpu_sampled *ret)
{
    ret->exit_code = gpu_child_wait(child, GRACE_S);
    ret->ended = ret->exit_code == 0;
}

void gpu_sampled_finish(struct gpu_child *child, double seconds, struct gpu_sampled *ret)
{
    if (ret->opened && wait_until_sampled(child, seconds, ret))
        take_exit(child, ret);
}

void gpu_sampled_twice(struct gpu_child *child, double seconds, double pause_s, struct gpu_sampled *ret_first,
                       struct gpu_sampled *ret_again)
{
    *ret_again = nothing_seen;
    if (!ret_first->opened || !wait_until_sampled(child, seconds, ret_first))
        return;
    ret_first->ended = strcmp(ret_first->state, "ok") == 0;
    if (!wait_until_opened(child, pause_s + OPEN_S, ret_again))
        return;
    if (!ret_again->opened)
        ret_again->exit_code = gpu_child_wait(child, GRACE_S);
    else if (wait_until_sampled(child, seconds, ret_again))
        take_exit(child, ret_again);
}

int gpu_sampled_run(const char *const *words, const char *const *environment, double seconds,
                    struct gpu_sampled *ret, struct occ_error *err)
{
    struct gpu_child child;
    int code = gpu_sampled_start(&child, words, environment, NULL, ret, err);
    if (code == 0)
        gpu_sampled_finish(&child, seconds, ret);
    return code;
}
