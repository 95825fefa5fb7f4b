/* Names of the kernels of a pair; see report.h. Pure. */
#include <string.h>

#include "report.h"
#include "support/text.h"

enum { NAMED_MAX = 3 };   /* kernels of a side in a row */
enum { NAME_BYTES = 40 }; /* a name of a hundred letters hides the numbers behind it in a sentence */

struct text {
    char *buffer;
    size_t size;
};

#define ADD(text, separator, ...) occ_text_append((text)->buffer, (text)->size, separator, __VA_ARGS__)

/* Returns the name, or for a sentence words in place of a long name. */
static const char *name_of(const struct diff_item *item, bool is_said)
{
    const struct occ_config_row *row = diff_config_row(item);
    bool is_long = strlen(row->kernel.short_name) > NAME_BYTES;
    return is_said && is_long && row->kernel.words ? row->kernel.words : row->kernel.short_name;
}

/* Adds the names of the pair's kernels on a side, in the order of the items. */
static void add_names(struct text *text, const struct diff *diff, const struct diff_pair *pair, uint32_t side,
                      bool is_said)
{
    uint32_t index = (uint32_t)(pair - diff->pairs), named = 0;
    const char *last = NULL;
    if (pair->kernels[side] == 1) {
        ADD(text, "", "%.200s", name_of(pair->main_item[side], is_said));
        return;
    }
    for (uint32_t i = 0; i < diff->n_items && named < NAMED_MAX; i++) {
        const struct diff_item *item = &diff->items[i];
        if (item->pair != index || item->side != side || (last && strcmp(last, item->row->mangled) == 0))
            continue;
        last = item->row->mangled;
        ADD(text, "", "%s%.75s", named++ ? " + " : "", name_of(item, is_said));
    }
    if (pair->kernels[side] > named)
        ADD(text, "", " + %u more", pair->kernels[side] - named);
}

void diff_name_kernels(const struct diff *diff, const struct diff_pair *pair, bool is_said, char *buffer,
                       size_t size)
{
    struct text *text = &(struct text){buffer, size};
    const struct diff_item *a = pair->main_item[DIFF_A], *b = pair->main_item[DIFF_B];
    bool is_same = a && b && strcmp(a->row->mangled, b->row->mangled) == 0 &&
                   pair->kernels[DIFF_A] == pair->kernels[DIFF_B];
    if (a)
        add_names(text, diff, pair, DIFF_A, is_said);
    if (a && b && !is_same)
        ADD(text, "", " -> ");
    if (b && !is_same)
        add_names(text, diff, pair, DIFF_B, is_said);
    occ_text_sanitise(text->buffer);
}
