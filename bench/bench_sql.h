/* Measures SQL over launches (bench_sql.c). */
#pragma once

#include <stdint.h>

/* Prints members of a JSON object, each with a comma, for a history of n launches. */
void bench_sql_print(const char *path, uint64_t n);
