/* Measures the cost of the column codec, without SQLite (bench_codec.c). */
#pragma once

/* Prints the member "codec" of a JSON object and a comma. */
void bench_codec_print(void);
