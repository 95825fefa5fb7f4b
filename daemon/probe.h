/*
 * Answers of the daemon to "occq doctor", so that one program searches for libcupti and knows the competing
 * profilers. Lines of a word, a tab and a text:
 *
 *   cupti PATH (version N[, first choice])    refused REASON    profiler TEXT
 *   cuda CUDA VERSION, N GPUs                 fault TEXT         (error of the driver's start)
 *
 * One thread; loads libraries and starts the driver.
 */
#pragma once

#include <stdio.h>

/* Searches for other profilers below root/proc. */
void occ_probe(FILE *out, const char *root);
