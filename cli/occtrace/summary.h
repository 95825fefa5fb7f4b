/* What occtrace says, on stderr: single lines, and the block at the end. One thread (stdio). */
#ifndef OCC_CLI_SUMMARY_H
#define OCC_CLI_SUMMARY_H

#include "store/store.h"

/* "occtrace: TEXT", made safe to print: names in it come from the program. */
void summary_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One block for the runs of a session. `db`: as the hint should name it; NULL: the user's own. */
void summary_print(const struct occ_runs *runs, const char *db);

/* One line, when there is no run. */
void summary_print_absence(const char *reason);

#endif
