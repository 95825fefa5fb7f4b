/* The records that ranges.c sorts, and their orders. Records are zeroed before their members are set, because
 * their bytes are kept in files. Internal to import/. Stateless. */
#pragma once

#include "sink.h"

/* The begin of a range, a call, or the creation of a graph's node. */
struct event {
    int64_t process, thread, start_ns, end_ns;
    int64_t sequence; /* sequence number of a range */
    struct occ_import_origin origin;
    uint32_t order; /* order in the file */
    uint16_t name;
    bool is_call, is_autograd;
};

/* An operator of the forward pass or, is_backward, a call of the backward pass. */
struct link {
    int64_t process, sequence, start_ns, thread;
    struct occ_import_origin origin;
    uint32_t place;
    bool is_backward;
};

/* A call with its place, or a launch with its number. */
struct end {
    struct occ_import_origin origin;
    uint64_t launch;
    uint32_t place;
    bool is_launch;
};

struct placed {
    uint64_t launch;
    uint32_t place;
};

/* Orders by thread and time, a range before its contents. */
int occ_compare_events(const void *left, const void *right);
/* Orders by sequence number and time. */
int occ_compare_links(const void *left, const void *right);
int occ_compare_origins(const struct occ_import_origin *a, const struct occ_import_origin *b);
/* Orders by origin, calls before launches. */
int occ_compare_ends(const void *left, const void *right);
int occ_compare_placed(const void *left, const void *right);
