/* Which histories the shipper need not read: those that are as they were when they were sent whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/seen.h"

#define SECOND_NS INT64_C(1000000000)
#define BEGIN_S   1700000000
#define NOW_NS    ((BEGIN_S + 60) * SECOND_NS)

struct place {
    char directory[32], file[64], log[72];
    struct occ_seen seen;
};

/* Writes `text` at a second of the file system's clock. */
static void put(const char *path, const char *text, int64_t second)
{
    const struct timespec times[] = {{.tv_sec = second}, {.tv_sec = second}};
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/occ-seen-XXXXXX");
    if (!mkdtemp(p->directory))
        return -1;
    (void)snprintf(p->file, sizeof p->file, "%s/history.db", p->directory);
    (void)snprintf(p->log, sizeof p->log, "%s-wal", p->file);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    (void)unlink(p->log);
    (void)unlink(p->file);
    int status = rmdir(p->directory);
    occ_seen_free(&p->seen);
    free(p);
    return status;
}

static bool is_sent(struct place *p)
{
    struct occ_seen_history h;
    return occ_seen_look(p->file, NOW_NS, &h) && occ_seen_is_sent(&p->seen, p->file, &h);
}

static void send_it(struct place *p)
{
    struct occ_seen_history h;
    assert_true(occ_seen_look(p->file, NOW_NS, &h));
    occ_seen_put(&p->seen, p->file, &h);
    assert_true(is_sent(p));
}

static void every_change_shows(void **state)
{
    struct place *p = *state;
    char other[72];
    (void)snprintf(other, sizeof other, "%s.new", p->file);
    assert_false(is_sent(p));
    put(p->file, "one", BEGIN_S);
    assert_false(is_sent(p));
    send_it(p);
    put(p->file, "two", BEGIN_S + 1); /* time */
    assert_false(is_sent(p));
    send_it(p);
    put(p->file, "three", BEGIN_S + 1); /* size */
    assert_false(is_sent(p));
    send_it(p);
    put(other, "three", BEGIN_S + 1); /* file */
    assert_int_equal(rename(other, p->file), 0);
    assert_false(is_sent(p));
    send_it(p);
    put(p->log, "", BEGIN_S); /* log */
    assert_false(is_sent(p));
    send_it(p);
    put(p->log, "x", BEGIN_S);
    assert_false(is_sent(p));
    send_it(p);
    put(p->log, "y", BEGIN_S + 1);
    assert_false(is_sent(p));
    send_it(p);
    assert_int_equal(unlink(p->log), 0);
    assert_false(is_sent(p));
}

/* The next write may get the same time. */
static void a_recent_write_is_not_trusted(void **state)
{
    struct place *p = *state;
    struct occ_seen_history h;
    put(p->file, "one", BEGIN_S + 60);
    assert_false(occ_seen_look(p->file, NOW_NS, &h));
    put(p->file, "one", BEGIN_S);
    put(p->log, "one", BEGIN_S + 59);
    assert_false(occ_seen_look(p->file, NOW_NS, &h));
    put(p->log, "one", BEGIN_S);
    assert_true(occ_seen_look(p->file, NOW_NS, &h));
}

static void the_open_minute_stays_known(void **state)
{
    struct place *p = *state;
    struct occ_seen_history h;
    put(p->file, "one", BEGIN_S);
    assert_true(occ_seen_look(p->file, NOW_NS, &h));
    h.open_minute = 28333333;
    occ_seen_put(&p->seen, p->file, &h);
    assert_true(occ_seen_look(p->file, NOW_NS, &h));
    assert_int_equal(h.open_minute, 0);
    assert_true(occ_seen_is_sent(&p->seen, p->file, &h));
    assert_int_equal(h.open_minute, 28333333);
}

static void what_is_gone_is_forgotten(void **state)
{
    struct place *p = *state;
    struct occ_seen_history h = {.file = {.inode = 1}};
    char path[32];
    put(p->file, "one", BEGIN_S);
    send_it(p);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(path, sizeof path, "/%d", i);
        occ_seen_put(&p->seen, path, &h);
    }
    assert_int_equal(p->seen.n, 1001);
    occ_seen_trim(&p->seen, 1000);
    assert_int_equal(p->seen.n, 1001);
    occ_seen_trim(&p->seen, 1);
    assert_int_equal(p->seen.n, 0);
    assert_false(is_sent(p));
    send_it(p);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(every_change_shows),
        T(a_recent_write_is_not_trusted),
        T(the_open_minute_stays_known),
        T(what_is_gone_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
