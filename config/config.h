/*
 * occtrace.yaml: the daemon's settings, each with its kind, range and default in one table. The file of the
 * same name in this directory documents them and states exactly the defaults (a test compares the two).
 *
 * The file holds sections of scalars. Unknown sections and keys, keys given twice, aliases, a second
 * document, and a file over OCC_CONFIG_MAX_BYTES are errors; a setting that the file omits keeps its value.
 * No global state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "support/error.h"

#define OCC_CONFIG_MAX_BYTES  (64u * 1024u)
#define OCC_CONFIG_TEXT_BYTES 1024 /* longest scalar, with its NUL */
#define OCC_CONFIG_AGE_MIN_NS INT64_C(3600000000000)
#define OCC_CONFIG_AGE_MAX_NS INT64_C(3153600000000000000) /* 36500 days */
#define OCC_CONFIG_KEEP_MIN_NS                                                                               \
    INT64_C(172800000000000) /* 2 days: an hour is added up a day after its minutes */
#define OCC_CONFIG_KEEP_MAX_NS INT64_C(315360000000000000) /* 3650 days: a DateTime ends in 2106 */
#define OCC_CONFIG_SHIP_MIN_NS INT64_C(10000000000)
#define OCC_CONFIG_SHIP_MAX_NS INT64_C(3600000000000)

/*
 * X(section, key, kind, type, member, when, default, min, max). `when`: the time when a running daemon uses
 * a new value: LIVE: at a reload; RESTART: after a restart; OTHER: another program's setting. Kinds:
 *
 *   PATH      absolute path; "": the default path of support/paths.h
 *   TEXT      printable ASCII
 *   NAME      name of a database: letters, digits and _, not beginning with a digit
 *   COMMAND   words with {node}, and {command} or {arguments}
 *   BYTES     bytes, min...max
 *   QUOTA     bytes, min...max, or 0 for no limit
 *   DURATION  nanoseconds, min...max
 *   AGE       nanoseconds, min...max, or 0 for no limit
 *   COUNT     min...max
 *   MODE      0600, 0660 or 0666; 0: auto
 *   SYNC      0 normal, 1 full
 *   LEVEL     enum occ_log_level
 *   SPLIT     0 owner, 1 none
 *   USERS     0 name, 1 hash, 2 none
 *   RECORD    0 auto, 1 full, 2 program, 3 none
 *   COUNTERS  0 auto, 1 pm, 2 gpm, 3 none
 *   COVERAGE  0 auto, 1 none
 *   SWITCH    0 false, 1 true
 *   PERCENT   parts per million of a percentage of 0.0001 to 100
 */
