/* Users and their subordinate uids from files, and names from name services that do not answer. This file
 * defines the functions of the name services: they wait while `is_hanging`. */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/owners/account_files.h"
#include "daemon/owners/accounts.h"
#include "daemon/collect/producers.h"
#include "support/groups.h"

/* ---- the name services ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_hanging;
static _Atomic unsigned int lookups;

static void hang(bool on)
{
    (void)pthread_mutex_lock(&mutex);
    is_hanging = on;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

static void wait_for_server(void)
{
    (void)pthread_mutex_lock(&mutex);
    lookups++;
    while (is_hanging)
        (void)pthread_cond_wait(&changed, &mutex);
    (void)pthread_mutex_unlock(&mutex);
}

/* Knows users "remoteN" with the number N, from 5000 on. */
int getpwuid_r(uid_t uid, struct passwd *account, char *buffer, size_t size, struct passwd **found)
{
    wait_for_server();
    *found = uid >= 5000 && uid < 6000 ? account : NULL;
    account->pw_uid = uid;
    account->pw_name = buffer;
    (void)snprintf(buffer, size, "remote%u", (unsigned int)uid);
    return 0;
}

int getpwnam_r(const char *name, struct passwd *account, char *buffer, size_t size, struct passwd **found)
{
    unsigned int uid = 0;
    wait_for_server();
    *found = sscanf(name, "remote%u", &uid) == 1 ? account : NULL;
    account->pw_uid = uid;
    account->pw_name = buffer;
    (void)snprintf(buffer, size, "%s", name);
    return *found ? 0 : ENOENT;
}

/* ---- files ---- */

static char root[64];
static struct occ_accounts *accounts;

static int make_root(void **state)
{
    char path[96];
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/occtrace-accounts-XXXXXX");
    if (!mkdtemp(root) || snprintf(path, sizeof path, "mkdir %s/etc", root) < 0 || system(path) != 0)
        return -1;
    hang(false);
    return occ_accounts_new(root, &accounts, NULL);
}

static int remove_root(void **state)
{
    char command[96];
    (void)state;
    hang(false);
    occ_accounts_free(accounts);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* Replaces the file, as useradd does. */
static void put_file(const char *name, const char *text)
{
    char path[96], fresh[96];
    (void)snprintf(path, sizeof path, "%s/etc/%s", root, name);
    (void)snprintf(fresh, sizeof fresh, "%s/etc/%s.new", root, name);
    FILE *file = fopen(fresh, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, path), 0);
}

/* ---- tests ---- */

static void lines_of_subuid(void **state)
{
    (void)state;
    put_file("passwd", "root:x:0:0::/root:/bin/sh\n+::::::\nann:x:1003:1003::/:\nbroken:x\nneg:x:-1:0::/:\n");
    put_file("subuid", "1000:100000:65536\nroot:300000:10\nnobody-of-this-name:200000:65536\n"
                       "1001:165536:65536\nbroken\n:1:\n:1:1\n1009:1:2:3\nann:400000:10\n0:410000:10\n"
                       "1002:4294967290:65536");
    static const struct {
        uint32_t uid, owner;
    } cases[] = {{99999, 99999},
                 {100000, 1000},
                 {165535, 1000},
                 {165536, 1001},
                 {300001, 300001} /* never root's */,
                 {410001, 410001},
                 {400009, 1003},
                 {400010, 400010},
                 {4294967295u, 1002},
                 {4294967289u, 4294967289u},
                 {0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(occ_accounts_owner_uid(accounts, cases[i].uid), cases[i].owner);
}

/* A file of 1 MB, with the wanted user at the end. */
static void many_users(void **state)
{
    (void)state;
    size_t size = 1 << 20, used = 0;
    char *text = malloc(size + 64);
    assert_non_null(text);
    for (unsigned int i = 0; used < size; i++)
        used += (size_t)snprintf(text + used, 64, "%u:%u:10\n", 10000 + i, 200000 + i * 10);
    (void)snprintf(text + used, 64, "1000:100000:65536\n");
    put_file("subuid", text);
    free(text);
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 1000);
    assert_int_equal(occ_accounts_owner_uid(accounts, 200011), 10001);
}

static void changed_files_are_read_again(void **state)
{
    (void)state;
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 100001);
    put_file("subuid", "1000:100000:65536\n");
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 1000);
    put_file("subuid", "1001:100000:65536\n"); /* same size as before */
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 1001);
    put_file("subuid", "ann:100000:65536\n");
    put_file("passwd", "ann:x:1003:1003::/:\n");
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 1003);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/etc/subuid", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 100001);
}

