/*
 * What CUPTI calls: buffer requested (in a thread of the program's, inside a launch) and buffer completed (in
 * CUPTI's worker, or inside our own flush). Neither allocates, logs, waits or changes errno.
 */
#ifndef OCC_INJECTOR_CALLBACKS_H
#define OCC_INJECTOR_CALLBACKS_H

#include "cupti/activity_abi.h"

occ_cupti_buffer_requested occ_callback_requested;
occ_cupti_buffer_completed occ_callback_completed;

#endif
