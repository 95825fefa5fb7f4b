/*
 * The named GPUs nearest to a name that is not there: edit distance (two letters in the wrong order are one
 * edit) on three fixed rows of numbers.
 *
 * Threads: any.
 */
#include "occupancy.h"

#include <string.h>

#define NAME_MAX_LENGTH 31

/* `name` in the table's spelling: lower case without blanks. Returns its length; longer than the buffer: 0. */
static size_t spell(const char *name, char spelled[NAME_MAX_LENGTH + 1])
{
    size_t length = 0;
    for (; *name; name++) {
        if (*name == ' ' || *name == '\t')
            continue;
        if (length == NAME_MAX_LENGTH)
            return 0;
        spelled[length++] = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    }
    spelled[length] = '\0';
    return length;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Letters to add, leave out, exchange or swap with their neighbour to make one of the other. Neither is longer than
 * NAME_MAX_LENGTH. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NAME_MAX_LENGTH + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smallest(row[j], higher[j - 2] + 1, row[j]);
        }
    }
    return rows[a_length % 3][b_length];
}

static size_t append_at_distance(const char *spelled, size_t length, size_t wanted,
                                 const struct occ_gpu **gpus, size_t count, size_t max)
{
    const struct occ_gpu *gpu;
    for (size_t i = 0; count < max && (gpu = occ_gpu_at(i)); i++)
        if (distance(spelled, length, gpu->name, strlen(gpu->name)) == wanted)
            gpus[count++] = gpu;
    return count;
}

size_t occ_gpu_nearest(const char *name, const struct occ_gpu **gpus, size_t max)
{
    char spelled[NAME_MAX_LENGTH + 1];
    size_t length = name ? spell(name, spelled) : 0;
    size_t count = 0;
    for (size_t wanted = 0; length > 0 && wanted <= length / 2; wanted++)
        count = append_at_distance(spelled, length, wanted, gpus, count, max);
    return count;
}
