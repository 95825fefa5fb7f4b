/* Tables of rules for owners.c: constants. Internal to names/. */
#pragma once

#include <stddef.h>

#include "owners.h"

/* The part of a kernel's name that a rule looks at. In "void at::native::reduce_kernel<512, F>(F)", the scope
 * is "at::native::", the base "reduce_kernel", the arguments "512, F". */
enum occ_name_part {
    OCC_PART_SCOPE_STARTS,
    OCC_PART_SCOPE_HAS,
    OCC_PART_BASE_STARTS,
    OCC_PART_BASE_IS,
    OCC_PART_BASE_HAS,
    OCC_PART_ARGUMENTS_HAVE,
    OCC_PART_NAME_HAS,
    OCC_PART_TRITON_SIGNATURE, /* no pattern: the base ends with a signature of Triton 2: "_0d1d23de" */
};

struct occ_owner_rule {
    enum occ_name_part part;
    const char *pattern;
    const char *also;     /* the base has this text too; NULL: any base */
    enum occ_owner owner; /* UNKNOWN: no owner, although the name looks like a name of a later rule */
    const char *library;  /* "": not known from the name */
    const char *family;   /* NULL: from the table of families */
    uint32_t traits;
};

/* How a family's text is made from its rule. */
enum occ_family_form {
    OCC_FORM_TEXT,      /* the rule's text alone */
    OCC_FORM_OPERATION, /* followed by the operation among the template arguments */
    OCC_FORM_REST,      /* followed by the rest of the base, without a number at its end */
    OCC_FORM_TYPE,      /* followed by the base's next word: a type */
};

struct occ_family_rule {
    enum occ_name_part part;
    const char *pattern;
    const char *family;
    enum occ_family_form form;
    uint32_t traits;
};

/* Both tables are in order of precedence: the first rule that fits counts. */
extern const struct occ_owner_rule occ_owner_rules[];
extern const size_t occ_owner_rules_count;
extern const struct occ_family_rule occ_family_rules[];
extern const size_t occ_family_rules_count;

/* Texts in names of matrix products that only kernels for tensor cores have, and texts of kernels for other
 * pipes. NULL ends each list. */
extern const char *const occ_tensor_core_words[], *const occ_other_pipe_words[];
/* Texts of kernels for tensor cores in the names of kernels that no rule knows: only texts that no ordinary
 * word has. NULL ends the list. */
extern const char *const occ_own_tensor_core_words[];
