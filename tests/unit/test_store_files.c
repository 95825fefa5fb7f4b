/*
 * File systems that may hold a history, and disks that refuse: network file systems, a file system without
 * shared memory, a disk that is full for a while, every write failing once. The linker replaces statfs
 * (--wrap); SQLite's VFS takes our pwrite.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "test_store_world.h"

#include "store/packed_history.h"

#define BEGIN  INT64_C(1700000000000000000)
#define MINUTE INT64_C(60000000000)

static long file_system; /* f_type that statfs reports; 0: the true one */

int __real_statfs(const char *path, struct statfs *ret);
int __wrap_statfs(const char *path, struct statfs *ret);

int __wrap_statfs(const char *path, struct statfs *ret)
{
    int rc = __real_statfs(path, ret);
    if (rc == 0 && file_system)
        ret->f_type = file_system;
    return rc;
}

/* ---- SQLite's writes ---- */

static bool disk_is_full;      /* no file may grow */
static long writes_until = -1; /* until one fails with EIO; < 0: none does */

static ssize_t faulty_pwrite(int fd, const void *data, size_t n, off_t offset)
{
    struct stat status;
    if (writes_until >= 0 && writes_until-- == 0) {
        errno = EIO;
        return -1;
    }
    if (disk_is_full && fstat(fd, &status) == 0 && offset + (off_t)n > status.st_size) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, data, n, offset);
}

static int replace_writes(void **state)
{
    (void)state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int replaced = 0;
    for (const char *const *name = (const char *const[]){"pwrite", "pwrite64", NULL}; *name; name++)
        replaced += vfs->xSetSystemCall(vfs, *name, (sqlite3_syscall_ptr)faulty_pwrite) == SQLITE_OK;
    return replaced > 0 ? 0 : -1;
}

/* ---- file systems ---- */

static void refuses_to_write(struct world *w, const char *name)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    assert_int_equal(
        occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, &err),
        OCC_E_INVALID);
    assert_non_null(strstr(err.message, name));
    assert_non_null(strstr(err.message, "--db FILE"));
    assert_int_equal(access(w->path, F_OK), -1); /* not even an empty file */
}

static void network_file_systems_are_refused(void **state)
{
    (void)state;
    struct world w = {0};
    static const struct {
        long magic;
        const char *name;
    } cases[] = {{0x6969, "NFS"}, {0x0bd00bd0, "Lustre"}, {(long)0xff534d42, "CIFS"}, {0x00c36400, "Ceph"}};
    world_make_directory(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_system = cases[i].magic;
        refuses_to_write(&w, cases[i].name);
        /* a 32-bit f_type becomes a negative long */
        file_system = (long)(int32_t)cases[i].magic;
        refuses_to_write(&w, cases[i].name);
    }
    file_system = 0;
    world_remove_directory(&w);
}

/* A history that its writer closed can be read from a network file system; one with a log cannot. */
static void closed_histories_are_read_from_a_network(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    world_make_directory(&w);
    world_open(&w);
    world_append(&w, 0, BEGIN, MINUTE, 50);
    assert_int_equal(occ_store_commit(w.store, &err), 0);
    file_system = 0x6969;
    assert_int_equal(occ_store_open(w.path, &reading, &store, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "NFS"));
    file_system = 0;
    assert_int_equal(occ_store_finish(w.store, &err), 0);
    occ_store_close(w.store);
    file_system = 0x6969;
    assert_int_equal(occ_store_open(w.path, &reading, &store, &err), 0);
    world_check(&w, store, &(struct occ_filter){0});
    occ_store_close(store);
    file_system = 0;
    world_remove_directory(&w);
}

/* An open rollback journal keeps PRAGMA journal_mode=WAL from taking effect: locking_mode=EXCLUSIVE by a VFS
 * without shared memory does the same. Here the VFS hides its shared memory. */
static int open_without_shared_memory(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                                      int *ret_flags)
{
    static sqlite3_io_methods methods;
    sqlite3_vfs *real = vfs->pAppData;
    int rc = real->xOpen(real, name, file, flags, ret_flags);
    if (rc == SQLITE_OK && file->pMethods && (flags & SQLITE_OPEN_MAIN_DB)) {
        methods = *file->pMethods;
        methods.iVersion = 1;
        file->pMethods = &methods;
    }
    return rc;
}

