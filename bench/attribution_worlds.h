/* The worlds that bench_attribution judges in, by name. */
#pragma once

#include "attribution_judge.h"

enum worlds_kind {
    WORLDS_ORDINARY,  /* one process, records complete: all figures */
    WORLDS_COLLINEAR, /* the same, but what runs cannot be told apart: not the share that has a value */
    WORLDS_CHANGING, /* the same, but the occupancy of configurations changes: the history's intervals only */
    WORLDS_HARD      /* untraced work, slices, neighbours, lost records, too little time: intervals only */
};

struct worlds_entry {
    const char *name;
    enum worlds_kind kind;
    bool quick; /* part of --quick */
    struct world_options world;
    struct judge_options judge; /* seconds: set from the world's */
    double memory_mib;          /* at most */
};

size_t worlds_count(void);
/* recordings: the directory of *.timeline. */
struct worlds_entry worlds_get(size_t i, const char *recordings, char *path, size_t path_size);
