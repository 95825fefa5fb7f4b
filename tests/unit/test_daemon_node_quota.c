/* The choice of owners that shrink above database.max_total_size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/histories/histories.h"
#include "daemon/histories/node_quota.h"
#include "support/log.h"

#define MAX_OWNERS 6
#define KEEPS      OCC_NODE_KEEPS

struct row {
    const char *name;
    int64_t used;
    uint64_t bytes, target;
    bool is_spared;
};

static void targets_follow_the_rule(void **state)
{
    (void)state;
    static const struct {
        uint64_t max;
        struct row rows[MAX_OWNERS];
    } cases[] = {
        {100, {{"u1", 1, 60, KEEPS, false}, {"u2", 2, 40, KEEPS, false}}},
        /* the least recently used first, by no more than the excess */
        {100, {{"u1", 1, 60, 50, false}, {"u2", 2, 50, KEEPS, false}}},
        {100, {{"u2", 9, 60, 50, false}, {"u1", 8, 50, KEEPS, false}}},
        {100, {{"u2", 9, 65, KEEPS, false}, {"u1", 8, 60, 35, false}, {"u3", 1, 0, KEEPS, false}}},
        /* first down to the equal share, then the next owner */
        {90, {{"u1", 1, 50, 30, false}, {"u2", 2, 60, 30, false}, {"u3", 3, 30, KEEPS, false}}},
        /* owners below the equal share keep everything, however old their last use is */
        {100,
         {{"u1", 1, 5, KEEPS, false},
          {"u2", 2, 25, KEEPS, false},
          {"u3", 9, 900, 45, false},
          {"u4", 1, 25, KEEPS, false}}},
        /* an owner that could not shrink comes last, but other owners still keep their equal share */
        {90, {{"u1", 1, 60, KEEPS, true}, {"u2", 2, 60, 30, false}, {"u3", 3, 0, KEEPS, false}}},
        {90, {{"u1", 1, 80, 60, true}, {"u2", 2, 60, 30, false}, {"u3", 3, 0, KEEPS, false}}},
        /* after equal times, in the order of names */
        {100, {{"u2", 1, 55, KEEPS, false}, {"u1", 1, 55, 45, false}, {"u3", 1, 0, KEEPS, false}}},
        {0, {{"u1", 1, 7, 0, false}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_node_owner owners[MAX_OWNERS];
        size_t n = 0;
        for (const struct row *row = cases[i].rows; n < MAX_OWNERS && row->name; row++, n++) {
            owners[n] = (struct occ_node_owner){
                .bytes = row->bytes, .used_ns = row->used, .target = 77, .is_spared = row->is_spared};
            (void)snprintf(owners[n].owner.name, sizeof owners[n].owner.name, "%s", row->name);
        }
        occ_node_quota_share(owners, n, cases[i].max);
        for (size_t k = 0; k < n; k++) {
            const struct row *row = cases[i].rows;
            while (strcmp(row->name, owners[k].owner.name) != 0)
                row++;
            if (owners[k].target != row->target)
                fail_msg("case %zu, %s: %llu, not %llu", i, row->name, (unsigned long long)owners[k].target,
                         (unsigned long long)row->target);
        }
    }
    occ_node_quota_share(NULL, 0, 1);
}

/* Random owners: the limit is kept, and no owner shrinks below an equal share. */
static void the_limit_is_kept_and_so_is_each_share(void **state)
{
    (void)state;
    struct occ_node_owner owners[64];
    uint64_t random = 1;
    for (int round = 0; round < 10000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t n = 1 + (random >> 33) % 64;
        uint64_t max = (random >> 20) % 100000, total = 0;
        for (size_t i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            owners[i] = (struct occ_node_owner){.bytes = (random >> 40) % (i % 7 == 0 ? 100000 : 1000),
                                                .used_ns = (int64_t)(random >> 60),
                                                .is_spared = i == 3};
            (void)snprintf(owners[i].owner.name, sizeof owners[i].owner.name, "u%zu", i);
        }
        occ_node_quota_share(owners, n, max);
        for (size_t i = 0; i < n; i++) {
            uint64_t kept = owners[i].target == KEEPS ? owners[i].bytes : owners[i].target;
            total += kept;
            assert_true(kept == owners[i].bytes || (kept < owners[i].bytes && kept >= max / n));
        }
        assert_true(total <= max);
    }
}

/* An owner that returned between the census and the removal keeps its history. A poll removes one history. */
static void a_history_that_changed_since_the_census_stays(void **state)
{
    (void)state;
    static const struct {
        const char *change;
        bool stays;
    } cases[] = {{"true", false},
                 {"touch u2/used", true},
                 {"echo more >>u2/history.db", true},
                 {"echo new >u2/history.db-wal", true},
                 {"rm u2/history.db && echo it >u2/history.db", true}};
    occ_log_set_level(OCC_LOG_ERROR);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char directory[] = "/tmp/occtrace_quota_XXXXXX", path[64], command[256];
        assert_non_null(mkdtemp(directory));
        (void)snprintf(path, sizeof path, "%s/history.db", directory);
        const struct occ_histories_options options = {.path = path, .split = true, .max_total_bytes = 1};
        struct occ_histories all = {.options = &options};
        (void)snprintf(command, sizeof command,
                       "cd %s && mkdir u1 u2 && echo it >u1/history.db && echo it >u2/history.db && "
                       "touch -d @1000 u1/* && touch -d @2000 u2/*",
                       directory);
        assert_int_equal(system(command), 0);
        occ_node_quota_plan(&all, 1);
        occ_node_quota_poll(&all, all.node.next_ns);
        (void)snprintf(command, sizeof command, "cd %s && %s", directory, cases[i].change);
        assert_int_equal(system(command), 0);
        occ_node_quota_poll(&all, all.node.next_ns);
        (void)snprintf(command, sizeof command, "%s/u1/history.db", directory);
        assert_int_not_equal(access(command, F_OK), 0);
        (void)snprintf(command, sizeof command, "%s/u2/history.db", directory);
        if ((access(command, F_OK) == 0) != cases[i].stays)
            fail_msg("after %s", cases[i].change);
        occ_node_quota_free(&all.node);
        (void)snprintf(command, sizeof command, "rm -r %s", directory);
        assert_int_equal(system(command), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(targets_follow_the_rule),
                                       cmocka_unit_test(the_limit_is_kept_and_so_is_each_share),
                                       cmocka_unit_test(a_history_that_changed_since_the_census_stays)};
    return cmocka_run_group_tests_name("node quota", tests, NULL, NULL);
}
