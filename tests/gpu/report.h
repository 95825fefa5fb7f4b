/*
 * Reports of experiments in C; experiments in shell use report.sh. Lines go to the file of OCC_GPU_REPORT
 * (one fact per line, fields separated by tabs; scripts/gpu-report makes text and JSON) and to stdout, for
 * manual runs:
 *
 *   expected TEXT | value NAME NUMBER UNIT | text NAME TEXT | verdict WORD | decision TEXT | skipped TEXT
 *
 * Exit codes: the results of gpu_report_decide() and gpu_report_skip() (0 and 77); others are failures.
 * One thread.
 */
#pragma once

#include <stdbool.h>

/* X(NAME, word): verdicts on the expectation. */
#define GPU_VERDICTS(X)                                                                                      \
    X(CONFIRMED, "confirmed")                                                                                \
    X(REFUTED, "refuted")                                                                                    \
    X(UNCLEAR, "unclear")

enum gpu_verdict {
#define X(name, word) GPU_##name,
    GPU_VERDICTS(X)
#undef X
        GPU_VERDICT_COUNT
};

/* The project's decision for each verdict. */
struct gpu_decisions {
    const char *of[GPU_VERDICT_COUNT];
};

/* True: the short form (OCC_GPU_QUICK is set). */
bool gpu_report_quick(void);

void gpu_report_expect(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a value; NaN (not measured) becomes null. `unit` "" for plain numbers. */
void gpu_report_value(const char *name, double value, const char *unit);
void gpu_report_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports last: the decision for the verdict, then the values it is based on ("" for none). Returns the exit
 * code, 0. */
int gpu_report_decide(enum gpu_verdict verdict, const struct gpu_decisions *decisions, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/* Reports that the experiment cannot run here. Returns the exit code, 77. */
int gpu_report_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
