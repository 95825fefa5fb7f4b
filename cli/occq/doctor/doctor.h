/*
 * occq doctor: a table of possible faults of a machine (checks.c). Each row has a function that looks for the
 * fault: most functions match a pattern against files, a variable or the probe's output (match.c), the others
 * are in look.c. They read files below the machine's root, the environment, and struct doctor_machine; tests
 * supply all three. One thread.
 */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"
#include "support/text.h"

#define DOCTOR_FOUND_BYTES 512
#define DOCTOR_LINES_MAX   64

/* States in ascending order of severity. NOTE: the machine works, with a limit. */
enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };

/* Abilities that a problem removes and a note limits: to record launches, to measure their occupancy, to keep
 * a history. Bits. */
enum doctor_ability { DOCTOR_RECORD = 1, DOCTOR_MEASURE = 2, DOCTOR_KEEP = 4 };

/* The machine and facts that are in no file. Texts belong to the caller. */
struct doctor_machine {
    const char *root;           /* mount point of the machine's root directory; "": / */
    const char *probe;          /* output of "occtraced --probe" (daemon/probe.h); "": it failed */
    const char *history;        /* path of the history, not below `root` */
    const char *settings;       /* path of the service's settings file, below `root` */
    const char *socket;         /* path of the socket of the user's daemon, not below `root` */
    const char *service_socket; /* path of the service's socket, not below `root` */
    int memfd_errno;            /* errno of memfd_create(2); 0: success */
    bool clock_synchronised;    /* NTP or PTP adjusts the clock: adjtimex(2) */
};

struct doctor_check;
/* Looks for the row's fault. Returns true if the fault is absent. Describes the finding, with or without the
 * fault, in `found` (DOCTOR_FOUND_BYTES, "" at first); if `found` stays empty, the page has no line for the
 * row. */
typedef bool doctor_look(const struct doctor_machine *machine, const struct doctor_check *check, char *found);

/* A row of the table. Rows for one part of the machine have the same name and follow each other. */
struct doctor_check {
    const char *name; /* the examined part of the machine */
    doctor_look *look;
    const char *source, *pattern; /* arguments of `look` */
    enum doctor_state state;      /* state of a machine with this fault */
    unsigned int affects;         /* abilities that the fault limits or removes: enum doctor_ability bits */
    const char *meaning, *remedy; /* meaning and remedy of the fault; NULL: none */
};

/* The result of a row. Texts except `found` are static. */
struct doctor_line {
    const char *check, *state;        /* the row's name; "ok", "note" or "problem" */
    const char *meaning, *remedy;     /* NULL: none, or no fault */
    char found[DOCTOR_FOUND_BYTES];   /* safe to print */
    const struct doctor_check *fault; /* the row; NULL: the fault is absent */
};

struct doctor_page {
    size_t n;
    struct doctor_line lines[DOCTOR_LINES_MAX];
};

/* Looks for all faults. Lines are in the order of the table; rows that found nothing have no line. */
void doctor_examine(const struct doctor_machine *machine, struct doctor_page *ret_page);

/* Appends formatted text to `found`, after ", " if `found` is not empty; cuts a text that is too long. */
#define doctor_append(found, ...) occ_text_append(found, DOCTOR_FOUND_BYTES, ", ", __VA_ARGS__)

/* match.c: `source` is "/PATH" below the root (with wildcards), "$VARIABLE", or "" for the probe's output;
 * `pattern` is a POSIX extended expression for one line. doctor_must: some line matches. doctor_must_not:
 * none does. doctor_may: always true. These three list the matches of group 1 in `found`; doctor_must sets
 * "none" without a match. doctor_if_set: the variable is unset, or matches; `found` gets its value if it does
 * not. */
doctor_look doctor_must, doctor_must_not, doctor_may, doctor_if_set;
/* Appends to `found` the match of group 1 in each line of the text that matches. Returns false if no line
 * matches. */
bool doctor_match(const char *text, const char *pattern, char *found);
/* look.c: other checks. `source`: the paths of doctor_node, and the variable of doctor_identity. `pattern`:
 * for the kernel driver's version (doctor_driver_not), and for control groups (doctor_identity). The others
 * use neither. */
doctor_look doctor_driver, doctor_driver_not, doctor_node, doctor_mig, doctor_counters, doctor_memfd,
    doctor_local, doctor_readable, doctor_writable, doctor_space, doctor_settings, doctor_daemon, doctor_unit,
    doctor_identity, doctor_clock;

/* Finds the paths below the root that match the pattern, which may have braces. Returns their number. The
 * caller calls globfree(), also after 0. */
size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *ret_paths);

extern const struct cli_command cli_doctor_counters, cli_doctor_coverage;
