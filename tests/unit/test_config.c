/* config/: values of the example, refused texts with their messages, and the places of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"

/* A value for every setting, different from the default. */
static const char all_different[] =
    "database: {path: /a/b.db, max_size: 1G, max_total_size: 9G, sync: full,\n"
    "  chunk_rows: 2048}\n"
    "retention: {raw: 3d, seconds: 0, minutes: 2h, hours: 40d}\n"
    "socket:\n"
    "  path: /run/x.sock\n"
    "  mode: 0666\n"
    "collector:\n"
    "  commit_interval: 500ms\n"
    "  memory: 8M\n"
    "rings: {max_producers: 3, max_size: 1M}\n"
    "users: {split: none, max_programs: 7, max_ring_memory: 3M}\n"
    "record: {command_line: none}\n"
    "counters: {mode: gpm, interval: 5ms}\n"
    "overhead: {budget: 0.25}\n"
    "http: {socket: /a/m.sock, listen: '[::1]:9469', max_runs: 5, tls_cert: /a/c, tls_key: /a/k, client_ca: "
    "/a/a}\n"
    "identity: {dcgm_job_dir: /a/jobs}\n"
    "ship: {url: 'https://h:8443/', database: d, user: u, password_file: /a/p, ca_file: /a/x, cert_file: "
    "/a/y,\n"
    "  key_file: /a/z, interval: 2m, cluster: c, node: n, configs: 99, state: /a/s, metrics_file: /a/t, "
    "raw_jobs: j,\n"
    "  raw_until: u, raw_launches: 5000, users: hash, users_key_file: /a/l, otlp_url: v, otlp_profiles: "
    "true,\n"
    "  otlp_headers_file: /a/h, otlp_ca_file: /a/x,\n"
    "  otlp_cert_file: /a/y, otlp_key_file: /a/z}\n"
    "coverage: {mode: none}\n"
    "warehouse: {launches: 2d, minutes: 3d, ranks: 4d, hours: 3650d}\n"
    "cluster: {url: 'https://h:8443/', name: c, database: d, user: u, password_file: /a/p, ca_file: /a/x,\n"
    "  cert_file: /a/y, key_file: /a/z, command: 'x {node} {arguments}', nodes: n}\n"
    "log: {level: debug}\n";

static int parse(const char *text, struct occ_config *config, struct occ_error *err)
{
    return occ_config_parse("file.yaml", text, strlen(text), config, err);
}

