/* What the codec of columns costs, without SQLite (bench_codec.c). */
#pragma once

/* Prints the member "codec" of a JSON object and a comma. */
void bench_codec_print(void);
