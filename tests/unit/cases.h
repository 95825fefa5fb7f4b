/* The cases that a command line chooses: "*thread*" runs the matching cases, "-*quota*" all others. Include
 * cmocka.h first. */
#pragma once

static inline void choose_cases(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-')
        cmocka_set_skip_filter(argv[1] + 1);
    else if (argc > 1)
        cmocka_set_test_filter(argv[1]);
}
