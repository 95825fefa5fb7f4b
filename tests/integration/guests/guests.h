/*
 * guests CASE [ARGUMENT]: programs with one unusual action each while CUDA works in them. guests.sh compares
 * their output and end with and without occtrace; both are the same in every run.
 *
 * CUDA is used if libcuda.so.1 can be opened and $GUESTS_IMAGE names device code with a kernel vector_add;
 * otherwise the same case runs without CUDA. Needs no header of the toolkit.
 */
#pragma once

/* `argument`: the second word of the command line, or NULL. Returns the exit status. */
typedef int guest_case(const char *argument);

struct guest_row {
    const char *name;
    guest_case *run;
};

/* Each table ends with a row without a name. */
extern const struct guest_row guests_that_end[], guests_with_children[], guests_with_limits[];

/* Initialises CUDA at the first call; launches and waits for the device. A failed call ends the program with
 * a line on stderr. */
void guest_launch(int launches);
/* Opens the driver only, so that a later guest_launch() opens no file. */
void guest_open(void);

/* Prints a line on stdout without buffering. */
__attribute__((format(printf, 1, 2))) void guest_print(const char *format, ...);
/* The path of this program. */
extern const char *guest_self;
