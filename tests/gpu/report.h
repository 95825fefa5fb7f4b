/*
 * What an experiment has to say, from C; experiments in shell say it with report.sh. Lines go to the file
 * that OCC_GPU_REPORT names (one fact a line, fields divided by tabs; scripts/gpu-report makes text and JSON
 * of them) and, for whoever runs an experiment alone, to stdout:
 *
 *   expected TEXT | value NAME NUMBER UNIT | text NAME TEXT | verdict WORD | decision TEXT | skipped TEXT
 *
 * Exit codes: what gpu_report_decide() and gpu_report_skip() return (0 and 77); anything else is a failure.
 * One thread.
 */
#pragma once

#include <stdbool.h>

/* X(NAME, word): what became of the expectation. */
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

/* What follows for the project from each verdict. */
struct gpu_decisions {
    const char *of[GPU_VERDICT_COUNT];
};

/* True: the short form (OCC_GPU_QUICK is set). */
bool gpu_report_quick(void);

void gpu_report_expect(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Not measured: NaN, which becomes null. `unit` "" for plain numbers. */
void gpu_report_value(const char *name, double value, const char *unit);
void gpu_report_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last word: the decision for that verdict, then the figures that it rests on ("" for none). Returns the
 * exit code, 0. */
int gpu_report_decide(enum gpu_verdict verdict, const struct gpu_decisions *decisions, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/* The experiment cannot do its job here. Returns the exit code, 77. */
int gpu_report_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
