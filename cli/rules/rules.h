/*
 * The rules file of occq check: rules for a run, and exceptions to them. docs/occq-rules.yaml is an example
 * with every key.
 *
 * Errors are OCC_E_INVALID: "FILE:LINE:COLUMN: MISTAKE". One thread.
 */
#pragma once

#include "cli/sides/report.h"
#include "support/map.h"

enum { RULES_MAX = 256, RULE_CONDITIONS = 8, RULE_TEXT_BYTES = 256 };

/* Numbers of a launch configuration that are the same in every run. X(key, word, value of row) */
#define RULE_MODEL(value) (row->analysed ? (double)(value) : (double)NAN)
#define RULE_NUMBERS(X)                                                                                      \
    DIFF_FIELDS(X)                                                                                           \
    X(theoretical, "theoretical", RULE_MODEL(row->result.theoretical))                                       \
    X(expected_elapsed_low, "expected elapsed, low end", RULE_MODEL(row->result.expected_elapsed_low))       \
    X(expected_elapsed_high, "expected elapsed, high end", RULE_MODEL(row->result.expected_elapsed_high))    \
    X(waves, "waves", RULE_MODEL(row->result.waves))                                                         \
    X(limited_by_registers, "limited by registers",                                                          \
      RULE_MODEL(row->result.limiters >> OCC_LIMIT_REGISTERS & 1))                                           \
    X(limited_by_shared_memory, "limited by shared memory",                                                  \
      RULE_MODEL(row->result.limiters >> OCC_LIMIT_SMEM & 1))                                                \
    X(limited_by_blocks, "limited by blocks per SM", RULE_MODEL(row->result.limiters >> OCC_LIMIT_BLOCKS & 1))
#define RULE_NUMBER_ENUMERATOR(key, word, value) RULE_NUMBER_##key,
enum rule_number { RULE_NUMBERS(RULE_NUMBER_ENUMERATOR) RULE_NUMBER_COUNT };
/* Returns the configuration's number; NaN: unknown. */
double rule_number_of(enum rule_number number, const struct occ_config_row *row);
const char *rule_number_word(enum rule_number number);

/* `config`: needs one launch. `measured`: needs a baseline and a verdict. `allow`: an exception. */
#define RULE_CLASSES(X)                   X(CONFIG, "config") X(MEASURED, "measured") X(ALLOW, "allow")
#define RULE_CLASS_ENUMERATOR(name, word) RULE_##name,
enum rule_class { RULE_CLASSES(RULE_CLASS_ENUMERATOR) RULE_CLASS_COUNT };

/* Metrics of measured rules: the metrics of a comparison's rows, and the GPU time. */
#define RULE_METRICS(X)                    DIFF_METRICS(X) X(GPU_TIME, "gpu_time")
#define RULE_METRIC_ENUMERATOR(name, word) RULE_METRIC_##name,
enum rule_metric { RULE_METRICS(RULE_METRIC_ENUMERATOR) RULE_METRIC_COUNT };

/* "theoretical: >= 25%" */
struct rule_condition {
    enum rule_number number;
    size_t comparison;
    bool of_baseline; /* compares with the baseline's number instead of `value` */
    double value;
    char text[64]; /* ">= 25%" */
};
bool rule_condition_holds(const struct rule_condition *condition, double number, double of_baseline);

struct rule {
    enum rule_class class;
    size_t line, column;
    char name[RULE_TEXT_BYTES];
    char *kernel;           /* a name or an expression, like --kernel; NULL: every kernel */
    struct occ_map kernels; /* ids of the chosen kernels: rules_choose_kernels() */
    double min_time;        /* applies to kernels with at least this share of the time */
    bool optional;          /* true: may match no kernel */
    struct rule_condition conditions[RULE_CONDITIONS]; /* config */
    size_t n_conditions;
    enum rule_metric metric;      /* measured */
    double floor;                 /* measured; NaN: default */
    char reason[RULE_TEXT_BYTES]; /* allow */
    int64_t until_ns;             /* allow: last valid time; 0: never set */
};

struct rules {
    struct rule *all;
    size_t n, allocated;
};

int rules_parse(const char *name, const char *text, size_t length, struct rules *ret_rules,
                struct occ_error *err);
int rules_load(const char *path, struct rules *ret_rules, struct occ_error *err);
void rules_free(struct rules *rules);

/* Finds each rule's kernels in the checked history. `file` is the path of the rules. Returns OCC_E_USAGE if
 * the text is neither a name nor an expression: "FILE:LINE:COLUMN: kernel: REASON". */
int rules_choose_kernels(struct rules *rules, const char *file, struct occ_store *store,
                         struct occ_error *err);

/* Returns true if the rule covers this kernel of the checked history. */
bool rule_matches(const struct rule *rule, int64_t kernel);
