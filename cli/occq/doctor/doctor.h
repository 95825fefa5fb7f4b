/*
 * occq doctor: a table of possible faults of a machine (checks.c). Each row has a function that looks for the
 * fault: most functions match a pattern against files or a variable (match.c), the others are in look.c. They
 * read files below the machine's root, the environment, and facts that are in no file (struct
 * doctor_machine); tests supply all three. One thread.
 */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"
#include "support/text.h"

#define DOCTOR_FOUND_BYTES 512
#define DOCTOR_LINES_MAX   64

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };

/* Abilities that a problem removes and a note limits. */
enum doctor_ability { DOCTOR_RECORD = 1, DOCTOR_MEASURE = 2, DOCTOR_KEEP = 4 };

struct doctor_machine {
    const char *root;           /* mount point of the machine's root directory; "": / */
    const char *probe;          /* output of "occtraced --probe" (daemon/probe.h); "": it did not run */
    const char *history;        /* path of the history; "": no default */
    const char *settings;       /* path of the service's settings file, without the root */
    const char *socket;         /* path of the user's daemon's socket; "": no default */
    const char *service_socket; /* path of the service's socket */
    int memfd_errno;            /* errno of memfd_create(2); 0: success */
    bool clock_synchronised;    /* NTP or PTP adjusts the clock: adjtimex(2) */
};

struct doctor_check;
/* Looks for the row's fault. Returns true if the fault is absent. Describes the finding in `found`
 * (DOCTOR_FOUND_BYTES, "" at first); if `found` stays empty, the page has no line for the row. */
typedef bool doctor_look(const struct doctor_machine *machine, const struct doctor_check *check, char *found);

struct doctor_check {
    const char *name;
    doctor_look *look;
    const char *what, *pattern; /* arguments of `look` */
    enum doctor_state state;    /* state of a machine with this fault */
    unsigned int affects;       /* enum doctor_ability bits */
    const char *meaning, *remedy;
};

struct doctor_line {
    const char *check, *state, *meaning, *remedy;
    char found[DOCTOR_FOUND_BYTES];   /* safe to print */
    const struct doctor_check *fault; /* NULL: none */
};

struct doctor_page {
    size_t n;
    struct doctor_line lines[DOCTOR_LINES_MAX];
};

void doctor_examine(const struct doctor_machine *machine, struct doctor_page *ret_page);

#define doctor_append(found, ...) occ_text_append(found, DOCTOR_FOUND_BYTES, ", ", __VA_ARGS__)

/* match.c: `what` is "/PATH" below the root (with wildcards), "$VARIABLE", or "" for the probe's output;
 * `pattern` is a POSIX extended expression for one line. `found` lists the matches of group 1. doctor_if_set:
 * the variable must match if it is set. */
doctor_look doctor_must, doctor_must_not, doctor_may, doctor_if_set;
/* Appends the match of group 1 in each line of the text. Returns false if no line matches. */
bool doctor_match(const char *text, const char *pattern, char *found);
/* look.c: only doctor_driver_not (for the version of the kernel's driver) and doctor_identity use `pattern`.
 */
doctor_look doctor_driver, doctor_driver_not, doctor_node, doctor_mig, doctor_counters, doctor_memfd,
    doctor_local, doctor_readable, doctor_writable, doctor_space, doctor_settings, doctor_daemon, doctor_unit,
    doctor_identity, doctor_clock;

/* Returns the number of paths below the root that match the pattern, which may have braces. The caller calls
 * globfree(). */
size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *ret_paths);

extern const struct cli_command cli_doctor_counters, cli_doctor_coverage;
