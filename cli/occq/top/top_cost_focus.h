/* A bill in the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification. One thread. */
#pragma once

#include "answer/bill.h"
#include "cli/command.h"

struct top_focus {
    const char *provider;       /* who bills: provider, publisher, invoice issuer and billing account */
    const char *by;             /* unit of the rows, the sub account's type */
    int64_t since_ns, until_ns; /* the question's time; 0: open */
};

/* Prints CSV: a row for each part of a row of the bill that has time. Rows without a price are left out and
 * noted. OCC_E_INVALID: no time of the bill counts from 1970. */
int top_focus_print(const struct cli_command *command, const struct top_focus *focus,
                    const struct occ_bill *bill, struct occ_error *err);
