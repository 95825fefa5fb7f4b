/* Families in words, and tiles, from the parts of a kernel's name. Internal to names/. Pure; any thread. */
#pragma once

#include "owner_rules.h"

/* A part of a name, which owns the text. */
struct occ_span {
    const char *begin; /* not terminated */
    size_t n;
};

/* The parts of "void ns::f<4, F>(F)": scope "ns::", base "f", arguments "4, F" (empty: none), name: all. */
struct occ_name_parts {
    struct occ_span scope, base, arguments, name;
};

/* Copies a text; a text that is too long is cut at a whole character and ends with an ellipsis. */
void occ_family_put(char family[OCC_FAMILY_BYTES], struct occ_span text);

/* Returns the length of the signature that Triton 2 puts behind a name, "_0d1d23de": the numbers of the
 * arguments, with d for divisible by 16, c for constant, e for both. 0: none. */
size_t occ_family_signature_bytes(struct occ_span base);

/* Writes the family by the rule; `rule` NULL: the base in words ("max unpooling2d forward" for
 * "max_unpooling2d_forward_kernel"), or "" for a base without words. */
void occ_family_text(const struct occ_name_parts *parts, const struct occ_family_rule *rule,
                     char family[OCC_FAMILY_BYTES]);

/* Sets tile, layout, alignment, stages and architecture from the words of `text`, which other characters than
 * letters and digits separate. Members without a word stay as they are. */
void occ_family_details(struct occ_span text, struct occ_kernel_owner *owner);
