/* Durations and changes of a comparison in words. Pure. */
#pragma once

#define SIDES_SMALL_CHANGE 0.0005 /* rounds to 0.1 % */

/* Formats "1.2 ms"; "-" for NaN. */
const char *diff_duration_text(double ns, char buffer[32]);
/* Formats "+10.0%"; "-" for NaN. */
const char *diff_change_text(double change, char buffer[16]);
