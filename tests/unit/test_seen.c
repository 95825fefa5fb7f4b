/* The shipper reads no history that is unchanged since it was sent whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/seen/seen.h"
#include "cluster/state.h"

#define SECOND_NS INT64_C(1000000000)
#define BEGIN_S   1700000000
#define NOW_NS    ((BEGIN_S + 60) * SECOND_NS)

struct place {
    char directory[32], owner[48], file[64], log[72], state_path[72];
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

/* The directory looks as if it was changed long before NOW_NS. */
static void settle(const char *directory)
{
    const struct timespec times[] = {{.tv_sec = BEGIN_S}, {.tv_sec = BEGIN_S}};
    assert_int_equal(utimensat(AT_FDCWD, directory, times, 0), 0);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/occ-seen-XXXXXX");
    if (!mkdtemp(p->directory))
        return -1;
    (void)snprintf(p->owner, sizeof p->owner, "%s/u1000", p->directory);
    (void)snprintf(p->file, sizeof p->file, "%s/history.db", p->owner);
    (void)snprintf(p->log, sizeof p->log, "%s-wal", p->file);
    (void)snprintf(p->state_path, sizeof p->state_path, "%s/ship.db", p->directory);
    occ_seen_open(&p->seen);
    *state = p;
    return mkdir(p->owner, 0700);
}

static int tear_down(void **state)
{
    struct place *p = *state;
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", p->directory);
    int status = system(command);
    occ_seen_close(&p->seen);
    free(p);
    return status;
}

static void update(struct place *p)
{
    char path[64];
    struct occ_error err = OCC_ERROR_INIT;
    (void)snprintf(path, sizeof path, "%s/history.db", p->directory);
    assert_int_equal(occ_seen_update(&p->seen, path, NOW_NS, &err), 0);
}

/* Returns the index of the history at `path`; SIZE_MAX: no entry. */
static size_t index_of(const struct place *p, const char *path)
{
    for (size_t i = 0; i < p->seen.n; i++)
        if (strcmp(p->seen.entries[i].path, path) == 0)
            return i;
    return SIZE_MAX;
}

static enum occ_seen_state look(struct place *p, struct occ_seen_history *ret_now)
{
    update(p);
    size_t index = index_of(p, p->file);
    return index == SIZE_MAX ? OCC_SEEN_NONE : occ_seen_look(&p->seen, index, NOW_NS, ret_now);
}

static bool is_sent(struct place *p)
{
    struct occ_seen_history h;
    return look(p, &h) == OCC_SEEN_SENT;
}

static void send_it(struct place *p)
{
    struct occ_seen_history h;
    assert_int_equal(look(p, &h), OCC_SEEN_CHANGED);
    occ_seen_put(&p->seen, index_of(p, p->file), &h);
    assert_true(is_sent(p));
    assert_true(is_sent(p));
}

static void check_every_change(struct place *p)
{
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
    put(p->log, "", BEGIN_S + 60); /* a reader makes an empty log */
    assert_true(is_sent(p));
    put(p->log, "x", BEGIN_S); /* log */
    assert_false(is_sent(p));
    send_it(p);
    put(p->log, "y", BEGIN_S + 1);
    assert_false(is_sent(p));
    send_it(p);
    assert_int_equal(unlink(p->log), 0);
    assert_false(is_sent(p));
    send_it(p);
    assert_int_equal(unlink(p->file), 0);
    assert_false(is_sent(p));
}

static void every_change_shows(void **state)
{
    check_every_change(*state);
}

static void every_change_shows_to_a_watch(void **state)
{
    struct place *p = *state;
    settle(p->directory);
    check_every_change(p);
}

static void every_change_shows_without_watches(void **state)
{
    struct place *p = *state;
    settle(p->directory);
    (void)close(p->seen.events);
    p->seen.events = -1;
    check_every_change(p);
}

