/* What both halves of the codec of series share (series_codec.h). */
#ifndef OCC_STORE_SERIES_MODEL_H
#define OCC_STORE_SERIES_MODEL_H

#include "series_codec.h"

#define OCC_SERIES_VALUE_STEPS  50000.0 /* of 1 */
#define OCC_SERIES_RATIO_STEPS  10000.0
#define OCC_SERIES_BLOCKS_STEPS 1000.0
#define OCC_SERIES_ERROR_STEPS  8 /* an octave */
#define OCC_SERIES_ERROR_LEAST  (-20)

static const struct {
    unsigned wide, narrow;
    uint64_t wide_most; /* of every wide number */
    int chained;        /* the first wide number is a duration: starts are told from ends */
} occ_series_kinds[] = {
    [OCC_SERIES_VALUES] = {.wide = 2, .narrow = 4, .wide_most = UINT32_MAX},
    [OCC_SERIES_SAMPLES] = {.wide = 1, .narrow = 8, .wide_most = INT64_MAX, .chained = 1},
};

#endif
