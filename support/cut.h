/* Names that a narrow screen cut. Pure; any thread. */
#pragma once

#include <stdbool.h>

/* The mark for a part that was left out: in UTF-8, and in other character sets. */
#define OCC_ELLIPSIS       "\xe2\x80\xa6"
#define OCC_ASCII_ELLIPSIS ".."

/* True if `name` is the parts of `cut`, in their order, with any text in place of each ellipsis. */
bool occ_text_is_cut_of(const char *cut, const char *name);