#define OCC_CONFIG_SETTINGS(X)                                                                               \
    X(database, path, PATH, occ_config_text, database_path, RESTART, "", 0, 0)                               \
    X(database, max_size, QUOTA, uint64_t, database_max_bytes, LIVE, "20G", UINT64_C(16) << 20,              \
      UINT64_C(1) << 46)                                                                                     \
    X(database, max_total_size, QUOTA, uint64_t, database_max_total_bytes, LIVE, "0", UINT64_C(16) << 20,    \
      UINT64_C(1) << 50)                                                                                     \
    X(database, sync, SYNC, uint64_t, database_sync, RESTART, "normal", 0, 0)                                \
    X(database, chunk_rows, COUNT, uint64_t, chunk_rows, RESTART, "65536", 1024, 1u << 18)                   \
    X(retention, raw, AGE, int64_t, raw_age_ns, LIVE, "0", OCC_CONFIG_AGE_MIN_NS, OCC_CONFIG_AGE_MAX_NS)     \
    X(retention, seconds, AGE, int64_t, seconds_age_ns, LIVE, "30d", OCC_CONFIG_AGE_MIN_NS,                  \
      OCC_CONFIG_AGE_MAX_NS)                                                                                 \
    X(retention, minutes, AGE, int64_t, minutes_age_ns, LIVE, "30d", OCC_CONFIG_AGE_MIN_NS,                  \
      OCC_CONFIG_AGE_MAX_NS)                                                                                 \
    X(retention, hours, AGE, int64_t, hours_age_ns, LIVE, "400d", OCC_CONFIG_AGE_MIN_NS,                     \
      OCC_CONFIG_AGE_MAX_NS)                                                                                 \
    X(socket, path, PATH, occ_config_text, socket_path, RESTART, "", 0, 0)                                   \
    X(socket, mode, MODE, uint64_t, socket_mode, RESTART, "auto", 0, 0)                                      \
    X(collector, commit_interval, DURATION, int64_t, commit_interval_ns, LIVE, "1s", 100000000,              \
      UINT64_C(60000000000))                                                                                 \
    X(collector, memory, BYTES, uint64_t, memory_bytes, LIVE, "16M", UINT64_C(4) << 20, UINT64_C(32) << 20)  \
    X(rings, max_producers, COUNT, uint64_t, max_producers, LIVE, "1024", 1, 16384)                          \
    X(rings, max_size, BYTES, uint64_t, max_ring_bytes, LIVE, "512M", UINT64_C(64) << 10,                    \
      UINT64_C(512) << 20)                                                                                   \
    X(users, split, SPLIT, uint64_t, users_split, RESTART, "owner", 0, 0)                                    \
    X(users, max_programs, COUNT, uint64_t, max_user_producers, LIVE, "128", 1, 16384)                       \
    X(users, max_ring_memory, BYTES, uint64_t, max_user_ring_bytes, LIVE, "2G", UINT64_C(1) << 20,           \
      UINT64_C(1) << 40)                                                                                     \
    X(record, command_line, RECORD, uint64_t, record_command_line, LIVE, "auto", 0, 0)                       \
    X(counters, mode, COUNTERS, uint64_t, counters_mode, RESTART, "none", 0, 0)                              \
    X(counters, interval, DURATION, int64_t, counters_interval_ns, RESTART, "1ms", 1000000, 1000000000)      \
    X(overhead, budget, PERCENT, uint64_t, budget_ppm, LIVE, "1", 0, 0)                                      \
    X(http, socket, PATH, occ_config_text, http_socket, RESTART, "", 0, 0)                                   \
    X(http, listen, LISTEN, occ_config_text, http_listen, RESTART, "", 0, 0)                                 \
    X(http, tls_cert, PATH, occ_config_text, tls_cert, RESTART, "", 0, 0)                                    \
    X(http, tls_key, PATH, occ_config_text, tls_key, RESTART, "", 0, 0)                                      \
    X(http, client_ca, PATH, occ_config_text, client_ca, RESTART, "", 0, 0)                                  \
    X(http, max_runs, COUNT, uint64_t, http_max_runs, RESTART, "64", 0, 1024)                                \
    X(coverage, mode, COVERAGE, uint64_t, coverage_mode, RESTART, "auto", 0, 0)                              \
    X(identity, dcgm_job_dir, PATH, occ_config_text, job_directory, RESTART, "", 0, 0)                       \
    X(ship, url, TEXT, occ_config_text, ship_url, OTHER, "", 0, 0)                                           \
    X(ship, database, NAME, occ_config_text, ship_database, OTHER, "occtrace", 0, 0)                         \
    X(ship, user, TEXT, occ_config_text, ship_user, OTHER, "default", 0, 0)                                  \
    X(ship, password_file, PATH, occ_config_text, ship_password_file, OTHER, "", 0, 0)                       \
    X(ship, ca_file, PATH, occ_config_text, ship_ca_file, OTHER, "", 0, 0)                                   \
    X(ship, cert_file, PATH, occ_config_text, ship_cert_file, OTHER, "", 0, 0)                               \
    X(ship, key_file, PATH, occ_config_text, ship_key_file, OTHER, "", 0, 0)                                 \
    X(ship, interval, AGE, int64_t, ship_interval_ns, OTHER, "0", OCC_CONFIG_SHIP_MIN_NS,                    \
      OCC_CONFIG_SHIP_MAX_NS)                                                                                \
    X(ship, cluster, TEXT, occ_config_text, ship_cluster, OTHER, "", 0, 0)                                   \
    X(ship, users, USERS, uint64_t, ship_users, RESTART, "name", 0, 0)                                       \
    X(ship, users_key_file, PATH, occ_config_text, ship_users_key_file, RESTART, "", 0, 0)                   \
    X(ship, node, TEXT, occ_config_text, ship_node, OTHER, "", 0, 0)                                         \
    X(ship, configs, COUNT, uint64_t, ship_configs, OTHER, "256", 16, 65536)                                 \
    X(ship, raw_jobs, TEXT, occ_config_text, ship_raw_jobs, OTHER, "", 0, 0)                                 \
    X(ship, raw_until, TEXT, occ_config_text, ship_raw_until, OTHER, "", 0, 0)                               \
    X(ship, raw_launches, COUNT, uint64_t, ship_raw_launches, OTHER, "20000", 1000, 1000000)                 \
    X(ship, metrics_file, PATH, occ_config_text, ship_metrics_file, OTHER, "", 0, 0)                         \
    X(ship, state, PATH, occ_config_text, ship_state, OTHER, "", 0, 0)                                       \
    X(ship, otlp_url, TEXT, occ_config_text, ship_otlp_url, OTHER, "", 0, 0)                                 \
    X(ship, otlp_profiles, SWITCH, uint64_t, ship_otlp_profiles, OTHER, "false", 0, 0)                       \
    X(ship, otlp_headers_file, PATH, occ_config_text, ship_otlp_headers_file, OTHER, "", 0, 0)               \
    X(ship, otlp_ca_file, PATH, occ_config_text, ship_otlp_ca_file, OTHER, "", 0, 0)                         \
    X(ship, otlp_cert_file, PATH, occ_config_text, ship_otlp_cert_file, OTHER, "", 0, 0)                     \
    X(ship, otlp_key_file, PATH, occ_config_text, ship_otlp_key_file, OTHER, "", 0, 0)                       \
    X(warehouse, launches, DURATION, int64_t, warehouse_launches_ns, OTHER, "7d", OCC_CONFIG_KEEP_MIN_NS,    \
      OCC_CONFIG_KEEP_MAX_NS)                                                                                \
    X(warehouse, minutes, DURATION, int64_t, warehouse_minutes_ns, OTHER, "30d", OCC_CONFIG_KEEP_MIN_NS,     \
      OCC_CONFIG_KEEP_MAX_NS)                                                                                \
    X(warehouse, ranks, DURATION, int64_t, warehouse_ranks_ns, OTHER, "90d", OCC_CONFIG_KEEP_MIN_NS,         \
      OCC_CONFIG_KEEP_MAX_NS)                                                                                \
    X(warehouse, hours, DURATION, int64_t, warehouse_hours_ns, OTHER, "400d", OCC_CONFIG_KEEP_MIN_NS,        \
      OCC_CONFIG_KEEP_MAX_NS)                                                                                \
    X(cluster, url, TEXT, occ_config_text, cluster_url, OTHER, "", 0, 0)                                     \
    X(cluster, name, TEXT, occ_config_text, cluster_name, OTHER, "", 0, 0)                                   \
    X(cluster, database, NAME, occ_config_text, cluster_database, OTHER, "occtrace", 0, 0)                   \
    X(cluster, user, TEXT, occ_config_text, cluster_user, OTHER, "default", 0, 0)                            \
    X(cluster, password_file, PATH, occ_config_text, cluster_password_file, OTHER, "", 0, 0)                 \
    X(cluster, ca_file, PATH, occ_config_text, cluster_ca_file, OTHER, "", 0, 0)                             \
    X(cluster, cert_file, PATH, occ_config_text, cluster_cert_file, OTHER, "", 0, 0)                         \
    X(cluster, key_file, PATH, occ_config_text, cluster_key_file, OTHER, "", 0, 0)                           \
    X(cluster, command, COMMAND, occ_config_text, cluster_command, OTHER,                                    \
      "ssh -oBatchMode=yes -- {node} {command}", 0, 0)                                                       \
    X(cluster, nodes, TEXT, occ_config_text, cluster_nodes, OTHER, ".*", 0, 0)                               \
    X(log, level, LEVEL, uint64_t, log_level, LIVE, "warning", 0, 0)

