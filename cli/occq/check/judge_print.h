/* Prints the results of rules for people and for CI systems. One thread (stdio). */
#pragma once

#include <stdio.h>

#include "cli/rules/judge.h"

/* Name of the rules where a file's path is needed and they have none. */
#define JUDGE_BUILT_IN "built-in rules"

/* Prints lines for people. */
void judgement_print(FILE *out, const struct judgement *judgement);
/* Prints GitHub workflow commands: one annotation for each rule that fails, is undecided or has new kernels.
 */
void judgement_print_github(FILE *out, const struct judgement *judgement);
/* Prints GitLab's code quality report: one entry for each finding; its fingerprint is a hash of the rule and
 * the normalised kernel name. The path of built-in rules is JUDGE_BUILT_IN: GitLab demands one. */
void judgement_print_gitlab(FILE *out, const struct judgement *judgement);
/* Prints JUnit XML: one test case for each rule. */
void judgement_print_junit(FILE *out, const struct judgement *judgement);
/* Prints the results, the GPU time of the checked side, and its change, as JSON. */
void judgement_print_json(FILE *out, const struct judgement *judgement, const struct sides_gpu_time *time,
                          double floor);
