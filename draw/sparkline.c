/* See sparkline.h. */
#include "sparkline.h"

#include <math.h>

void draw_sparkline(const double *values, size_t n, bool ascii, char *text)
{
    static const char marks[] = ".:-=+*%#";
    enum { STEPS = sizeof marks - 1 };
    double largest = 0;
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, values[i]);
    for (size_t i = 0; i < n; i++) {
        int step = values[i] > 0 ? (int)ceil(values[i] / largest * STEPS) : 0; /* largest > 0 */
        if (step <= 0)
            text[used++] = ' ';
        else if (ascii)
            text[used++] = marks[(step < STEPS ? step : STEPS) - 1];
        else { /* U+2581 ... U+2588 */
            text[used++] = '\xe2';
            text[used++] = '\x96';
            text[used++] = (char)(0x80 + (step < STEPS ? step : STEPS));
        }
    }
    text[used] = '\0';
}
