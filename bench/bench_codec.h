/* What the codec of columns costs, without SQLite (bench_codec.c). */
#ifndef OCC_BENCH_CODEC_H
#define OCC_BENCH_CODEC_H

/* Prints the member "codec" of a JSON object and a comma. */
void bench_codec_print(void);

#endif
