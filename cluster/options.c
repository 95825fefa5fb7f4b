/* See options.h. */
#include "options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/node.h"
#include "support/options.h"
#include "support/paths.h"
#include "support/text.h"

#define PASSWORD "clickhouse-password"
#define HEADERS  "otlp-headers"

static const struct occ_option rows[] = {
#define AT(member) offsetof(struct occ_ship_options, member)
    {'c', "config", "FILE", AT(config),
     "settings (default: occtrace.yaml and conf.d/*.yaml" OCC_OPTION_INDENT
     "in /etc/occtrace, installed in another prefix than" OCC_OPTION_INDENT "/usr: in PREFIX/etc/occtrace)"},
    {0, "init", NULL, AT(init),
     "make the database and its tables, apply the migrations" OCC_OPTION_INDENT
     "that the tables lack, and end"},
    {0, "plan", NULL, AT(plan), "with --init: print these migrations instead"},
    {0, "print", NULL, AT(print), "with --init: print the SQL for an empty server instead"},
    {0, "accounts", NULL, AT(accounts),
     "print accounts for administrators, nodes and readers:" OCC_OPTION_INDENT
     "SQL, or for dialect 18 a file for users.d; and end"},
    {0, "nodes", "FILE", AT(nodes), "with --accounts: accounts for these nodes, a name a line"},
    {0, "passwords", "DIR", AT(passwords),
     "with --nodes: a file DIR/NAME for each node's password, both" OCC_OPTION_INDENT
     "made if they are missing; prints only hashes; no directory" OCC_OPTION_INDENT
     "that others may read or write"},
    {0, "dialect", "D", AT(dialect),
     "with --print, --accounts: 26 for ClickHouse from 21.11 on, 18" OCC_OPTION_INDENT
     "for 18.16 to 21.10, auto (default) for the server's"},
    {0, "check", NULL, AT(check),
     "check the server, its tables and the account's rights," OCC_OPTION_INDENT "and end"},
    {0, "once", NULL, AT(once),
     "send all unsent rows, also of the minute that just ended," OCC_OPTION_INDENT "and end"},
    {0, "otlp", "URL", AT(otlp),
     "send metrics to this collector of OpenTelemetry, as" OCC_OPTION_INDENT "ship.otlp_url"},
    {0, "status", NULL, AT(status), "print the progress, the failures and the losses, and end"},
    {0, "maintain", NULL, AT(maintain),
     "sum up changed minutes by hour, drop old partitions" OCC_OPTION_INDENT
     "where the server does not by itself (before 21.11)," OCC_OPTION_INDENT
     "and end; every ten minutes, on one machine"},
    {0, "erase", "USER", AT(erase),
     "remove all rows about this user's launches until now, in all" OCC_OPTION_INDENT
     "tables; nodes do not send them again; and end"},
    {0, "retire", "NODE", AT(retire),
     "remove a node that is gone from the nodes that answers" OCC_OPTION_INDENT
     "name as silent, and end; its minutes stay"},
    {0, "cluster-name", "NAME", AT(cluster_name),
     "with --erase, --retire: of this cluster (default:" OCC_OPTION_INDENT
     "ship.cluster, else the only cluster of the warehouse)"},
    {0, "user-hash", "NAME", AT(user_hash), "print this user as ship.users sends it, and end"},
    {0, "log-level", "LEVEL", AT(log_level), "error, warning, info or debug"},
    {'h', "help", NULL, AT(help), "this text"},
    {'V', "version", NULL, AT(version), "the version"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

int occ_ship_options_parse(int argc, char **argv, struct occ_ship_options *ret_options, struct occ_error *err)
{
    struct occ_ship_options options = {0};
    int rc = occ_options_read(rows, N_ROWS, argc, argv, &options, err);
    if (rc != 0)
        return rc;
    if (options.print && !options.init)
        return occ_fail(err, OCC_E_INVALID, "--print goes with --init");
    if (options.plan && (!options.init || options.print))
        return occ_fail(err, OCC_E_INVALID, "--plan goes with --init, and without --print");
    if (options.nodes && !options.accounts)
        return occ_fail(err, OCC_E_INVALID, "--nodes goes with --accounts");
    if (options.passwords && !options.nodes)
        return occ_fail(err, OCC_E_INVALID, "--passwords goes with --nodes");
    if (options.dialect && !options.print && !options.accounts)
        return occ_fail(err, OCC_E_INVALID, "--dialect goes with --init --print or --accounts");
    if (options.cluster_name && !options.erase && !options.retire)
        return occ_fail(err, OCC_E_INVALID, "--cluster-name goes with --erase or --retire");
    if (options.init + options.accounts + options.check + options.once + options.status + options.maintain +
            (options.erase != NULL) + (options.retire != NULL) + (options.user_hash != NULL) >
        1)
        return occ_fail(err, OCC_E_INVALID,
                        "one of --init, --accounts, --check, --once, --status, --maintain, --erase, --retire "
                        "and --user-hash at a time");
    *ret_options = options;
    return 0;
}

void occ_ship_options_help(FILE *out)
{
    (void)fputs("Usage: occtrace-ship [options]\n"
                "Sends sums by minute of a node's histories to the cluster's ClickHouse.\n\n",
                out);
    occ_options_print(rows, N_ROWS, out);
}

int occ_ship_dialect(const char *word, enum occ_dialect *ret_dialect, struct occ_error *err)
{
    static const char *const words[] = {"auto", "18", "26"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!word || strcmp(word, words[i]) == 0) {
            *ret_dialect = (enum occ_dialect)i;
            return 0;
        }
    return occ_fail(err, OCC_E_INVALID, "option '--dialect': '%.64s' is not one of auto, 18, 26", word);
}

/* ---- settings ---- */

const char *occ_ship_state_path(const struct occ_config *config)
{
    return config->ship_state[0] ? config->ship_state : "/var/lib/occtrace-ship/ship.db";
}

const char *occ_ship_history_path(const struct occ_config *config)
{
    return config->database_path[0] ? config->database_path : OCC_PATH_SERVICE_DIRECTORY "/history.db";
}

static int read_password(const struct occ_config *config, struct occ_ship_names *names, struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    names->password[0] = '\0';
    int rc = occ_path_secret(config->ship_password_file, PASSWORD, &path, err);
    (void)snprintf(names->password_file, sizeof names->password_file, "%s", rc == 0 && path ? path : "");
    return rc == 0 && path ? occ_warehouse_read_secret(path, names->password, sizeof names->password, err)
                           : rc;
}

static int read_headers(const struct occ_config *config, struct occ_otlp_headers *headers,
                        struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    headers->lines[0] = NULL;
    int rc = occ_path_secret(config->ship_otlp_headers_file, HEADERS, &path, err);
    return rc == 0 && path ? occ_otlp_headers_read(path, headers, err) : rc;
}

static int find_node(const struct occ_config *config, struct occ_ship_names *names, struct occ_error *err)
{
    (void)snprintf(names->node, sizeof names->node, "%s", config->ship_node);
    return names->node[0] == '\0' ? occ_node_name(names->node, err) : 0;
}

void occ_ship_otlp_state(const struct occ_config *config, struct occ_ship_names *names)
{
    (void)snprintf(names->otlp_state, sizeof names->otlp_state, "%s.otlp", occ_ship_state_path(config));
}

int occ_ship_otlp(const struct occ_config *config, struct occ_ship_names *names,
                  struct occ_otlp_settings *ret_settings, struct occ_error *err)
{
    int rc = find_node(config, names, err);
    if (rc == 0)
        rc = read_headers(config, &names->headers, err);
    occ_ship_otlp_state(config, names);
    *ret_settings = (struct occ_otlp_settings){
        .url = config->ship_otlp_url,
        .history = occ_ship_history_path(config),
        .state = names->otlp_state,
        .has_profiles = config->ship_otlp_profiles,
        .origin = {.node = names->node,
                   .cluster = config->ship_cluster,
                   .is_kubernetes = getenv("KUBERNETES_SERVICE_HOST") && getenv("OCCTRACE_NODE")},
        .http = {.user = "",
                 .password = "",
                 .ca_file = config->ship_otlp_ca_file,
                 .cert_file = config->ship_otlp_cert_file,
                 .key_file = config->ship_otlp_key_file,
                 .headers = names->headers.lines}};
    return rc;
}

int occ_ship_warehouse(const struct occ_config *config, struct occ_ship_names *names,
                       struct occ_warehouse_options *ret_options, struct occ_error *err)
{
    if (config->ship_url[0] == '\0')
        return occ_fail(err, OCC_E_INVALID, "ship.url is not set: occtrace.yaml names no warehouse");
    int rc = find_node(config, names, err);
    if (rc != 0)
        return rc;
    *ret_options = (struct occ_warehouse_options){.http = {.url = config->ship_url,
                                                           .user = config->ship_user,
                                                           .password = names->password,
                                                           .ca_file = config->ship_ca_file,
                                                           .cert_file = config->ship_cert_file,
                                                           .key_file = config->ship_key_file},
                                                  .section = "ship",
                                                  .url_of = "ship.url",
                                                  .database = config->ship_database,
                                                  .cluster = config->ship_cluster,
                                                  .node = names->node,
                                                  .password_file = names->password_file};
    return read_password(config, names, err);
}

int occ_ship_users(const struct occ_config *config, struct occ_pseudonym *ret_users, struct occ_error *err)
{
    return occ_pseudonym_open((enum occ_users)config->ship_users, config->ship_users_key_file, ret_users,
                              err);
}

#define DAY_NS INT64_C(86400000000000)

int occ_ship_keep(const struct occ_config *config, struct occ_warehouse_keep *ret_keep, struct occ_error *err)
{
    const struct {
        const char *name;
        int64_t ns;
        unsigned int *days;
    } times[] = {{"launches", config->warehouse_launches_ns, &ret_keep->launches},
                 {"minutes", config->warehouse_minutes_ns, &ret_keep->minutes},
                 {"ranks", config->warehouse_ranks_ns, &ret_keep->ranks},
                 {"hours", config->warehouse_hours_ns, &ret_keep->hours}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        *times[i].days = (unsigned int)((times[i].ns + DAY_NS - 1) / DAY_NS);
        if (times[i].ns > config->warehouse_hours_ns)
            return occ_fail(
                err, OCC_E_INVALID,
                "warehouse.hours is shorter than warehouse.%s: programs and kernels, which it keeps, "
                "would be missing",
                times[i].name);
    }
    return 0;
}

static int check_jobs(const char *jobs, struct occ_error *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-" OCC_RAW_SEPARATORS;
    if (jobs[strspn(jobs, letters)] != '\0')
        return occ_fail(
            err, OCC_E_INVALID,
            "ship.raw_jobs: '%.64s' are not jobs with commas between them: numbers of Slurm's, or names "
            "as the warehouse has them (pod:UID)",
            jobs);
    return 0;
}

int occ_ship_raw(const struct occ_config *config, struct occ_raw_options *ret_raw, struct occ_error *err)
{
    int64_t until_ns = 0;
    const char *jobs = config->ship_raw_jobs, *until = config->ship_raw_until;
    int rc = check_jobs(jobs, err);
    if (rc == 0 && jobs[0] && until[0] == '\0')
        return occ_fail(err, OCC_E_INVALID,
                        "ship.raw_until is missing: until when single launches of ship.raw_jobs are sent");
    if (rc == 0 && until[0] && (occ_parse_time_ns(until, 0, &until_ns, NULL) != 0 || until_ns <= 0))
        rc = occ_fail(
            err, OCC_E_INVALID,
            "ship.raw_until: '%.64s' is no moment: YYYY-MM-DD HH:MM in local time, or @SECONDS since 1970",
            until);
    *ret_raw = (struct occ_raw_options){
        .jobs = jobs, .until_s = until_ns / 1000000000, .max_launches = config->ship_raw_launches};
    return rc;
}
