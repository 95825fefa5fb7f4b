/* What SQL over launches costs (bench_sql.c). */
#pragma once

#include <stdint.h>

/* Prints members of a JSON object, each with a comma, about a history of n launches. */
void bench_sql_print(const char *path, uint64_t n);