/* An entry counts as unchanged until its watch reports an event, even if its files differ. */
static void watched_files_are_not_looked_at(void **state)
{
    struct place *p = *state;
    put(p->file, "one", BEGIN_S);
    settle(p->directory);
    send_it(p);
    struct occ_seen_entry *entry = &p->seen.entries[index_of(p, p->file)];
    assert_true(entry->is_unchanged);
    entry->sent.file.bytes++;
    assert_true(is_sent(p));
    settle(p->owner); /* a change of the directory itself */
    assert_false(is_sent(p));
}

/* More events than the kernel queues: the history's event is lost. */
static void lost_events_are_made_up_for(void **state)
{
    struct place *p = *state;
    char other[48];
    int limit = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    assert_true(file && fscanf(file, "%d", &limit) == 1);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(other, sizeof other, "%s/x", p->directory);
    assert_int_equal(mkdir(other, 0700), 0);
    put(p->file, "one", BEGIN_S);
    settle(p->directory);
    send_it(p);
    assert_true(inotify_add_watch(p->seen.events, p->directory, IN_ATTRIB) > 0);
    for (int i = 0; i <= limit / 2; i++) { /* alternating: equal consecutive events merge */
        settle(other);
        settle(p->directory);
    }
    put(p->file, "two", BEGIN_S + 1);
    assert_false(is_sent(p));
    send_it(p);
}

/* Another directory tree replaces the old one; watches of the old tree report no event for this. */
static void a_tree_that_is_replaced_shows(void **state)
{
    struct place *p = *state;
    char old[48], command[160];
    put(p->file, "one", BEGIN_S);
    settle(p->directory);
    send_it(p);
    (void)snprintf(old, sizeof old, "%s.old", p->directory);
    assert_int_equal(rename(p->directory, old), 0);
    assert_true(mkdir(p->directory, 0700) == 0 && mkdir(p->owner, 0700) == 0);
    put(p->file, "other", BEGIN_S);
    settle(p->directory);
    assert_false(is_sent(p));
    send_it(p);
    (void)snprintf(command, sizeof command, "rm -r '%s'", old);
    assert_int_equal(system(command), 0);
}

/* A write through another name of the file causes no event in the watched directory. */
static void a_file_with_another_name_is_looked_at(void **state)
{
    static int (*const name[])(const char *target, const char *path) = {symlink, link};
    struct place *p = *state;
    char target[64];
    (void)snprintf(target, sizeof target, "%s/target", p->directory);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        put(target, "one", BEGIN_S + (int64_t)i);
        assert_int_equal(name[i](target, p->file), 0);
        settle(p->directory);
        send_it(p);
        put(target, "another", BEGIN_S);
        settle(p->directory);
        assert_false(is_sent(p));
        assert_int_equal(unlink(p->file), 0);
    }
}

/* Mounts over the directory; runs in a child process with a private mount namespace. Exit code 0: the change
 * was seen, 77: no permission to mount. */
static void run_with_a_mount(struct place *p)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        _exit(77);
    occ_seen_close(&p->seen);
    occ_seen_open(&p->seen);
    put(p->file, "one", BEGIN_S);
    settle(p->directory);
    send_it(p);
    if (mount("tmpfs", p->owner, "tmpfs", 0, NULL) != 0)
        _exit(77);
    put(p->file, "other", BEGIN_S);
    _exit(is_sent(p) ? 1 : 0);
}

