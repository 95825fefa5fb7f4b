/* Tells whether a sanitizer is part of the test. */
#pragma once

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#elif defined __has_feature
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED false
#endif

/* Skips a test that repeats work of other tests very often, to reach a limit: a sanitizer finds nothing more
 * in it and takes minutes. After #include <cmocka.h>. */
#define SKIP_IF_SANITIZED()                                                                                  \
    do {                                                                                                     \
        if (SANITIZED)                                                                                       \
            skip();                                                                                          \
    } while (0)
