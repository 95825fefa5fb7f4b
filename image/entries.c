/* The list of a file's entries. Pure apart from malloc; any thread. */
#include "entries.h"

#include <stdlib.h>

#include "fail.h"

int occ_image_list_add(struct occ_image_list *list, const struct found *found, struct occ_image_error *err)
{
    if (list->count == OCC_IMAGE_MAX_ENTRIES)
        return occ_image_fail(err, OCC_IMAGE_E_FULL, "more than %u images", OCC_IMAGE_MAX_ENTRIES);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        struct found *more = realloc(list->found, capacity * sizeof *more);
        if (!more)
            return occ_image_fail(err, OCC_IMAGE_E_NO_MEMORY, "no memory for %zu entries", capacity);
        list->found = more;
        list->capacity = capacity;
    }
    list->found[list->count++] = *found;
    return 0;
}

void occ_image_list_free(struct occ_image_list *list)
{
    if (!list)
        return;
    free(list->found);
    free(list);
}

size_t occ_image_list_count(const struct occ_image_list *list)
{
    return list->count;
}

const struct occ_image_entry *occ_image_list_entry(const struct occ_image_list *list, size_t index)
{
    return index < list->count ? &list->found[index].entry : NULL;
}
