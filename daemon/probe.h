/*
 * What "occq doctor" asks of the daemon, so that one place searches for libcupti and knows the other
 * profilers. Lines of a word, a tab and a text:
 *
 *   cupti PATH (version N[, first choice])    refused REASON    profiler TEXT
 *   cuda CUDA VERSION, N GPUs                 fault TEXT         (what the driver says of its start)
 *
 * One thread; loads libraries and starts the driver.
 */
#pragma once

#include <stdio.h>

/* Other profilers: below root/proc. */
void occ_probe(FILE *out, const char *root);