static void assert_same(const struct occ_config *a, const struct occ_config *b)
{
#define X(section, key, kind, type, member, when, default_text, min, max)                                    \
    if (memcmp(&a->member, &b->member, sizeof a->member) != 0)                                               \
        fail_msg("%s.%s differs", #section, #key);
    OCC_CONFIG_SETTINGS(X)
#undef X
}

static void assert_all_differ(const struct occ_config *a, const struct occ_config *b)
{
#define X(section, key, kind, type, member, when, default_text, min, max)                                    \
    if (memcmp(&a->member, &b->member, sizeof a->member) == 0)                                               \
        fail_msg("%s.%s is the same", #section, #key);
    OCC_CONFIG_SETTINGS(X)
#undef X
}

static void every_default_is_valid(void **state)
{
    (void)state;
#define X(section, key, kind, type, member, when, default_text, min, max)                                    \
    {                                                                                                        \
        struct occ_config config = {0};                                                                      \
        struct occ_error err = OCC_ERROR_INIT;                                                               \
        if (occ_config_set(&config, #section "." #key, default_text, &err) != 0)                             \
            fail_msg("%s", err.message);                                                                     \
    }
    OCC_CONFIG_SETTINGS(X)
#undef X
}

static void the_example_says_every_default(void **state)
{
    (void)state;
    struct occ_config defaults, config;
    struct occ_error err = OCC_ERROR_INIT;
    occ_config_defaults(&defaults);
    occ_config_defaults(&config);
    assert_int_equal(parse(all_different, &config, &err), 0);
    assert_all_differ(&config, &defaults);
    if (occ_config_load(OCC_EXAMPLE_FILE, &config, &err) != 0)
        fail_msg("%s", err.message);
    assert_same(&config, &defaults);
}

static void values_arrive_in_their_units(void **state)
{
    (void)state;
    struct occ_config config;
    occ_config_defaults(&config);
    assert_int_equal(parse(all_different, &config, NULL), 0);
    assert_string_equal(config.database_path, "/a/b.db");
    assert_true(config.database_max_bytes == UINT64_C(1) << 30);
    assert_true(config.database_max_total_bytes == UINT64_C(9) << 30);
    assert_true(config.database_sync == 1);
    assert_true(config.chunk_rows == 2048);
    assert_true(config.socket_mode == 0666);
    assert_true(config.commit_interval_ns == 500000000);
    assert_true(config.counters_interval_ns == 5000000);
    assert_true(config.memory_bytes == 8u << 20);
    assert_true(config.budget_ppm == 2500);
    assert_true(config.log_level == 3);
}

static void what_is_not_said_stays(void **state)
{
    (void)state;
    struct occ_config defaults, config;
    occ_config_defaults(&defaults);
    occ_config_defaults(&config);
    assert_int_equal(parse("", &config, NULL), 0);
    assert_int_equal(parse("# nothing\n", &config, NULL), 0);
    assert_same(&config, &defaults);
    assert_int_equal(parse("database:\n  max_size: 0\n", &config, NULL), 0);
    assert_true(config.database_max_bytes == 0);
    config.database_max_bytes = defaults.database_max_bytes;
    assert_same(&config, &defaults);
}

/* Refused texts with the expected start of the message: the place, then the reason. */
static const struct {
    const char *text, *message;
} bad[] = {
    {"database:\n  path: /x\n  pth: /y\n", "file.yaml:3:3: unknown key 'pth'; did you mean 'path'?"},
    {"databse:\n  path: /x\n", "file.yaml:1:1: unknown key 'databse'; did you mean 'database'?"},
    {"log: {levl: info}\n", "file.yaml:1:7: unknown key 'levl'; did you mean 'level'?"},
    {"http:\n  listen: 9469\n",
     "file.yaml:2:11: http.listen: '9469' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469"},
    {"http:\n  listen: node:9469\n",
     "file.yaml:2:11: http.listen: 'node:9469' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469"},
    {"http:\n  listen: 127.0.0.1:65536\n",
     "file.yaml:2:11: http.listen: '127.0.0.1:65536' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469"},
    {"http:\n  listen: ::1:9469\n",
     "file.yaml:2:11: http.listen: '::1:9469' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469"},
    {"http:\n  listen: '[:1'\n",
     "file.yaml:2:11: http.listen: '[:1' is not ADDRESS:PORT, as 127.0.0.1:9469 or [::1]:9469"},
    {"ship:\n  url: \"https://h\\u00e4\"\n", "file.yaml:2:8: ship.url: only printable ASCII is allowed"},
    {"ship:\n  database: a;b\n",
     "file.yaml:2:13: ship.database: 'a;b' is not a name of letters, digits and _"},
    {"ship:\n  database: 1a\n", "file.yaml:2:13: ship.database: '1a' is not a name"},
    {"cluster: {interval: x}\n", "file.yaml:1:11: unknown key 'cluster.interval'"},
    {"zzzzzzzzzz: 1\n", "file.yaml:1:1: unknown key 'zzzzzzzzzz'"},
    {"log:\n  level: loud\n", "file.yaml:2:10: log.level: 'loud' is not one of error, warning, info, debug"},
    {"database:\n  sync: maybe\n", "file.yaml:2:9: database.sync: 'maybe' is not one of normal, full"},
    {"socket:\n  mode: 0777\n", "file.yaml:2:9: socket.mode: '0777' is not one of auto, 0600, 0660, 0666"},
    {"socket:\n  path: run/x\n", "file.yaml:2:9: socket.path: 'run/x' is not an absolute path"},
    {"collector:\n\n  commit_interval: 10ms\n",
     "file.yaml:3:20: collector.commit_interval: '10ms' is out of range"},
    {"collector:\n  commit_interval: 61s\n",
     "file.yaml:2:20: collector.commit_interval: '61s' is out of range"},
    {"collector:\n  commit_interval: soon\n",
     "file.yaml:2:20: collector.commit_interval: 'soon' is not a duration"},
    {"collector:\n  memory: 1k\n", "file.yaml:2:11: collector.memory: '1k' is out of range"},
    {"collector:\n  memory: 0\n", "file.yaml:2:11: collector.memory: '0' is out of range"},
    {"database:\n  max_size: 1M\n", "file.yaml:2:13: database.max_size: '1M' is out of range"},
    {"database:\n  max_size: 99999999T\n", "file.yaml:2:13: database.max_size: '99999999T' is more than"},
    {"database:\n  max_size: -1\n", "file.yaml:2:13: database.max_size: '-1' is not a size"},
    {"overhead:\n  budget: 0\n", "file.yaml:2:11: overhead.budget: '0' is out of range"},
    {"overhead:\n  budget: 101\n", "file.yaml:2:11: overhead.budget: '101' is out of range"},
    {"rings:\n  max_producers: 0\n", "file.yaml:2:18: rings.max_producers: '0' is out of range"},
    {"rings:\n  max_producers: 1e3\n", "file.yaml:2:18: rings.max_producers: '1e3' is not a whole number"},
    {"rings:\n  max_size: 1G\n", "file.yaml:2:13: rings.max_size: '1G' is out of range"},
    {"database:\n  path: [a, b]\n", "file.yaml:2:9: database.path: one value is expected"},
    {"database:\n  path: \"/a\\0b\"\n", "file.yaml:2:9: database.path: one value is expected"},
    {"database: /x\n", "file.yaml:1:11: database: keys with values are expected"},
    {"database: {[a]: b}\n", "file.yaml:1:12: database: a key is expected"},
    {"[a]: b\n", "file.yaml:1:1: the name of a section is expected"},
    {"- database\n", "file.yaml:1:1: sections are expected"},
    {"database:\n  path: /a\n  path: /b\n", "file.yaml:3:3: 'path' is given twice"},
    {"log:\n  level: info\nlog:\n  level: info\n", "file.yaml:3:1: 'log' is given twice"},
    {"log:\n  level: info\n---\nlog:\n", "file.yaml:3:1: a second document"},
    {"database: &x\n  path: /a\nsocket: *x\n", "file.yaml:3:9: socket: keys with values are expected"},
    {"log:\n  level: loud\n  levl: info\n  level: info\nrings:\n  max_producers: 0\n[a]: b\n",
     "file.yaml:2:10: log.level: 'loud' is not one of error, warning, info, debug; file.yaml:3:3: unknown "
     "key "
     "'levl'; did you mean 'level'?; file.yaml:4:3: 'level' is given twice; file.yaml:6:18: "
     "rings.max_producers: '0' is out of range"},
    {"database:\n\tpath: /a\n", "file.yaml:2:1: "},
    {"database:\n  path: \"/a\n", "file.yaml:3:1: "},
};

static void bad_files_are_refused_with_place_and_key(void **state)
{
    (void)state;
    struct occ_config before, config;
    occ_config_defaults(&before);
    config = before;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        if (parse(bad[i].text, &config, &err) != OCC_E_INVALID)
            fail_msg("accepted: %s", bad[i].text);
        if (strncmp(err.message, bad[i].message, strlen(bad[i].message)) != 0)
            fail_msg("for: %s\n    %s\nis no: %s", bad[i].text, err.message, bad[i].message);
        assert_same(&config, &before);
    }
}

static void hostile_bytes_do_not_reach_a_terminal(void **state)
{
    (void)state;
    static const char text[] = "log:\n  level: \"\\e[31mred\"\n";
    struct occ_config config;
    struct occ_error err = OCC_ERROR_INIT;
    occ_config_defaults(&config);
    assert_int_equal(parse(text, &config, &err), OCC_E_INVALID);
    assert_null(strchr(err.message, 27));
}

static char *temporary_file(size_t bytes)
{
    char *path = strdup("/tmp/occ-config-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(write(fd, i % 64 == 63 ? "\n" : "#", 1), 1);
    (void)close(fd);
    return path;
}

static void files_have_a_size_limit_and_must_be_files(void **state)
{
    (void)state;
    struct occ_config config;
    struct occ_error err = OCC_ERROR_INIT;
    occ_config_defaults(&config);
    char *fits = temporary_file(OCC_CONFIG_MAX_BYTES);
    char *large = temporary_file(OCC_CONFIG_MAX_BYTES + 1);
    assert_int_equal(occ_config_load(fits, &config, &err), 0);
    assert_int_equal(occ_config_load(large, &config, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "larger than"));
    assert_int_equal(occ_config_load("/nonexistent/occtrace.yaml", &config, &err), OCC_E_NOT_FOUND);
    assert_int_equal(occ_config_load("/tmp", &config, &err), OCC_E_INVALID);
    (void)unlink(large);
    assert_int_equal(mkfifo(large, 0600), 0);
    assert_int_equal(occ_config_load(large, &config, &err), OCC_E_INVALID);
    (void)unlink(large);
    (void)unlink(fits);
    free(large);
    free(fits);
}

static void one_setting_by_its_name(void **state)
{
    (void)state;
    struct occ_config config;
    struct occ_error err = OCC_ERROR_INIT;
    occ_config_defaults(&config);
    assert_int_equal(occ_config_set(&config, "log.level", "error", &err), 0);
    assert_true(config.log_level == 0);
    assert_int_equal(occ_config_set(&config, "log.levels", "error", &err), OCC_E_NOT_FOUND);
    assert_int_equal(occ_config_set(&config, "lo", "error", &err), OCC_E_NOT_FOUND);
    assert_int_equal(occ_config_set(&config, "log.level", "", &err), OCC_E_INVALID);
}

static void what_is_printed_can_be_loaded(void **state)
{
    (void)state;
    const char *const texts[] = {"", all_different,
                                 "database: {path: \"/tmp/it's: # here\"}\noverhead: {budget: 0.25}\n"
                                 "collector: {commit_interval: 1500ms}\nrings: {max_size: 65537}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct occ_config config, again;
        struct occ_error err = OCC_ERROR_INIT;
        char *text = NULL;
        size_t size = 0, at = 0;
        bool is_live;
        occ_config_defaults(&config);
        assert_int_equal(parse(texts[i], &config, &err), 0);
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        occ_config_print(&config, out);
        assert_int_equal(fclose(out), 0);
        occ_config_defaults(&again);
        if (parse(text, &again, &err) != 0)
            fail_msg("%s: %s", err.message, text);
        assert_same(&config, &again);
        assert_null(occ_config_next_change(&config, &again, &at, &is_live));
        free(text);
    }
}

static void changes_are_named(void **state)
{
    (void)state;
    struct occ_config a, b;
    size_t at = 0;
    bool is_live = true;
    occ_config_defaults(&a);
    b = a;
    b.database_path[0] = '/';
    b.max_producers++;
    b.ship_configs++; /* not a setting of the daemon */
    assert_string_equal(occ_config_next_change(&a, &b, &at, &is_live), "database.path");
    assert_false(is_live);
    assert_string_equal(occ_config_next_change(&a, &b, &at, &is_live), "rings.max_producers");
    assert_true(is_live);
    assert_null(occ_config_next_change(&a, &b, &at, &is_live));
}

static void settings_of_tls_need_each_other(void **state)
{
    static const char *const names[] = {"http.tls_cert", "http.tls_key", "http.client_ca"};
    (void)state;
    for (unsigned int set = 0; set < 8; set++) {
        struct occ_config config;
        occ_config_defaults(&config);
        for (unsigned int i = 0; i < 3; i++)
            assert_int_equal(occ_config_set(&config, names[i], set >> i & 1 ? "/a.pem" : "", NULL), 0);
        assert_int_equal(occ_config_check_groups(&config, NULL), set == 0 || set == 7 ? 0 : OCC_E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_valid),
        cmocka_unit_test(the_example_says_every_default),
        cmocka_unit_test(values_arrive_in_their_units),
        cmocka_unit_test(what_is_not_said_stays),
        cmocka_unit_test(bad_files_are_refused_with_place_and_key),
        cmocka_unit_test(hostile_bytes_do_not_reach_a_terminal),
        cmocka_unit_test(files_have_a_size_limit_and_must_be_files),
        cmocka_unit_test(one_setting_by_its_name),
        cmocka_unit_test(what_is_printed_can_be_loaded),
        cmocka_unit_test(changes_are_named),
        cmocka_unit_test(settings_of_tls_need_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
