/*
 * The build gate: resources of kernels in two builds, and the effect of a difference on blocks per SM. Needs
 * no GPU. A history tells the launches of a kernel and its share of the GPU time; without it, launches come
 * from the lock file, from launch bounds, or are of 128, 256, 512 and 1024 threads.
 *
 * One thread.
 */
#pragma once

#include "cli/history/history.h"
#include "compare/pins.h"
#include "occupancy/predict.h"

/* ---- a build (build.c) ---- */

struct gate_build {
    struct pins pins; /* sorted, with demangled names */
    size_t unread;    /* cubins that this reader does not know */
    char unread_why[160];
    size_t repeated;   /* kernels with several versions of one name and architecture */
    bool has_unlinked; /* some are not linked yet: the linker may raise registers and stack */
};

/* Reads compiled code, or the output of "ptxas -v", told apart by the first bytes. `path` "-": standard
 * input. OCC_E_NOT_FOUND: there is no kernel in it. */
int gate_read(const char *path, struct gate_build *ret_build, struct occ_error *err);
void gate_build_free(struct gate_build *build);
/* Prints notes about parts that were not read, not linked or ambiguous. */
void gate_note_build(const struct cli_command *command, const char *path, const struct gate_build *build);

/* Sets the demangled names of pins. */
int gate_name_pins(struct pins *pins, struct occ_error *err);

/* The architectures of a build. */
enum { GATE_MAX_SM = 1000 };
struct gate_architectures {
    bool has[GATE_MAX_SM * 3]; /* without suffix, with 'a', with 'f' */
};
void gate_list_architectures(const struct pins *pins, struct gate_architectures *ret_architectures);
bool gate_has_architecture(const struct gate_architectures *architectures, const struct pin *pin);
/* Formats "sm_80, sm_90a", ascending. Returns `text`. */
const char *gate_architectures_text(const struct gate_architectures *architectures, char *text, size_t size);

/* ---- recorded launches (recorded_launches.c) ---- */

struct gate_recorded {
    struct occ_store *store;
    struct occ_config_rows rows;
    struct occ_map first; /* hash of a demangled name -> its first row */
    uint64_t all_ns;      /* GPU time of all kernels in the period */
    const char *period;   /* "of the last 30 days" */
};

/* Reads the launch configurations of the period: the last 30 days unless the arguments choose one, and all of
 * the history if they have no launch. No rows: there is no history, and none is asked for. */
int gate_recorded_read(const struct history_args *args, struct gate_recorded *ret_recorded,
                       struct occ_error *err);
void gate_recorded_free(struct gate_recorded *recorded);
/* Returns the first row of the kernel `name`, a demangled name, and the number of rows. NULL: none. */
const struct occ_config_row *gate_rows_of(const struct gate_recorded *recorded, const char *name,
                                          size_t *ret_n);
/* Returns the dynamic shared memory of a recorded launch of the pin's kernel. Recordings of other tools may
 * have the sum of static and dynamic memory there. */
uint32_t gate_dynamic_bytes(const struct occ_config_row *row, const struct pin *pin);
/* Adds the recorded block sizes of the build's kernels to `pins`, as launch statements. */
int gate_take_launches(const struct gate_recorded *recorded, const struct pins *build, struct pins *pins,
                       struct occ_error *err);

/* ---- the effect of a difference (effect.c) ---- */

/* The sources of compared launches. X(NAME, word) */
#define GATE_SOURCES(X)                                                                                      \
    X(RECORDED, "history")                                                                                   \
    X(STATED, "lock")                                                                                        \
    X(BOUNDS, "bounds")                                                                                      \
    X(ASSUMED, "assumed")
#define GATE_SOURCE_ENUMERATOR(name, word) GATE_##name,
enum gate_source { GATE_SOURCES(GATE_SOURCE_ENUMERATOR) GATE_SOURCE_COUNT };
const char *gate_source_word(enum gate_source source);

/* Blocks per SM before and after, in the compared launches of a kernel; of recorded launches at most as many
 * as the grid has. */
struct gate_effect {
    bool is_known; /* false: nothing was compared, and the rest is 0 */
    enum gate_source source;
    uint32_t compared, fewer, more; /* launches: with fewer and with more blocks per SM */
    /* the launch with the largest loss, else the largest gain; of recorded ones with most time */
    uint32_t threads, dynamic_bytes, blocks_before, blocks_after; /* 0 blocks: the launch is impossible */
    uint32_t largest_block; /* threads of the largest recorded or stated launch; 0: not known */
    /* recorded launches with other blocks per SM, or other spills */
    uint32_t changed;
    uint64_t changed_ns;
    double share;            /* of the GPU time in the period; NaN: nothing is recorded */
    double ratio, low, high; /* predicted time after / before; NaN: no prediction */
};

struct gate_terms {
    const struct pin_pairs *pairs;
    const struct pins *lock; /* has launch statements; NULL: none */
    const struct gate_recorded *recorded;
};
/* Computes the effect of pair `index`, which has both sides. */
void gate_effect_of(const struct gate_terms *terms, size_t index, struct gate_effect *ret_effect);

/* ---- words (text.c) ---- */

/* Formats the function's name with its template arguments: "gemm<64, 64>". Returns `text`. */
#define GATE_NAME_BYTES 160
const char *gate_short_name(const struct pin *pin, char text[GATE_NAME_BYTES]);

/* Formats "registers 92 -> 102, stack 0 -> 16"; "": no difference. Returns `text`. */
#define GATE_TEXT_BYTES 320
const char *gate_change_text(const struct pin *before, const struct pin *after, char text[GATE_TEXT_BYTES]);
/* Formats "+4% (-2 to +11%)", the predicted change of the time with its 80 % interval; "measure it": the sign
 * is not known. Returns `text`. */
const char *gate_prediction_text(const struct gate_effect *effect, char *text, size_t size);
/* Formats "5 -> 4 blocks per SM at 256 threads; in 3 of 41 recorded configurations, 3.1% of the GPU time of
 * the last 30 days, predicted time: +4% (-2 to +11%)"; "": no effect. Returns `text`. */
const char *gate_effect_text(const struct gate_effect *effect, const char *period,
                             char text[GATE_TEXT_BYTES]);
