/* The first screen of the page: the GPU time, findings, layers. One thread. */
#pragma once

#include "report.h"

/* Writes the programs, hosts and dates of the launches. */
int report_origin(FILE *out, const struct report *report, struct occ_error *err);
/* Writes busy time, the GPU time as one bar that adds up to 100 %, and findings. The GPU time is known. */
void report_gpu_time(FILE *out, const struct report *report);
/* Writes the layers as an icicle and a table, if launches have ranges. */
void report_layers(FILE *out, const struct report *report);