static void pause_a_little(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    (void)nanosleep(&ms, NULL);
}

static void names_come_from_a_thread(void **state)
{
    (void)state;
    char name[OCC_USER_NAME_BYTES] = "";
    put_file("passwd", "ann:x:1003:1003::/:\n");
    hang(true);
    assert_int_equal(occ_accounts_name(accounts, 1003, name),
                     OCC_NAME_KNOWN); /* a local user needs no server */
    assert_string_equal(name, "ann");
    for (int i = 0; i < 3; i++)
        assert_int_equal(occ_accounts_name(accounts, 5001, name), OCC_NAME_WAITS);
    hang(false);
    while (occ_accounts_name(accounts, 5001, name) == OCC_NAME_WAITS)
        pause_a_little();
    assert_string_equal(name, "remote5001");
    while (occ_accounts_name(accounts, 7000, name) == OCC_NAME_WAITS)
        pause_a_little();
    assert_int_equal(occ_accounts_name(accounts, 7000, name), OCC_NAME_NONE);
    unsigned int before = lookups;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(occ_accounts_name(accounts, 5001, name), OCC_NAME_KNOWN);
        assert_int_equal(occ_accounts_name(accounts, 7000, name), OCC_NAME_NONE);
    }
    assert_int_equal(lookups, before);
}

static void subuids_of_a_user_without_a_name_are_one_owner(void **state)
{
    (void)state;
    put_file("subuid", "remote5002:100000:65536\n");
    hang(true);
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 100000);
    assert_int_equal(occ_accounts_owner_uid(accounts, 100777), 100000);
    hang(false);
    while (occ_accounts_owner_uid(accounts, 100001) == 100000)
        pause_a_little();
    assert_int_equal(occ_accounts_owner_uid(accounts, 100001), 5002);
}

static void nothing_waits_for_a_lookup_at_the_end(void **state)
{
    char name[OCC_USER_NAME_BYTES] = "";
    (void)state;
    hang(true);
    assert_int_equal(occ_accounts_name(accounts, 5003, name), OCC_NAME_WAITS);
    occ_accounts_free(accounts);
    accounts = NULL;
    hang(false);
}

static void a_run_has_its_number_until_the_name_comes(void **state)
{
    struct occ_producer producer = {.run.row.uid = 5004, .identity = {.uid = 5004, .owner_uid = 5004}};
    (void)state;
    hang(true);
    assert_false(occ_producer_take_name(&producer, accounts));
    assert_null(producer.run.row.user);
    hang(false);
    while (!occ_producer_take_name(&producer, accounts))
        pause_a_little();
    assert_string_equal(producer.run.row.user, "remote5004");
    assert_true(producer.run.row_changed);
    assert_false(occ_producer_take_name(&producer, accounts)); /* only once */
    free((void *)(uintptr_t)producer.run.row.user);
}

static void groups_of_the_file(void **state)
{
    char path[96];
    uint32_t gid = 0;
    (void)state;
    put_file("group", "occtrace-shipper:x:1:\noccid\noccship:x:bad:\nocc:x:977:ann,bob\nlast:!:978");
    (void)snprintf(path, sizeof path, "%s/etc/group", root);
    assert_true(occ_group_find(path, "occ", &gid));
    assert_int_equal(gid, 977);
    assert_true(occ_group_find(path, "last", &gid));
    assert_int_equal(gid, 978);
    static const char *const none[] = {"occtrace-ship", "occid", "occship", "ann", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(occ_group_find(path, none[i], &gid));
    assert_false(occ_group_find("/nowhere", "occ", &gid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_of_subuid, make_root, remove_root),
        cmocka_unit_test_setup_teardown(many_users, make_root, remove_root),
        cmocka_unit_test_setup_teardown(changed_files_are_read_again, make_root, remove_root),
        cmocka_unit_test_setup_teardown(names_come_from_a_thread, make_root, remove_root),
        cmocka_unit_test_setup_teardown(subuids_of_a_user_without_a_name_are_one_owner, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(nothing_waits_for_a_lookup_at_the_end, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_run_has_its_number_until_the_name_comes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(groups_of_the_file, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
