/* Verdicts on groups of kernels in words: the total, layers, families, kernels (compare/levels.h). One
 * thread. */
#pragma once

#include "report.h"

/* A group as a row. Texts are safe to print. */
struct diff_group_line {
    const struct diff_group *group;
    const char *level, *verdict;
    char name[512];      /* the path of the layer, the family, the kernel's short name */
    const char *mangled; /* mangled name of a kernel; NULL: the group is no kernel */
    double change, low, high;
    double to_control, to_control_low, to_control_high;
    double share, q;
    uint32_t configurations, layers; /* layers: number folded into the group; 0: not a layer */
    uint64_t launches[DIFF_SIDES], total_ns[DIFF_SIDES];
    bool is_repeated; /* an earlier line has the same launches and verdict */
};

/* Makes an array of report->levels.n lines; the caller frees it. NULL: no memory. */
struct diff_group_line *diff_make_group_lines(const struct diff_report *report);

/* True for the total, and for a group that has changed unless an earlier line says the same. */
bool diff_group_matters(const struct diff_group_line *line);
/* "FASTER" */
const char *diff_group_word(enum diff_verdict verdict);
/* Formats "in layer Net/Linear". */
enum { DIFF_PLACE_BYTES = 640, DIFF_GROUP_BYTES = 1024 };
const char *diff_group_place(const struct diff_group_line *line, char place[DIFF_PLACE_BYTES]);
/* Formats "-20.0% (95 %: -20.2% to -19.8%) within these runs; 10 configurations, ...". */
const char *diff_group_text(const struct diff_report *report, const struct diff_group_line *line,
                            char text[DIFF_GROUP_BYTES]);
/* Formats the sentence about all other kernels; "": nothing changed, or they are too few. */
const char *diff_control_text(const struct diff_report *report, char text[DIFF_GROUP_BYTES]);
/* Formats the sentence about kernels without a verdict; "": no kernel could be pooled. */
const char *diff_undecided_text(const struct diff_report *report, const struct diff_group_line *lines,
                                char text[DIFF_GROUP_BYTES]);

/* True for a row to print without --rows: a slower or faster pair; and of the pairs with min_share of the
 * time those that are new or gone, whose launch configuration differs, or that are undecided while the
 * verdicts on the kernel and on its family explain nothing. */
bool diff_row_matters(const struct diff_report *report, const struct diff_pair *pair);

/* Formats the reason why a pair has changed although its kernel is the same, or has no verdict since its
 * launches do other work; "": no such case. */
enum { DIFF_REASON_BYTES = 160 };
const char *diff_row_reason(const struct diff_report *report, const struct diff_pair *pair,
                            char text[DIFF_REASON_BYTES]);

/* Writes the members "verdicts", "layers" and "control". */
void diff_verdicts_json(struct occ_json *json, const struct diff_report *report,
                        const struct diff_group_line *lines);
