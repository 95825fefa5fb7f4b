/*
 * guests CASE [ARGUMENT]: programs that each do one odd thing while CUDA works in them, so that what they
 * print and how they end can be compared with and without occtrace (guests.sh). What they print is the same
 * in every run.
 *
 * CUDA is used if libcuda.so.1 can be opened and $GUESTS_IMAGE names device code with a kernel vector_add;
 * else the same case runs without it. No header of the toolkit is needed.
 */
#pragma once

/* argument: the one after the case's name, or NULL. Returns the exit status. */
typedef int guest_case(const char *argument);

struct guest_row {
    const char *name;
    guest_case *run;
};

/* Each ends with a row without a name. */
extern const struct guest_row guests_that_end[], guests_with_children[], guests_with_limits[];

/* Initialises CUDA, once; then launches and waits for the device. Ends the program with a line on stderr if a
 * call fails. */
void guest_launch(int launches);
/* Only opens the driver, so that a later guest_launch() needs no file. */
void guest_open(void);

/* A line on stdout, at once. */
__attribute__((format(printf, 1, 2))) void guest_print(const char *format, ...);
/* The path of this program. */
extern const char *guest_self;
