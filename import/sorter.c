/* See sorter.h. */
#include "sorter.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "spool.h"
#include "support/array.h"
#include "support/cleanup.h"

#define BLOCK_RECORDS 256u /* records of a run read at a time */

/* A sorted run in the file, and the run's block in memory. */
struct run {
    off_t at, end; /* bytes not read yet */
    unsigned char *block;
    size_t n, next; /* records in the block; the next record */
};

struct occ_sorter {
    size_t record_bytes, run_records;
    occ_sorter_compare *compare;
    unsigned char *records; /* records of the run in the making */
    size_t n, allocated, next;
    int fd; /* -1: all records are in memory */
    off_t size;
    struct run *runs; /* a heap by next record, while reading */
    size_t n_runs, runs_allocated;
    bool is_reading, is_first;
};

int occ_sorter_new(size_t record_bytes, size_t run, occ_sorter_compare *compare,
                   struct occ_sorter **ret_sorter, struct occ_error *err)
{
    struct occ_sorter *s = calloc(1, sizeof *s);
    if (!s)
        return occ_no_memory(err);
    *s = (struct occ_sorter){.record_bytes = record_bytes, .run_records = run, .compare = compare, .fd = -1};
    *ret_sorter = s;
    return 0;
}

void occ_sorter_free(struct occ_sorter *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->runs_allocated && s->is_reading; i++)
        free(s->runs[i].block);
    free(s->runs);
    free(s->records);
    occ_close_fd(&s->fd);
    free(s);
}

/* Writes the run in the making to the file. */
static int spill(struct occ_sorter *s, struct occ_error *err)
{
    size_t bytes = s->n * s->record_bytes;
    if (s->fd < 0 && (s->fd = occ_spool_unnamed(err)) < 0)
        return s->fd;
    if (!occ_grow((void **)&s->runs, &s->runs_allocated, s->n_runs, SIZE_MAX / sizeof *s->runs,
                  sizeof *s->runs))
        return occ_no_memory(err);
    qsort(s->records, s->n, s->record_bytes, s->compare);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(s->fd, s->records + done, bytes - done);
        if (n < 0 && errno != EINTR)
            return occ_fail_errno(err, errno, "cannot write the temporary file");
        done += n > 0 ? (size_t)n : 0;
    }
    s->runs[s->n_runs++] = (struct run){.at = s->size, .end = s->size + (off_t)bytes};
    s->size += (off_t)bytes;
    s->n = 0;
    return 0;
}

int occ_sorter_put(struct occ_sorter *s, const void *record, struct occ_error *err)
{
    int status = s->n == s->run_records ? spill(s, err) : 0;
    if (status == 0 && !occ_grow((void **)&s->records, &s->allocated, s->n, s->run_records, s->record_bytes))
        status = occ_no_memory(err);
    if (status == 0)
        memcpy(s->records + s->n++ * s->record_bytes, record, s->record_bytes);
    return status;
}

/* ---- reading ---- */

static int read_block(struct occ_sorter *s, struct run *run, struct occ_error *err)
{
    size_t bytes = BLOCK_RECORDS * s->record_bytes, got = 0;
    bytes = run->end - run->at < (off_t)bytes ? (size_t)(run->end - run->at) : bytes;
    if (!run->block && !(run->block = malloc(BLOCK_RECORDS * s->record_bytes)))
        return occ_no_memory(err);
    while (got < bytes) {
        ssize_t n = pread(s->fd, run->block + got, bytes - got, run->at + (off_t)got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return occ_fail_errno(err, n == 0 ? EIO : errno, "cannot read the temporary file");
        got += n > 0 ? (size_t)n : 0;
    }
    run->at += (off_t)bytes;
    run->n = bytes / s->record_bytes;
    run->next = 0;
    return 0;
}

static const unsigned char *head_of(const struct occ_sorter *s, size_t run)
{
    return s->runs[run].block + s->runs[run].next * s->record_bytes;
}

static void sift_down(struct occ_sorter *s, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < s->n_runs; at = child) {
        child += child + 1 < s->n_runs && s->compare(head_of(s, child + 1), head_of(s, child)) < 0;
        if (s->compare(head_of(s, at), head_of(s, child)) <= 0)
            break;
        struct run run = s->runs[at];
        s->runs[at] = s->runs[child];
        s->runs[child] = run;
    }
}

static int begin_reading(struct occ_sorter *s, struct occ_error *err)
{
    int status = 0;
    if (s->fd < 0) {
        if (s->n > 0)
            qsort(s->records, s->n, s->record_bytes, s->compare);
        s->is_first = s->is_reading = true;
        return 0;
    }
    if (s->n > 0)
        status = spill(s, err);
    free(s->records);
    s->records = NULL;
    s->is_first = s->is_reading = true;
    s->runs_allocated = s->n_runs; /* number of runs with a block, or with NULL */
    for (size_t i = 0; i < s->n_runs && status == 0; i++)
        status = read_block(s, &s->runs[i], err);
    for (size_t i = s->n_runs; i-- > 0 && status == 0;)
        sift_down(s, i);
    return status;
}

/* Moves past the last returned record. */
static int advance(struct occ_sorter *s, struct occ_error *err)
{
    struct run *run = &s->runs[0];
    int status = 0;
    if (++run->next == run->n) {
        if (run->at < run->end) {
            status = read_block(s, run, err);
        } else { /* the exhausted run moves to the end, where occ_sorter_free() finds its block */
            struct run spent = *run;
            *run = s->runs[--s->n_runs];
            s->runs[s->n_runs] = spent;
        }
    }
    if (status == 0)
        sift_down(s, 0);
    return status;
}

int occ_sorter_next(struct occ_sorter *s, const void **ret_record, struct occ_error *err)
{
    int status = s->is_reading ? 0 : begin_reading(s, err);
    *ret_record = NULL;
    if (status == 0 && s->fd >= 0 && !s->is_first && s->n_runs > 0)
        status = advance(s, err);
    s->is_first = false;
    if (status == 0 && s->fd >= 0)
        *ret_record = s->n_runs > 0 ? head_of(s, 0) : NULL;
    else if (status == 0 && s->next < s->n)
        *ret_record = s->records + s->next++ * s->record_bytes;
    return status;
}