static void the_answer_to_wal_is_checked(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL), vfs = *real;
    vfs.zName = "without-shared-memory";
    vfs.pAppData = real;
    vfs.xOpen = open_without_shared_memory;
    world_make_directory(&w);
    assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
    int rc = occ_store_open(w.path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, &err);
    assert_int_equal(sqlite3_vfs_unregister(&vfs), SQLITE_OK);
    assert_int_equal(sqlite3_vfs_register(real, 1), SQLITE_OK);
    assert_int_equal(rc, OCC_E_INVALID);
    assert_non_null(strstr(err.message, "write-ahead log"));
    world_remove_directory(&w);
}

/* ---- disks ---- */

/* Nothing is lost by commits that fail for lack of room. */
static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    world_make_directory(&w);
    world_open(&w);
    world_append(&w, 0, BEGIN, MINUTE, 5000);
    assert_int_equal(occ_store_commit(w.store, &err), 0);
    disk_is_full = true;
    for (int i = 1; i < 4; i++) {
        world_append(&w, 1, BEGIN + i * MINUTE, MINUTE, 5000);
        assert_int_equal(occ_store_commit(w.store, &err), OCC_E_FULL);
    }
    disk_is_full = false;
    assert_int_equal(occ_store_finish(w.store, &err), 0);
    world_check(&w, w.store, &(struct occ_filter){0});
    world_check_rollups(&w, w.store);
    assert_int_equal(world_number(w.store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

/* Below the quota, commits on a full disk succeed or return OCC_E_FULL, and recording continues once there is
 * room again. */
static void a_full_disk_below_the_quota_recovers(void **state)
{
    (void)state;
    struct world w = {.options = {.max_bytes = UINT64_C(1) << 30}};
    struct occ_error err = OCC_ERROR_INIT;
    world_make_directory(&w);
    world_open(&w);
    world_append(&w, 0, BEGIN, MINUTE, 20000);
    assert_int_equal(occ_store_commit(w.store, &err), 0);
    disk_is_full = true;
    for (int i = 1; i < 6; i++) {
        world_append(&w, 1, BEGIN + i * MINUTE, MINUTE, 5000);
        int rc = occ_store_commit(w.store, &err);
        assert_true(rc == 0 || rc == OCC_E_FULL);
    }
    disk_is_full = false;
    world_append(&w, 1, BEGIN + 7 * MINUTE, MINUTE, 10);
    assert_int_equal(occ_store_finish(w.store, &err), 0);
    world_check_questions(&w, w.store, &(struct occ_filter){0});
    assert_int_equal(world_number(w.store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

/* A bulk transaction that failed stays failed: later writes must not become transactions of their own. */
static void a_failed_bulk_transaction_writes_nothing_more(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    world_make_directory(&w);
    world_open(&w);
    assert_int_equal(occ_store_begin_bulk(w.store, &err), 0);
    world_append(&w, 0, BEGIN, MINUTE, 100000); /* more than the page cache holds: written before the end */
    disk_is_full = true;
    int rc = occ_store_commit(w.store, &err);
    if (rc == 0)
        rc = occ_store_end_bulk(w.store, &err);
    assert_int_equal(rc, OCC_E_FULL);
    disk_is_full = false;
    assert_int_equal(occ_store_commit(w.store, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "earlier write"));
    assert_int_equal(occ_store_end_bulk(w.store, &err), OCC_E_INVALID);
    assert_int_equal(world_number(w.store, "SELECT count(*) FROM launch"), 0);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

/* A log that could not be checkpointed has commits that the file lacks: reopening must keep it. */
static void a_history_that_is_opened_anew_keeps_its_log(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    world_make_directory(&w);
    world_open(&w);
    world_append(&w, 0, BEGIN, MINUTE, 2000);
    assert_int_equal(occ_store_commit(w.store, &err), 0);
    assert_int_equal(occ_store_begin_bulk(w.store, &err), 0);
    world_append(&w, 0, BEGIN + MINUTE, MINUTE, 100000);
    disk_is_full = true;
    int rc = occ_store_commit(w.store, &err);
    if (rc == 0)
        rc = occ_store_end_bulk(w.store, &err);
    assert_int_equal(rc, OCC_E_FULL);
    assert_string_equal(occ_store_reopen_reason(w.store), "had a transaction that failed");
    assert_int_not_equal(occ_store_reopen(w.store, &err), 0);
    assert_string_equal(occ_store_reopen_reason(w.store), "had a transaction that failed");
    disk_is_full = false;
    assert_int_equal(occ_store_reopen(w.store, &err), 0);
    assert_null(occ_store_reopen_reason(w.store));
    assert_int_equal(world_number(w.store, "SELECT sum(launches) FROM stored_run"), 2000);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

/* Opens, appends, commits and closes until something fails. */
static int live(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    struct occ_store_launch launch = {.start_ns = BEGIN, .duration_ns = 10, .config = (uint32_t)w->config[0]};
    int rc = occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, &err);
    for (int i = 0; i < 3 && rc == 0; i++) {
        launch.start_ns += MINUTE;
        rc = occ_store_append(store, w->run[0], w->config_device[0], &launch, 1, &err);
        if (rc == 0)
            rc = occ_store_commit(store, &err);
    }
    if (rc == 0)
        rc = occ_store_finish(store, &err);
    occ_store_close(store);
    return rc;
}

static void every_write_may_fail(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    int failures = 0, rc = -1;
    world_make_directory(&w);
    world_open(&w);
    assert_int_equal(occ_store_finish(w.store, &err), 0);
    occ_store_close(w.store);
    for (long n = 0; writes_until < 0; n++) {
        writes_until = n;
        rc = live(&w);
        failures += rc != 0;
        if (writes_until >= 0) /* fewer than n writes in total: each has failed once */
            break;
        assert_int_equal(
            occ_store_open(w.path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, &err), 0);
        assert_int_equal(world_number(store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
        occ_store_close(store);
    }
    writes_until = -1;
    assert_int_equal(rc, 0);
    assert_true(failures > 3);
    world_remove_directory(&w);
}

/* ---- packed history ---- */

static void add_rows(sqlite3_str *text, struct occ_store *store, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            sqlite3_str_appendf(text, "%s\n", sqlite3_column_text(stmt, i));
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

/* All objects of the schema, their descriptions, and the properties of the file. The caller frees the text.
 */
static char *describe(struct occ_store *store)
{
    static const char *const questions[] = {"SELECT type, name, sql FROM sqlite_master",
                                            "SELECT rowid, * FROM column_help",
                                            "SELECT * FROM stored_retention",
                                            "SELECT id FROM stored_identity",
                                            "PRAGMA page_size",
                                            "PRAGMA page_count",
                                            "PRAGMA auto_vacuum",
                                            "PRAGMA user_version",
                                            "PRAGMA application_id",
                                            "PRAGMA journal_mode",
                                            "PRAGMA synchronous",
                                            "PRAGMA encoding",
                                            "PRAGMA integrity_check"};
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        add_rows(text, store, questions[i]);
    return sqlite3_str_finish(text);
}

/* Opens the history of `w`, which may not exist yet, and describes it. */
static char *open_with(struct world *w, const struct occ_packed_history *empty)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE, .empty = empty};
    assert_int_equal(occ_store_open(w->path, &options, &w->store, &err), 0);
    return describe(w->store);
}

static void start_again(struct world *w)
{
    occ_store_close(w->store);
    w->store = NULL;
    assert_int_equal(unlink(w->path), 0);
}

static void a_packed_history_is_the_one_that_sqlite_makes(void **state)
{
    (void)state;
    struct world w = {0};
    struct stat status;
    world_make_directory(&w);
    char *made = open_with(&w, NULL);
    assert_non_null(strstr(made, "launch_config"));
    assert_non_null(strstr(made, "wal"));
    start_again(&w);
    mode_t before = umask(027);
    assert_true(occ_packed_history_write(&occ_packed_history, w.path));
    assert_int_equal(stat(w.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(status.st_size, occ_packed_history.bytes);
    (void)umask(before);
    assert_int_equal(unlink(w.path), 0);
    char *unpacked = open_with(&w, &occ_packed_history);
    assert_string_equal(unpacked, made);
    occ_store_close(w.store);
    sqlite3_free(unpacked);
    sqlite3_free(made);
    world_remove_directory(&w);
}

static char *identity_of(struct occ_store *store)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    add_rows(text, store, "SELECT identity FROM stored_identity");
    return sqlite3_str_finish(text);
}

/* The warehouse and later writers tell files apart by it. */
static void each_packed_history_has_its_own_identity(void **state)
{
    (void)state;
    struct world w = {0};
    char *first = NULL;
    world_make_directory(&w);
    for (int i = 0; i < 2; i++) {
        sqlite3_free(open_with(&w, &occ_packed_history));
        char *identity = identity_of(w.store);
        assert_true(!first || strcmp(identity, first) != 0);
        sqlite3_free(first);
        first = identity;
        start_again(&w);
    }
    assert_string_not_equal(first, "1234605616436508552\n"); /* of the build */
    sqlite3_free(first);
    world_remove_directory(&w);
}

/* A killed daemon leaves the log; then somebody removes the file alone. */
static void a_packed_history_never_meets_an_old_log(void **state)
{
    (void)state;
    struct world w = {0};
    struct stat status;
    char log[sizeof w.path + 8], kept[sizeof w.path + 8];
    world_make_directory(&w);
    (void)snprintf(log, sizeof log, "%s-wal", w.path);
    (void)snprintf(kept, sizeof kept, "%s-kept", w.path);
    char *made = open_with(&w, NULL), *identity = identity_of(w.store);
    assert_int_equal(link(log, kept), 0);
    start_again(&w);
    assert_int_equal(rename(kept, log), 0);
    assert_int_equal(stat(log, &status), 0);
    assert_true(status.st_size > 0);
    char *again = open_with(&w, &occ_packed_history);
    assert_string_equal(again, made);
    char *new_identity = identity_of(w.store);
    assert_string_not_equal(new_identity, identity);
    occ_store_close(w.store);
    sqlite3_free(new_identity);
    sqlite3_free(identity);
    sqlite3_free(again);
    sqlite3_free(made);
    world_remove_directory(&w);
}

/* SQLite makes the tables in a file that exists, and where the packed history is of no use. */
static void a_packed_history_replaces_nothing(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_packed_history damaged = occ_packed_history;
    damaged.bytes = SIZE_MAX; /* no file is so long */
    world_make_directory(&w);
    FILE *file = fopen(w.path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_false(occ_packed_history_write(&occ_packed_history, w.path));
    char *made = open_with(&w, &occ_packed_history);
    start_again(&w);
    assert_false(
        occ_packed_history_write(&occ_packed_history, "/proc/self/history.db")); /* O_TMPFILE fails */
    assert_false(occ_packed_history_write(&damaged, w.path));
    assert_int_equal(access(w.path, F_OK), -1);
    char *remade = open_with(&w, &damaged);
    assert_string_equal(remade, made);
    occ_store_close(w.store);
    sqlite3_free(remade);
    sqlite3_free(made);
    world_remove_directory(&w);
}

/* Only a missing file of a local file system is made before the history is opened. */
static void a_missing_history_is_made_ahead(void **state)
{
    (void)state;
    struct world w = {0};
    struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    world_make_directory(&w);
    assert_false(occ_store_create(w.path, &options)); /* no file to begin with */
    options.empty = &occ_packed_history;
    file_system = 0x6969; /* NFS */
    assert_false(occ_store_create(w.path, &options));
    assert_int_equal(access(w.path, F_OK), -1);
    file_system = 0;
    assert_true(occ_store_create(w.path, &options));
    assert_false(occ_store_create(w.path, &options));
    char *opened = open_with(&w, &occ_packed_history);
    char *identity = identity_of(w.store);
    start_again(&w);
    char *made = open_with(&w, NULL);
    assert_string_equal(opened, made);
    assert_string_not_equal(identity, "1234605616436508552\n"); /* of the build */
    occ_store_close(w.store);
    sqlite3_free(opened);
    sqlite3_free(identity);
    sqlite3_free(made);
    world_remove_directory(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_file_systems_are_refused),
        cmocka_unit_test(closed_histories_are_read_from_a_network),
        cmocka_unit_test(a_packed_history_is_the_one_that_sqlite_makes),
        cmocka_unit_test(each_packed_history_has_its_own_identity),
        cmocka_unit_test(a_packed_history_never_meets_an_old_log),
        cmocka_unit_test(a_packed_history_replaces_nothing),
        cmocka_unit_test(a_missing_history_is_made_ahead),
        cmocka_unit_test(the_answer_to_wal_is_checked),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_full_disk_below_the_quota_recovers),
        cmocka_unit_test(a_failed_bulk_transaction_writes_nothing_more),
        cmocka_unit_test(a_history_that_is_opened_anew_keeps_its_log),
        cmocka_unit_test(every_write_may_fail),
    };
    return cmocka_run_group_tests(tests, replace_writes, NULL);
}