typedef char occ_config_text[OCC_CONFIG_TEXT_BYTES];

struct occ_config {
#define X(section, key, kind, type, member, when, default_text, min, max) type member;
    OCC_CONFIG_SETTINGS(X)
#undef X
};

/* Sets every setting to its default. */
void occ_config_defaults(struct occ_config *config);

/* Reads `path` and replaces the values in *config that the file sets. *config is unchanged on failure.
 * Returns OCC_E_NOT_FOUND for a missing file, OCC_E_INVALID for an invalid one: "FILE:LINE:COLUMN:
 * section.key: MISTAKE". */
int occ_config_load(const char *path, struct occ_config *config, struct occ_error *err);

/* Reads the service's file, then the files of conf.d in the order of their names; missing files are
 * skipped. */
int occ_config_load_system(struct occ_config *config, struct occ_error *err);

/* Reads settings from text in memory; `name` replaces the path in messages. */
int occ_config_parse(const char *name, const char *text, size_t length, struct occ_config *config,
                     struct occ_error *err);

/* OCC_E_INVALID: only some of the settings that need each other are set. The daemon records with such
 * settings too, but does not serve metrics by TCP. */
int occ_config_check_groups(const struct occ_config *config, struct occ_error *err);

/* Writes every setting with its value, as a file that can be loaded. */
void occ_config_print(const struct occ_config *config, FILE *out);

/* Finds the next setting with different values in `a` and `b`, beginning at *at, which is 0 in the first
 * call. Returns its name, or NULL after the last. *ret_live: a running daemon can apply the new value. */
const char *occ_config_next_change(const struct occ_config *a, const struct occ_config *b, size_t *at,
                                   bool *ret_live);

/* Sets one setting by its "section.key" name, with the same text as in a file; used for the command line. */
int occ_config_set(struct occ_config *config, const char *name, const char *value, struct occ_error *err);
