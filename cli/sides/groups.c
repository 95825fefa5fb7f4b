/* See groups.h. */
#include "groups.h"

#include <string.h>

#include "explain/layers.h"
#include "names/owners.h"

const char *side_layer(const char *range, const char *phase, struct occ_arena *texts)
{
    if (!range)
        return NULL;
    size_t phase_bytes = phase ? strlen(phase) + 3 : 0, n = 0;
    char *layer = occ_arena_bytes(texts, strlen(range) + phase_bytes + 1);
    for (const char *name = range; layer && *name;) {
        size_t bytes = strcspn(name, "/");
        if (n > 0 && memmem(name, bytes, "::", 2))
            break;
        if (n > 0)
            layer[n++] = '/';
        size_t kept = occ_layer_name_bytes(name, bytes);
        memcpy(layer + n, name, kept);
        n += kept;
        name += bytes + (name[bytes] == '/');
    }
    if (layer && phase) {
        memcpy(layer + n, " (", 2);
        memcpy(layer + n + 2, phase, phase_bytes - 3);
        layer[n + phase_bytes - 1] = ')';
    }
    return layer;
}

const char *side_family(const char *demangled, struct occ_arena *texts)
{
    struct occ_kernel_owner owner;
    occ_kernel_owner(demangled, &owner);
    return occ_arena_copy(texts, owner.family);
}
