/* Measured rules; internal to cli/rules. One thread. */
#pragma once

#include "judge.h"

/* Judges a rule about rows and groups of the comparison. *ret_matched: number of kernels or launch
 * configurations that the rule covers. */
int judge_measured(const struct judge_terms *terms, struct rule_result *result, size_t *ret_matched,
                   struct occ_error *err);
/* Judges a rule about the GPU time, with its state. */
int judge_gpu_time(const struct judge_terms *terms, struct rule_result *result, struct occ_error *err);

/* True if an exception covers the rule for the kernel; 0: for a group of kernels. */
bool judge_allows(const struct judge_terms *terms, const struct rule *rule, int64_t kernel);
/* Adds a finding with `text`, the description of the fault. A finding with an exception is only counted. */
int judge_add_kernel(const struct judge_terms *terms, struct rule_result *result,
                     const struct occ_config_row *row, double share, const char *text, struct occ_error *err);
/* The same for a group of kernels. */
int judge_add_group(const struct judge_terms *terms, struct rule_result *result, const char *name,
                    double share, const char *text, struct occ_error *err);
/* Keeps an undecided change if it is one of the largest. `change`: B / A - 1; NaN: not known. */
void judge_keep_open(struct rule_result *result, const char *name, double share, double change,
                     const char *text);
