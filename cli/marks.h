/* Marks of a row: reasons for a low occupancy by design, simulated devices, estimated limits, and partly
 * measured time. One letter in a table, with a legend below; words for programs. Marks from the launch
 * configuration are guesses, marks from the kernel's name are not. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "occupancy/occupancy.h"

/* Bits in addition to enum occ_by_design. */
enum {
    CLI_MARK_SIMULATED = 1 << 16,
    CLI_MARK_COMMUNICATION = 1 << 17,
    CLI_MARK_ESTIMATED = 1 << 18,
    CLI_MARK_PARTLY = 1 << 19,
    CLI_MARK_LOSS = 1 << 20
};

/* Returns the bits of marks. `name`: of the kernel, whose owner decides on communication; NULL: unknown. */
uint32_t cli_marks(bool simulated, uint32_t by_design, const char *name);

/* Writes letters such as "sp"; "" for no marks. At most CLI_LETTERS_BYTES with the NUL. */
#define CLI_LETTERS_BYTES 8
const char *cli_marks_letters(uint32_t marks, char letters[CLI_LETTERS_BYTES]);
/* Writes "persistent cluster"; for people "maybe a persistent kernel; ...". Omits the marks simulated,
 * estimated and partly measured. */
#define CLI_MARKS_BYTES 192
const char *cli_marks_text(uint32_t marks, bool for_people, char buffer[CLI_MARKS_BYTES]);
/* Returns the meaning of a letter; NULL: not a mark. */
const char *cli_mark_help(char letter);

/* The letters as an SQL expression over the columns of `launch`; `by_design` names the column of that name.
 * It needs the function of kernel_owner_add_function(). */
#define CLI_SQL_COMMUNICATION "kernel_owner(kernel_demangled) = 'communication'"
#define CLI_SQL_LETTERS(by_design)                                                                           \
    "nullif(iif(simulated, 's', '') || iif(" CLI_SQL_COMMUNICATION ", 'c', '') || iif(instr(" by_design      \
    ", 'persistent'), 'p', '') || iif(instr(" by_design ", 'one_block'), 'o', '') || iif(instr(" by_design   \
    ", 'cluster'), 'k', ''), '')"
