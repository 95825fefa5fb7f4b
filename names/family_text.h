/* Families in words, and tiles, from the parts of a kernel's name. Internal to names/. Pure; any thread. */
#pragma once

#include "owner_rules.h"

struct occ_span {
    const char *begin;
    size_t n;
};

/* The parts of "void ns::f<4, F>(F)": scope "ns::", base "f", arguments "4, F" (empty: none), name: all. */
struct occ_name_parts {
    struct occ_span scope, base, arguments, name;
};

/* Puts a text, cut with an ellipsis at a whole character. */
void occ_family_put(char family[OCC_FAMILY_BYTES], struct occ_span text);

/* Bytes of a signature that Triton 2 puts behind a name, "_0d1d23de": the numbers of the arguments, with d
 * for divisible by 16, c for constant, e for both. 0: none. */
size_t occ_family_signature_bytes(struct occ_span base);

/* Follows the rule; NULL: the base in words ("max_unpooling2d_forward_kernel": "max unpooling2d forward").
 * "": the base has no words. */
void occ_family_text(const struct occ_name_parts *parts, const struct occ_family_rule *rule,
                     char family[OCC_FAMILY_BYTES]);

/* Sets tile, layout, alignment, stages and architecture from the words between underscores. */
void occ_family_details(struct occ_span text, struct occ_kernel_owner *owner);
