/*
 * gpu_abba: reads blocks from stdin, a line `A1 B1 B2 A2` each (times of the same work), and prints
 *
 *   blocks=N cost=PERCENT low=PERCENT high=PERCENT half=PERCENT left_out=N
 *
 * half is the larger distance from the cost to an end of its 95 % interval; `-`: unknown. left_out counts the
 * lines without a block of positive numbers. Exit code: 0, or 1 if stdout cannot be written. One thread.
 */
#include "abba.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LINE_BYTES = 512, LINES_MOST = 100000 };

static void print(const char *name, double ratio)
{
    if (isfinite(ratio))
        printf(" %s=%.4f", name, ratio * 100);
    else
        printf(" %s=-", name);
}

int main(void)
{
    struct gpu_abba abba = {0};
    char line[LINE_BYTES];
    uint64_t left_out = 0;
    for (int i = 0; i < LINES_MOST && fgets(line, sizeof line, stdin); i++) {
        double a[2], b[2];
        bool good = sscanf(line, "%lf %lf %lf %lf", &a[0], &b[0], &b[1], &a[1]) == 4;
        left_out += !good || !gpu_abba_add(&abba, a, b);
    }
    struct gpu_abba_cost cost = gpu_abba_cost(&abba);
    printf("blocks=%" PRIu64, abba.n);
    print("cost", cost.cost);
    print("low", cost.low);
    print("high", cost.high);
    print("half", fmax(cost.high - cost.cost, cost.cost - cost.low));
    printf(" left_out=%" PRIu64 "\n", left_out);
    return fflush(stdout) == 0 ? 0 : 1;
}
