/* Tells whether a sanitizer is part of the test. */
#pragma once

#include <string.h>

#ifdef __has_feature /* clang */
#define SANITIZED_ADDRESS __has_feature(address_sanitizer)
#define SANITIZED_THREAD __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif
#ifdef __SANITIZE_THREAD__
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif
#endif
#define SANITIZED (SANITIZED_ADDRESS || SANITIZED_THREAD)

/* Returns the step through a test's inputs: 1, which takes all; under a sanitizer n, unless the command line
 * says "all". The inputs repeat the same code, and each takes a sanitizer several times longer. */
static inline unsigned input_step(int argc, char **argv, unsigned n)
{
    return SANITIZED && !(argc > 1 && strcmp(argv[1], "all") == 0) ? n : 1;
}

/* Skips a test that repeats work of other tests very often, to reach a limit: a sanitizer finds nothing more
 * in it and takes minutes. After #include <cmocka.h>. */
#define SKIP_IF_SANITIZED()                                                                                  \
    do {                                                                                                     \
        if (SANITIZED)                                                                                       \
            skip();                                                                                          \
    } while (0)
