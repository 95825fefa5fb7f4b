/*
 * Resources of kernels that a compiler chose: of one build, or of a lock file to which builds are compared.
 *
 * A lock file is a text, one statement a line, in a fixed order, so that a change of a kernel is a change of
 * its lines. '#' begins a comment.
 *
 *   occq-pins 1
 *   allow RULE KERNEL until YYYY-MM-DD REASON   the rule does not count for the kernel before that day (UTC)
 *   launch KERNEL THREADS[+BYTES]...            block sizes, with dynamic shared memory, of the kernel
 *   pin ARCHITECTURE RESOURCE=VALUE... KERNEL   "-": not known
 *
 * KERNEL is a mangled name; a byte that is no printable ASCII character, and '%', is "%XX". If one build has
 * different kernels of one name and architecture, such as static ones of several files, each has a pin with
 * copy=I/N.
 *
 * A file is untrusted: sizes and counts have the maxima below. Errors are OCC_E_INVALID, or OCC_E_VERSION for
 * another version, with "FILE:LINE: " before the message. Pure apart from malloc; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "support/arena.h"
#include "support/error.h"

enum {
    PINS_VERSION = 1,
    PINS_MAX = 1 << 20,            /* maximum pins of a file or a build */
    PINS_MAX_STATEMENTS = 1 << 16, /* maximum statements of each other kind */
    PINS_FILE_MAX = 1 << 28,       /* maximum bytes of a file */
    PINS_NAME_MAX = 16384,         /* maximum bytes of a kernel's name */
    PINS_REASON_MAX = 200,
    PIN_LAUNCHES = 8, /* maximum block sizes of a launch statement */
};

/* X(NAME, word, text, maximum) */
#define PIN_RESOURCES(X)                                                                                     \
    X(REGISTERS, "registers", "registers", 255)                                                              \
    X(STACK, "stack", "bytes of stack", 512 << 10)                                                           \
    X(SPILLS, "spills", "spilled bytes", 16 << 20)                                                           \
    X(SHARED, "shared", "bytes of shared memory", 256 << 10)                                                 \
    X(BARRIERS, "barriers", "barriers", 16)                                                                  \
    X(BOUNDS, "bounds", "threads in launch bounds", 1024) /* 0: none */
#define PIN_ENUMERATOR(name, ...) PIN_##name,
enum pin_resource { PIN_RESOURCES(PIN_ENUMERATOR) PIN_RESOURCE_COUNT };
#define PIN_UNKNOWN UINT32_MAX

/* Rules that a build may break. X(NAME, word) */
#define PIN_RULES(X)                                                                                         \
    X(BLOCKS, "blocks")                                                                                      \
    X(STACK, "stack")                                                                                        \
    X(SPILLS, "spills")                                                                                      \
    X(BOUNDS, "bounds")                                                                                      \
    X(GONE, "gone")
#define PIN_RULE_ENUMERATOR(name, word) PIN_RULE_##name,
enum pin_rule { PIN_RULES(PIN_RULE_ENUMERATOR) PIN_RULE_COUNT };

struct pin {
    const char *kernel;    /* mangled */
    const char *name;      /* demangled; NULL: not searched */
    uint32_t sm;           /* 90 */
    char suffix;           /* 'a' of sm_90a, 'f' of sm_100f; 0: none */
    uint32_t copy, copies; /* from 1; copies > 1: a build has different kernels of this name */
    uint32_t line;         /* line number in the lock file; 0: from a build */
    uint32_t value[PIN_RESOURCE_COUNT];
};

/* A block size for which two builds of the kernel are compared. */
struct pin_launch {
    uint32_t threads, dynamic_bytes;
};

/* The launch statement of a kernel. */
struct pin_launches {
    const char *kernel;
    uint32_t line, n;
    struct pin_launch list[PIN_LAUNCHES];
};

struct pin_allowance {
    enum pin_rule rule;
    const char *kernel, *reason;
    char until[12];  /* "2027-01-31" */
    int64_t until_s; /* `until` in seconds since 1970: the rule counts again from then on */
    uint32_t line;
};

struct pins {
    struct pin *list;
    size_t n, allocated;
    struct pin_launches *launches; /* sorted by kernel */
    size_t n_launches, launches_allocated;
    struct pin_allowance *allowances; /* sorted by kernel, then by rule */
    size_t n_allowances, allowances_allocated;
    struct occ_arena texts;
};

void pins_free(struct pins *pins);

/* Copies a pin and its texts. OCC_E_FULL: too many pins. */
int pins_add(struct pins *pins, const struct pin *pin, struct occ_error *err);
/* Adds a launch size (threads, dynamic bytes) of a kernel; the first PIN_LAUNCHES different ones are kept.
 * Call for all sizes of a kernel, then for the next kernel. */
int pins_add_launch(struct pins *pins, const char *kernel, struct pin_launch launch, struct occ_error *err);
/* Sorts the pins of a build by kernel and architecture, drops equal ones, and numbers copies. */
void pins_sort(struct pins *pins);
/* Sorts launch statements, joining those of one kernel, and allowances. */
void pins_sort_statements(struct pins *pins);

/* Returns the launch statement of a kernel; NULL: none. */
const struct pin_launches *pins_launches_of(const struct pins *pins, const char *kernel);
/* Returns the allowance of a rule for a kernel; NULL: none. */
const struct pin_allowance *pins_allowance_of(const struct pins *pins, enum pin_rule rule,
                                              const char *kernel);

/* Compares by kernel, then architecture: the order of the file. */
int pin_compare(const struct pin *a, const struct pin *b);
/* Formats "sm_90a". Returns `text`. */
#define PIN_ARCHITECTURE_BYTES 16
const char *pin_architecture(const struct pin *pin, char text[PIN_ARCHITECTURE_BYTES]);

const char *pin_resource_word(enum pin_resource resource);
const char *pin_resource_text(enum pin_resource resource);
uint32_t pin_resource_max(enum pin_resource resource);
const char *pin_rule_word(enum pin_rule rule);

/* ---- the file ---- */

#define PINS_HEADER "occq-pins"

/* True for a byte of a kernel's name that the file does not escape. */
static inline bool pin_is_plain(char c)
{
    return c > ' ' && c <= '~' && c != '%';
}

/* `file`: its name for messages. `text` need not end with NUL. The result is sorted. */
int pins_parse(const char *file, const char *text, size_t size, struct pins *ret_pins, struct occ_error *err);
/* Writes a file. Write errors stay in the stream. */
void pins_write(FILE *out, const struct pins *pins);

/* ---- two builds ---- */

struct pin_pair {
    const struct pin *before, *after; /* NULL: the kernel is new, or gone */
};

struct pin_pairs {
    struct pin_pair *list; /* in the order of the file */
    size_t n, allocated;
};

/* Pairs the kernels of two sorted builds by name and architecture. Kernels left over are paired by their name
 * without hashes that change with every build, then also without parameters, if that form is unique in both
 * builds. A copy is paired with the other build's copy of equal resources, else with the copy of the same
 * number. */
int pins_match(const struct pins *before, const struct pins *after, struct pin_pairs *ret_pairs,
               struct occ_error *err);
/* True if all resources are equal that are known in both pins. */
bool pin_is_same(const struct pin *a, const struct pin *b);
