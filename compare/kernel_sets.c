/* See kernel_sets.h. */
#include "kernel_sets.h"

#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"

/* Text of a set with several kernels, as it is written. Items are sorted by name. */
struct set {
    const char *last;   /* newest name of the set */
    size_t bytes, used; /* bytes: of all names, each with an end */
    size_t at;          /* begin of its text */
};

static struct set *set_of(struct set *sets, const struct diff_item *item)
{
    return &sets[(size_t)item->pair * DIFF_SIDES + item->side];
}

/* Returns whether the name is a new one of its set. Names that are equal follow each other. */
static bool is_next(struct set *set, const struct diff_item *item)
{
    bool is_new = !set->last || strcmp(set->last, item->row->mangled) != 0;
    set->last = item->row->mangled;
    return is_new;
}

/* Returns the size of all texts. */
static size_t place_texts(const struct diff *diff, struct set *sets)
{
    size_t size = 0;
    for (uint32_t i = 0; i < diff->n_items; i++) {
        struct set *set = set_of(sets, &diff->items[i]);
        if (is_next(set, &diff->items[i]))
            set->bytes += strlen(diff->items[i].row->mangled) + 1;
    }
    for (uint32_t i = 0; i < diff->n_pairs; i++)
        for (uint32_t side = 0; side < DIFF_SIDES; side++) {
            struct set *set = &sets[(size_t)i * DIFF_SIDES + side];
            set->at = size;
            set->last = NULL;
            size += diff->pairs[i].kernels[side] > 1 ? set->bytes : 0;
        }
    return size;
}

static void write_names(const struct diff *diff, struct set *sets, struct diff_kernel_sets *ret)
{
    for (uint32_t i = 0; i < diff->n_items; i++) {
        const struct diff_item *item = &diff->items[i];
        const char *name = item->row->mangled;
        struct set *set = set_of(sets, item);
        if (!is_next(set, item))
            continue;
        if (diff->pairs[item->pair].kernels[item->side] == 1) {
            ret->of[item->side][item->pair] = name;
            continue;
        }
        char *text = ret->texts + set->at;
        size_t length = strlen(name);
        if (set->used > 0)
            text[set->used - 1] = '\n';
        memcpy(text + set->used, name, length + 1);
        set->used += length + 1;
        ret->of[item->side][item->pair] = text;
    }
}

int diff_kernel_sets_make(const struct diff *diff, struct diff_kernel_sets *ret_sets, struct occ_error *err)
{
    size_t n = (size_t)diff->n_pairs + 1;
    _cleanup_(occ_freep) struct set *sets = calloc(n * DIFF_SIDES, sizeof *sets);
    *ret_sets = (struct diff_kernel_sets){
        .of = {calloc(n, sizeof *ret_sets->of[DIFF_A]), calloc(n, sizeof *ret_sets->of[DIFF_B])}};
    if (!sets || !ret_sets->of[DIFF_A] || !ret_sets->of[DIFF_B])
        return occ_no_memory(err);
    ret_sets->texts = malloc(place_texts(diff, sets) + 1);
    if (!ret_sets->texts)
        return occ_no_memory(err);
    write_names(diff, sets, ret_sets);
    return 0;
}

void diff_kernel_sets_free(struct diff_kernel_sets *sets)
{
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        free(sets->of[side]);
    free(sets->texts);
    *sets = (struct diff_kernel_sets){0};
}
