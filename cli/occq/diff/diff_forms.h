/* Prints the answer of `occq diff` for people: as text, and as Markdown for a review. One thread (stdio). */
#pragma once

#include "cli/history/history.h"
#include "cli/sides/verdicts.h"
#include "cli/stream.h"

int diff_print_text(const struct diff_report *report, const struct diff_line *lines, struct occ_error *err);
int diff_print_markdown(const struct diff_report *report, const struct diff_line *lines,
                        struct occ_error *err);

/* Prints a code span. No text can end it early, even within a table. */
void diff_markdown_code(FILE *out, const char *text);

struct diff_args {
    struct history_args history;
    double floor, min_share;
    bool force, markdown, rows;
    const char *by; /* "layer"; NULL: kernels */
};
typedef int diff_printer(const struct cli_command *command, const struct diff_args *args,
                         const struct diff_report *report, const struct diff_line *lines,
                         struct occ_error *err);
/* Compares the sides and prints the answer. Returns the exit status. */
int diff_run(const struct cli_command *command, const struct diff_args *args, diff_printer *print);

/* One of many owners; its name is printed above an answer, after an empty line unless it is the first. */
struct diff_owner {
    const char *name;
    bool is_first;
};
/* The same for the history of an owner; NULL: of no owner. A label that the owner lacks is no wrong usage. */
int diff_run_of(const struct cli_command *command, const struct diff_args *args, diff_printer *print,
                const struct diff_owner *owner);
/* The same for all owners: prints an answer for each that has both sides. */
int diff_run_owners(const struct cli_command *command, const struct diff_args *args,
                    const struct cli_owners *owners, diff_printer *print);
/* Checks the options of all forms. */
int diff_check(struct diff_args *args, struct occ_error *err);
void diff_print_json(const struct diff_report *report, const struct diff_line *lines);
/* Prints the two sides, and how many runs or blocks the verdicts rest on. */
void diff_print_heading(const struct diff_report *report);
/* Prints the verdict on the GPU time; nothing if it is not known. */
void diff_print_gpu_time(const struct diff_report *report);
/* Prints the sentences about all other kernels and about kernels without a verdict. */
void diff_print_others(const struct diff_report *report, const struct diff_group_line *groups);

extern const char *const diff_by_words[];
#define DIFF_OPTION_BY                                                                                       \
    CLI_OPTION(0, "by", CLI_WORD, struct diff_args, by, "WHAT",                                              \
               "kernel (default) or layer (the ranges as a tree, equal siblings in one row)",                \
               .words = diff_by_words)
#define DIFF_OPTION_ALL_USERS CLI_OPTION_OF_ALL_USERS("text, an answer for each owner who has both sides")
#define DIFF_OPTION_FLOOR                                                                                    \
    CLI_OPTION(                                                                                              \
        0, "floor", CLI_PERCENT, struct diff_args, floor, "PCT",                                             \
        "changes of up to PCT percent are none (default 5); raised to 3 times the spread of A's runs "       \
        "where there are 5 or more")
#define DIFF_OPTION_MIN_TIME                                                                                 \
    CLI_OPTION(0, "min-time", CLI_PERCENT, struct diff_args, min_share, "PCT",                               \
               "worse and better are for kernels with PCT percent of A's or B's time (default 1)")
#define DIFF_OPTION_FORCE                                                                                    \
    CLI_OPTION(0, "force", CLI_FLAG, struct diff_args, force, NULL,                                          \
               "also compare incomparable sides: other GPUs, simulated with real, --exact or ncu with "      \
               "others, runs with losses")

/* occq diff --by layer. */
extern const struct cli_command cli_diff_layers;

/* occq diff --image. */
extern const struct cli_command cli_diff_image;
