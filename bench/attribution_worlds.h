/* The worlds of bench_attribution, by name. */
#pragma once

#include "attribution_judge.h"

enum worlds_kind {
    WORLDS_ORDINARY,  /* one process, records complete: all figures */
    WORLDS_COLLINEAR, /* the same, but collinear launches: all figures except the share of launch time with a
                         value */
    WORLDS_CHANGING,  /* the same, but changing occupancy: only the history's intervals */
    WORLDS_HARD /* untraced work, time slices, neighbours, lost records, too little time: intervals only */
};

struct worlds_entry {
    const char *name;
    enum worlds_kind kind;
    bool quick; /* part of --quick */
    struct world_options world;
    struct judge_options judge; /* `seconds` is the world's */
    double memory_mib;          /* maximum */
};

size_t worlds_count(void);
/* recordings: the directory of *.timeline. */
struct worlds_entry worlds_get(size_t i, const char *recordings, char *path, size_t path_size);
