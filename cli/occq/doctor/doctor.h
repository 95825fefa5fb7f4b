/*
 * occq doctor: a table of what can be wrong with a machine (checks.c), each row with a function that looks:
 * most match a pattern with files or a variable (match.c), the others are in look.c. They read files below
 * the machine's root, the environment, and the facts that no file states (struct doctor_machine); a test
 * makes them all up. One thread.
 */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/text.h"

#define DOCTOR_FOUND_BYTES 512
#define DOCTOR_LINES_MAX   64

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };

/* What a problem takes away and a note limits. */
enum doctor_ability { DOCTOR_RECORD = 1, DOCTOR_MEASURE = 2, DOCTOR_KEEP = 4 };

struct doctor_machine {
    const char *root;        /* "" or where the machine's root directory is mounted */
    const char *probe;       /* output of "occtraced --probe" (daemon/probe.h); "": it did not run */
    const char *history;     /* its path, "" if there is no default */
    const char *settings;    /* path of the service's file of settings, without the root */
    const char *socket;      /* of the user's daemon, "" if there is no default */
    int memfd_errno;         /* of memfd_create(2); 0: it works */
    bool clock_synchronised; /* NTP or PTP steers it: adjtimex(2) */
};

struct doctor_check;
/* Looks for the row's fault; true: it is absent. `found` (DOCTOR_FOUND_BYTES, "" at first) tells what was
 * seen; left empty, the row adds no line. */
typedef bool doctor_look(const struct doctor_machine *machine, const struct doctor_check *check, char *found);

struct doctor_check {
    const char *name;
    doctor_look *look;
    const char *what, *pattern; /* the function's arguments */
    enum doctor_state state;    /* of a machine with this fault */
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

/* match.c: `what` is "/PATH" below the root (with wildcards), "$VARIABLE", or "" for the probe; `pattern` a
 * POSIX extended expression for a line of it. `found` lists what group 1 matched. doctor_if_set: a variable
 * that must match where it is set. */
doctor_look doctor_must, doctor_must_not, doctor_may, doctor_if_set;
/* Appends what group 1 is in each line of the text; false: no line matches. */
bool doctor_match(const char *text, const char *pattern, char *found);
/* look.c: `pattern` is not used but by doctor_driver_not (of the kernel's driver's version) and
 * doctor_identity
 */
doctor_look doctor_driver, doctor_driver_not, doctor_node, doctor_mig, doctor_counters, doctor_memfd,
    doctor_local, doctor_readable, doctor_writable, doctor_space, doctor_settings, doctor_daemon, doctor_unit,
    doctor_identity, doctor_clock;

/* Number of paths below the root that match (braces, too); the caller calls globfree(). */
size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *ret_paths);
