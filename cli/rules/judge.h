/* Applies rules to a comparison. One thread. */
#pragma once

#include "rules.h"

/* X(NAME, word) */
#define RULE_STATES(X)                                                                                       \
    X(HOLDS, "holds")                                                                                        \
    X(FAILS, "fails")                                                                                        \
    X(UNDECIDED, "undecided")                                                                                \
    X(NOT_JUDGED, "not judged")                                                                              \
    X(SKIPPED, "skipped")
#define RULE_STATE_ENUMERATOR(name, word) RULE_##name,
enum rule_state { RULE_STATES(RULE_STATE_ENUMERATOR) RULE_STATE_COUNT };

/* A kernel or a group of kernels that breaks a rule, or an undecided change. */
struct finding {
    double share;       /* share of the checked side's time */
    const char *kernel; /* demangled; of a group its name */
    int64_t kernel_id;  /* 0: of a build, not of a history, or a group */
    size_t line;        /* of the kernel, in the file of the rules; 0: the rule's line */
    char text[640];     /* safe to print: "gemm: registers 96 is not <= 64" */
};
enum { UNDECIDED_SHOWN = 3 };

struct rule_result {
    const struct rule *rule;
    enum rule_state state;
    /* launch configurations; of measured rules kernels, and launch configurations of kernels without a
     * verdict */
    size_t judged, allowed, undecided;
    size_t of_other_work;     /* of the undecided: pairs with incomparable launches */
    size_t without_baseline;  /* the same, for kernels only in the checked side: not judged */
    struct finding *findings; /* by share, largest first */
    size_t n_findings, allocated;
    struct finding open[UNDECIDED_SHOWN]; /* the undecided changes that move most time, largest first */
    double moved[UNDECIDED_SHOWN];        /* |change| x share of each */
    size_t n_open;
    char reason[160]; /* reason of the state; "": none */
};

struct judgement {
    const char *file;            /* path of the rules file; NULL: the rules are built in */
    struct rule_result *results; /* one per rule, without exceptions */
    size_t n;
    size_t count[RULE_STATE_COUNT];
    bool has_new; /* true if a rule has kernels without a baseline */
};

struct judge_terms {
    const struct diff *diff;
    const struct rules *rules;
    const struct sides_gpu_time *gpu_time;
    const char *no_baseline; /* reason why measured rules cannot be judged; NULL: they can */
    bool one_run;            /* a side has fewer than three runs: measured rules need a floor */
    int64_t now_ns;          /* exceptions that end before this time do not count */
};
int judge(const struct judge_terms *terms, struct judgement *ret_judgement, struct occ_error *err);
void judgement_free(struct judgement *judgement);
/* Adds a copy of a finding, with its text: "SHORT_NAME: TEXT", safe to print. */
int judgement_add_finding(struct rule_result *result, const struct finding *finding, const char *short_name,
                          const char *text, struct occ_error *err);
/* Sets the finding's text: "SHORT_NAME: TEXT", safe to print. */
void judgement_set_text(struct finding *finding, const char *short_name, const char *text);
/* For qsort(): the largest share first, then by text. */
int finding_by_share(const void *left, const void *right);

const char *rule_state_word(enum rule_state state);
