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

/* "opened state=WORD the library's words" */
static void take_opened(const char *line, struct gpu_sampled *ret)
{
    gpu_line_word(line, "state", ret->state, sizeof ret->state);
    ret->opened = strcmp(ret->state, "ok") == 0;
    const char *why = strstr(line, ret->state);
    why = why ? strchr(why, ' ') : NULL;
    (void)snprintf(ret->why, sizeof ret->why, "%s", why ? why + 1 : "");
}

int gpu_sampled_start(struct gpu_child *child, const char *const *words, const char *const *environment,
                      void (*prepare)(const void *), const void *context, struct gpu_sampled *ret,
                      struct occ_error *err)
{
    char line[512];
    *ret = (struct gpu_sampled){
#define X(name) .name = (double)NAN,
        GPU_SAMPLED_NUMBERS(X)
#undef X
    };
    int code = gpu_child_start_beside(child, "gpu_sample", words, environment, prepare, context, err);
    if (code != 0)
        return code;
    if (gpu_child_expect(child, "opened", OPEN_S, line, sizeof line, NULL) != 0) {
        died(child, ret);
        return 0;
    }
    take_opened(line, ret);
    if (!ret->opened)
        ret->exit_code = gpu_child_wait(child, GRACE_S);
    return 0;
}

void gpu_sampled_finish(struct gpu_child *child, double seconds, struct gpu_sampled *ret)
{
    char line[1024];
    if (!ret->opened)
        return;
    if (gpu_child_expect(child, "sampled", seconds + GRACE_S, line, sizeof line, NULL) != 0) {
        died(child, ret);
        return;
    }
    gpu_line_word(line, "state", ret->state, sizeof ret->state);
#define X(name) ret->name = gpu_line_number(line, #name);
    GPU_SAMPLED_NUMBERS(X)
#undef X
    ret->exit_code = gpu_child_wait(child, GRACE_S);
    ret->ended = ret->exit_code == 0;
}

int gpu_sampled_run(const char *const *words, const char *const *environment, double seconds,
                    struct gpu_sampled *ret, struct occ_error *err)
{
    struct gpu_child child;
    int code = gpu_sampled_start(&child, words, environment, NULL, NULL, ret, err);
    if (code == 0)
        gpu_sampled_finish(&child, seconds, ret);
    return code;
}
