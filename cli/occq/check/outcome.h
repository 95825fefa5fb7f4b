/* The outcome of a check: reports for CI systems, exit status. One thread (stdio). */
#pragma once

#include "cli/rules/judge.h"

/* The reports that the command line asks for. */
struct check_reports {
    const char *junit, *gitlab; /* files; NULL: none */
    bool github;
};

/* Writes the files, and the annotations for GitHub to stdout. */
int check_write_reports(const struct check_reports *reports, const struct judgement *judgement,
                        struct occ_error *err);

/* `strict`: an undecided rule, or a kernel without a baseline, is not judged. */
int check_exit_status(const struct judgement *judgement, bool strict);

/* occq check --image. */
extern const struct cli_command cli_check_image;