static void a_mount_over_a_directory_shows(void **state)
{
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_with_a_mount(*state);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void a_recent_write_is_not_trusted(void **state)
{
    struct place *p = *state;
    struct occ_seen_history h;
    put(p->file, "one", BEGIN_S + 60);
    assert_int_equal(look(p, &h), OCC_SEEN_RECENT);
    put(p->file, "one", BEGIN_S);
    put(p->log, "one", BEGIN_S + 59);
    assert_int_equal(look(p, &h), OCC_SEEN_RECENT);
    put(p->log, "one", BEGIN_S);
    assert_int_equal(look(p, &h), OCC_SEEN_CHANGED);
}

static void the_open_minute_stays_known(void **state)
{
    struct place *p = *state;
    struct occ_seen_history h;
    put(p->file, "one", BEGIN_S);
    assert_int_equal(look(p, &h), OCC_SEEN_CHANGED);
    h.open_minute = 28333333;
    occ_seen_put(&p->seen, index_of(p, p->file), &h);
    for (int i = 0; i < 2; i++) { /* the second call relies on the watch, and does not look at files */
        assert_int_equal(look(p, &h), OCC_SEEN_SENT);
        assert_int_equal(h.open_minute, 28333333);
    }
}

static void new_histories_are_found(void **state)
{
    struct place *p = *state;
    char path[64], file[80];
    settle(p->directory);
    update(p);
    assert_int_equal(p->seen.n, 2); /* the owner's history and the daemon's */
    for (int i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof path, "%s/pod-%d", p->directory, i);
        (void)snprintf(file, sizeof file, "%s/history.db", path);
        assert_int_equal(mkdir(path, 0700), 0);
        update(p);
        assert_true(index_of(p, file) != SIZE_MAX);
    }
    for (size_t i = 1; i < p->seen.n; i++)
        assert_true(strcmp(p->seen.entries[i - 1].path, p->seen.entries[i].path) < 0);
    settle(p->directory); /* a file in an old directory changes nothing above it */
    put(p->file, "one", BEGIN_S);
    send_it(p);
}

static void open_state(const struct place *p, struct occ_state **ret_state, struct occ_seen *seen)
{
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_state_open(p->state_path, false, ret_state, &err), 0);
    assert_int_equal(occ_state_load_seen(*ret_state, seen, &err), 0);
}

static void close_and_open(struct place *p, struct occ_state **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_state_store_seen(*state, &p->seen, &err), 0);
    assert_false(p->seen.has_unstored);
    occ_state_close(*state);
    occ_seen_close(&p->seen);
    occ_seen_open(&p->seen);
    open_state(p, state, &p->seen);
}

static void the_next_start_knows_what_was_sent(void **state)
{
    struct place *p = *state;
    struct occ_state *kept;
    struct occ_seen_history h = {.open_minute = 0};
    open_state(p, &kept, &p->seen);
    put(p->file, "one", BEGIN_S);
    assert_int_equal(look(p, &h), OCC_SEEN_CHANGED);
    h.open_minute = 28333333;
    occ_seen_put(&p->seen, index_of(p, p->file), &h);
    close_and_open(p, &kept);
    assert_int_equal(look(p, &h), OCC_SEEN_SENT);
    assert_int_equal(h.open_minute, 28333333);
    put(p->file, "two", BEGIN_S + 1);
    assert_false(is_sent(p));
    close_and_open(p, &kept);
    assert_false(is_sent(p));
    send_it(p);
    close_and_open(p, &kept);
    assert_true(is_sent(p));
    occ_state_close(kept);
}

static void what_is_gone_is_forgotten(void **state)
{
    struct place *p = *state;
    struct occ_state *kept;
    open_state(p, &kept, &p->seen);
    put(p->file, "one", BEGIN_S);
    settle(p->directory);
    send_it(p);
    close_and_open(p, &kept);
    assert_int_equal(p->seen.n, 1);
    assert_int_equal(unlink(p->file), 0);
    assert_int_equal(rmdir(p->owner), 0);
    assert_false(is_sent(p));
    close_and_open(p, &kept);
    assert_int_equal(p->seen.n, 0);
    assert_int_equal(mkdir(p->owner, 0700), 0);
    put(p->file, "one", BEGIN_S);
    send_it(p);
    occ_state_close(kept);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(every_change_shows),
        T(every_change_shows_to_a_watch),
        T(every_change_shows_without_watches),
        T(watched_files_are_not_looked_at),
        T(lost_events_are_made_up_for),
        T(a_tree_that_is_replaced_shows),
        T(a_file_with_another_name_is_looked_at),
        T(a_mount_over_a_directory_shows),
        T(new_histories_are_found),
        T(the_next_start_knows_what_was_sent),
        T(a_recent_write_is_not_trusted),
        T(the_open_minute_stays_known),
        T(what_is_gone_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
