/* The words before the values of a status answer; see status.h. Any thread. */
#include "status.h"

#define OCC_STATUS_ROW(id, key, kind, label) key,
static const char *const keys[OCC_STATUS_COUNT] = {OCC_STATUS(OCC_STATUS_ROW)};

const char *occ_status_key(enum occ_status_value value)
{
    return keys[value];
}
