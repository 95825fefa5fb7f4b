/* Verdicts on groups of kernels in words: the total, layers, families, kernels (compare/levels.h). One
 * thread. */
#pragma once

#include "report.h"

/* A group as a row. Texts are safe to print. */
struct diff_group_line {
    const struct diff_group *group;
    const char *level, *verdict;
    char name[512]; /* the path of the layer, the family, the kernel's short name as in struct diff_line */
    char said[512]; /* the same for sentences on a screen: words in place of a kernel's long name */
    const char *mangled[DIFF_SIDES]; /* mangled name of a kernel; NULL: the group is no kernel, or several */
    const char *basis;               /* of the change: "launch"; "work", if a part is for the same work */
    double change, low, high;
    double to_control, to_control_low, to_control_high;
    double share, q;
    uint32_t configurations, layers; /* layers: number folded into the group; 0: not a layer */
    uint64_t launches[DIFF_SIDES], total_ns[DIFF_SIDES];
    /* line of a larger group with the same verdict, whose sentence names this group; NULL: none */
    const struct diff_group_line *within;
};

/* Makes an array of report->levels.n lines; the caller frees it. NULL: no memory. */
struct diff_group_line *diff_make_group_lines(const struct diff_report *report);

/* Sets `within` of the first 32 changed lines: the largest group with the same verdict that has 90 % of the
 * line's time, too. diff_make_group_lines() calls it. */
void diff_find_within(const struct diff_report *report, struct diff_group_line *lines);

/* Returns the line to print after `line`, the first after NULL; NULL: there is none. Lines are groups that
 * have changed and are within no other, the largest change first, and the total, first if it has changed,
 * else last. */
const struct diff_group_line *diff_next_group(const struct diff_report *report,
                                              const struct diff_group_line *lines,
                                              const struct diff_group_line *line);
/* The verdict on the GPU time. */
static inline enum diff_verdict diff_gpu_time_verdict(const struct diff_report *report)
{
    return diff_judge_gpu_time(&report->gpu_time.change, report->floor).verdict;
}
#define DIFF_GPU_TIME_PLACE "in GPU time"
/* "FASTER" */
const char *diff_group_word(enum diff_verdict verdict);
/* "faster", "slower", "faster and slower", "the same" or "undecided", of the GPU time and all groups with a
 * verdict. */
const char *diff_headline(const struct diff_report *report);
/* Formats "in layer Net/Linear". */
enum { DIFF_PLACE_BYTES = 640, DIFF_GROUP_BYTES = 1536 };
const char *diff_group_place(const struct diff_group_line *line, char place[DIFF_PLACE_BYTES]);
/* Formats "-20.0% (95 %: -20.2% to -19.8%) within these runs; 10 configurations, ...", with the groups within
 * it. `lines`: all of them. */
const char *diff_group_text(const struct diff_report *report, const struct diff_group_line *lines,
                            const struct diff_group_line *line, char text[DIFF_GROUP_BYTES]);
/* Formats the sentence about the control (compare/levels.h); "": nothing changed, or the control is not
 * known. If only the total changed, the sentence says that. */
const char *diff_control_text(const struct diff_report *report, char text[DIFF_GROUP_BYTES]);
/* Formats the sentence about kernels without a verdict; "": no kernel could be pooled. */
const char *diff_undecided_text(const struct diff_report *report, const struct diff_group_line *lines,
                                char text[DIFF_GROUP_BYTES]);

/* True for a pair with a change, or with min_share of the time and another launch configuration. A sentence
 * names the kernels without a verdict (diff_undecided_text); without groups, their pairs with min_share are
 * true. */
bool diff_row_matters(const struct diff_report *report, const struct diff_pair *pair);

/* Formats the reason why a pair has changed although its kernel is the same, or has no verdict since its
 * launches do other work, or other kernels replaced its kernels; "": no such case. */
enum { DIFF_REASON_BYTES = 160 };
const char *diff_row_reason(const struct diff_report *report, const struct diff_pair *pair,
                            char text[DIFF_REASON_BYTES]);

/* Writes the members "verdicts", "layers" and "control". */
void diff_verdicts_json(struct occ_json *json, const struct diff_report *report,
                        const struct diff_group_line *lines);
