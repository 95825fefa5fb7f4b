/* See uses.h. */
#include "uses.h"

#include <stdlib.h>

#include "support/array.h"

/* Ends all GPUs of a run: the GPU time of each last launch ends with the last end. */
static void end_run(struct side_uses *side)
{
    for (size_t i = 0; i < side->n; i++)
        diff_uses_add(side->uses, side->side, side->last[i].slice, side->last[i].pair,
                      (double)(side->last[i].end_ns - side->last[i].start_ns));
    side->n = 0;
}

bool side_uses_add(struct side_uses *side, uint32_t run, const struct side_use *launch)
{
    size_t i = 0;
    if (run != side->run)
        end_run(side);
    side->run = run;
    while (i < side->n && side->last[i].device != launch->device)
        i++;
    if (i == side->n) {
        if (!occ_grow((void **)&side->last, &side->allocated, side->n, UINT32_MAX, sizeof *side->last))
            return false;
        side->last[side->n++] = *launch;
    } else {
        struct side_use *last = &side->last[i];
        int64_t end_ns = last->end_ns > launch->end_ns ? last->end_ns : launch->end_ns;
        diff_uses_add(side->uses, side->side, last->slice, last->pair,
                      (double)(launch->start_ns - last->start_ns));
        *last = *launch;
        last->end_ns = end_ns;
    }
    side->last[i].slice = diff_uses_next(side->uses, side->side);
    return true;
}

void side_uses_end(struct side_uses *side)
{
    end_run(side);
    free(side->last);
}
