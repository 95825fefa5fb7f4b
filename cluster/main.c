/*
 * occtrace-ship: command line and settings, then ship.c. Exit codes: 0 done, 1 failure, 2 usage, 78 an error
 * that needs a person (EX_CONFIG of sysexits.h; a restart does not help).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "accounts.h"
#include "cluster/otlp/sums.h"
#include "options.h"
#include "ship.h"
#include "ship_forget.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/paths.h"

#define MAINTAIN_S       3600 /* adding up an hour of a large cluster takes long */
#define SECOND_NS        INT64_C(1000000000)
#define OTLP_INTERVAL_NS (60 * SECOND_NS)

static int usage_error(const struct occ_error *err)
{
    (void)fprintf(stderr, "occtrace-ship: %s (try --help)\n", err->message);
    return 2;
}

static int load_settings(const struct occ_ship_options *options, struct occ_config *config,
                         struct occ_error *err)
{
    occ_config_defaults(config);
    int rc =
        options->config ? occ_config_load(options->config, config, err) : occ_config_load_system(config, err);
    if (rc == 0 && options->log_level && occ_config_set(config, "log.level", options->log_level, err) != 0)
        rc = occ_error_prefix(err, "option '--log-level'");
    if (rc == 0 && options->otlp && occ_config_set(config, "ship.otlp_url", options->otlp, err) != 0)
        rc = occ_error_prefix(err, "option '--otlp'");
    if (rc == 0)
        occ_log_set_level((enum occ_log_level)config->log_level);
    return rc;
}

/* Prints which tables of tenants are missing, or hidden from the account. A node never sees readers' tables.
 */
static void print_lacks(const struct occ_warehouse *w)
{
    if (!occ_warehouse_has_sent_columns(w))
        (void)printf(
            "the tables lack columns of this version, whose values are not sent: occtrace-ship --init adds "
            "them\n");
    if (!w->has_erased)
        (void)printf("erased users are not known, whose rows are sent: occtrace-ship --init, then the SQL of "
                     "--accounts again\n");
    if (!w->has_scopes && !strstr(w->unseen, "reader"))
        (void)printf("the table reader_scope is missing: occtrace-ship --init makes it\n");
}

static int print_check(const struct occ_ship_options *options, struct occ_warehouse *w,
                       const struct occ_config *config, const struct occ_raw_options *raw,
                       struct occ_error *err)
{
    struct occ_pseudonym users;
    int rc = occ_warehouse_check(w, OCC_FOR_QUESTIONS | OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE, err);
    if (rc == 0 && options->check)
        rc = occ_warehouse_try_sending(w, err);
    if (rc == 0)
        rc = occ_ship_users(config, &users, err);
    bool is_over = raw->until_s <= occ_now_ns() / 1000000000;
    if (rc == 0 && raw->jobs[0])
        (void)printf("single launches of jobs %s: %s %s\n", raw->jobs,
                     is_over ? "no longer sent, since it is after" : "sent until", config->ship_raw_until);
    if (rc == 0)
        (void)printf("ClickHouse %s, database %s: version %d, as needed; our clock is %+.1f s off\n",
                     w->version, w->options.database, OCC_WAREHOUSE_SCHEMA, (double)w->clock_offset_ms / 1e3);
    if (rc == 0)
        print_lacks(w);
    if (rc == 0 && w->unseen[0])
        (void)printf("not looked at, since %s may not see them: %s\n", config->ship_user, w->unseen);
    return rc;
}

static int print_accounts(const struct occ_ship_options *options, const struct occ_config *config,
                          enum occ_dialect dialect, struct occ_error *err)
{
    const struct occ_accounts_options accounts = {.dialect = dialect,
                                                  .database = config->ship_database,
                                                  .nodes = options->nodes,
                                                  .passwords = options->passwords};
    int rc = occ_accounts_print(&accounts, stdout, err);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = occ_fail_errno(err, errno, "cannot write the accounts");
    return rc;
}

static int print_schema(const struct occ_config *config, enum occ_dialect dialect, struct occ_error *err)
{
    struct occ_warehouse_keep keep;
    int rc = occ_ship_keep(config, &keep, err);
    return rc == 0 ? occ_warehouse_print_schema(dialect, config->ship_database, &keep, stdout, err) : rc;
}

/* What the options ask of the server, after it was met. */
static int ask_for(const struct occ_ship_options *options, const struct occ_config *config,
                   const struct occ_raw_options *raw, struct occ_warehouse *w, struct occ_error *err)
{
    struct occ_warehouse_keep keep;
    uint64_t hours = 0;
    int rc = occ_ship_keep(config, &keep, err);
    if (rc != 0)
        return rc;
    if (options->erase || options->retire)
        return occ_ship_forget(options, config, w, err);
    if (options->accounts)
        return print_accounts(options, config, w->dialect, err);
    if (options->print)
        return print_schema(config, w->dialect, err);
    if (options->plan)
        return occ_warehouse_print_plan(w, &keep, stdout, err);
    if (options->init)
        rc = occ_warehouse_init(w, &keep, err);
    else if (options->maintain)
        rc = occ_warehouse_maintain(w, &keep, occ_now_ns() / 1000000000, &hours, err);
    if (rc == 0 && options->maintain)
        (void)printf("hours summed up: %llu\n", (unsigned long long)hours);
    return rc == 0 ? print_check(options, w, config, raw, err) : rc;
}

/* Options that need the server. */
static int ask_server(const struct occ_ship_options *options, const struct occ_config *config,
                      const struct occ_raw_options *raw, const struct occ_warehouse_options *warehouse,
                      struct occ_error *err)
{
    struct occ_warehouse_options patient = *warehouse;
    struct occ_warehouse *w = NULL;
    patient.http.timeout_s = options->maintain || options->erase || options->retire ? MAINTAIN_S : 0;
    int rc = occ_warehouse_open(&patient, &w, err);
    if (rc == 0)
        rc = occ_warehouse_meet(w, err);
    if (rc == 0)
        rc = ask_for(options, config, raw, w, err);
    occ_warehouse_close(w);
    return rc;
}

/* ---- duties ---- */

/* The receivers; NULL: none. */
struct receivers {
    struct occ_ship *ship;
    struct occ_otlp *otlp;
    int64_t otlp_interval_ns;
};

static int otlp_pass(void *receivers_, struct occ_error *err)
{
    const struct receivers *receivers = receivers_;
    return occ_otlp_pass(receivers->otlp, false, err);
}

static int64_t otlp_interval_ns(void *receivers)
{
    return ((const struct receivers *)receivers)->otlp_interval_ns;
}

static int64_t otlp_wait_ns(void *receivers_)
{
    const struct receivers *receivers = receivers_;
    return occ_otlp_retry_after_s(receivers->otlp) * SECOND_NS;
}

/* Does not return. */
static void run(struct receivers *receivers, const char *node)
{
    struct occ_ship_duty duties[2];
    size_t n = 0;
    if (receivers->ship)
        duties[n++] = occ_ship_warehouse_duty(receivers->ship);
    if (receivers->otlp)
        duties[n++] = (struct occ_ship_duty){.again = "the collector takes metrics again",
                                             .of = receivers,
                                             .pass = otlp_pass,
                                             .interval_ns = otlp_interval_ns,
                                             .wait_ns = otlp_wait_ns};
    occ_ship_run(duties, n, node);
}

/* A pass for each receiver, also if the other one fails. Returns the first failure. */
static int run_once(const struct receivers *receivers, struct occ_error *err)
{
    struct occ_error later = OCC_ERROR_INIT;
    int rc = receivers->ship ? occ_ship_pass(receivers->ship, true, err) : 0;
    int also = receivers->otlp ? occ_otlp_pass(receivers->otlp, true, rc == 0 ? err : &later) : 0;
    if (rc != 0 && also != 0)
        occ_log(OCC_LOG_ERROR, "%s", later.message);
    return rc != 0 ? rc : also;
}

static int open_warehouse(const struct occ_config *config, const struct occ_raw_options *raw,
                          const struct occ_warehouse_options *warehouse, struct occ_ship *ship,
                          struct occ_error *err)
{
    struct occ_ship_settings settings = {.history = occ_ship_history_path(config),
                                         .state = occ_ship_state_path(config),
                                         .metrics = config->ship_metrics_file,
                                         .jobs = config->job_directory,
                                         .interval_ns = config->ship_interval_ns,
                                         .max_configs = config->ship_configs,
                                         .raw = *raw,
                                         .warehouse = *warehouse};
    int rc = occ_ship_users(config, &settings.users, err);
    return rc == 0 ? occ_ship_open(&settings, ship, err) : rc;
}

/* No metrics if ship.otlp_url is empty. */
static int open_otlp(const struct occ_config *config, struct occ_ship_names *names,
                     struct occ_otlp **ret_otlp, struct occ_error *err)
{
    struct occ_otlp_settings settings;
    if (config->ship_otlp_url[0] == '\0')
        return 0;
    int rc = occ_ship_otlp(config, names, &settings, err);
    if (rc != 0)
        return rc;
    settings.origin.version = OCC_VERSION;
    rc = occ_otlp_open(&settings, ret_otlp, err);
    return rc == 0 ? 0 : occ_error_prefix(err, "ship.otlp_url");
}

/* warehouse NULL: none. A service with a warehouse goes on without metrics if their settings are wrong. */
static int ship(const struct occ_ship_options *options, const struct occ_config *config,
                const struct occ_raw_options *raw, const struct occ_warehouse_options *warehouse,
                struct occ_ship_names *names, struct occ_error *err)
{
    struct occ_ship shipper = {0};
    struct receivers receivers = {.otlp_interval_ns =
                                      config->ship_interval_ns ? config->ship_interval_ns : OTLP_INTERVAL_NS};
    int rc = open_otlp(config, names, &receivers.otlp, err);
    if (rc != 0 && warehouse && !options->once) {
        occ_log(OCC_LOG_ERROR, "no metrics for OpenTelemetry until a restart: %s", err->message);
        rc = 0;
    }
    if (rc == 0 && warehouse) {
        rc = open_warehouse(config, raw, warehouse, &shipper, err);
        receivers.ship = rc == 0 ? &shipper : NULL;
    }
    if (rc == 0 && options->check && receivers.otlp)
        rc = occ_otlp_check(receivers.otlp, err);
    else if (rc == 0 && options->once)
        rc = run_once(&receivers, err);
    else if (rc == 0)
        run(&receivers, names->node);
    if (receivers.ship)
        occ_ship_close(receivers.ship);
    occ_otlp_close(receivers.otlp);
    return rc;
}

static int print_state(const struct occ_config *config, struct occ_error *err)
{
    struct occ_state *state = NULL;
    int rc = occ_state_open(occ_ship_state_path(config), true, &state, err);
    if (rc == 0)
        rc = occ_state_print(state, stdout, err);
    occ_state_close(state);
    return rc;
}

static int print_sums(const struct occ_config *config, struct occ_ship_names *names, struct occ_error *err)
{
    struct occ_sums *sums = NULL;
    occ_ship_otlp_state(config, names);
    if (access(names->otlp_state, F_OK) != 0 && errno == ENOENT) {
        (void)printf("OTLP:\n  no pass yet\n");
        return 0;
    }
    int rc = occ_sums_open(names->otlp_state, true, &sums, err);
    if (rc == 0)
        rc = occ_sums_print(sums, stdout, err);
    occ_sums_close(sums);
    return rc;
}

static int print_status(const struct occ_config *config, struct occ_ship_names *names, struct occ_error *err)
{
    bool has_otlp = config->ship_otlp_url[0] != '\0';
    int rc = config->ship_url[0] || !has_otlp ? print_state(config, err) : 0;
    return rc == 0 && has_otlp ? print_sums(config, names, err) : rc;
}

static int check(const struct occ_ship_options *options, const struct occ_config *config,
                 const struct occ_raw_options *raw, const struct occ_warehouse_options *warehouse,
                 struct occ_ship_names *names, struct occ_error *err)
{
    int rc = warehouse ? ask_server(options, config, raw, warehouse, err) : 0;
    if (rc == 0 && config->ship_otlp_url[0]) {
        rc = ship(options, config, raw, NULL, names, err);
        if (rc == 0)
            (void)printf("OpenTelemetry: %s takes metrics%s\n", config->ship_otlp_url,
                         config->ship_otlp_profiles ? " and profiles" : "");
    }
    return rc;
}

static int serve(const struct occ_ship_options *options, const struct occ_config *config,
                 struct occ_error *err)
{
    static struct occ_ship_names names;
    struct occ_warehouse_options warehouse;
    struct occ_raw_options raw;
    bool is_for_tables =
        options->init || options->accounts || options->maintain || options->erase || options->retire;
    bool has_warehouse = is_for_tables || config->ship_url[0] || config->ship_otlp_url[0] == '\0';
    if (options->status)
        return print_status(config, &names, err);
    int rc = occ_ship_raw(config, &raw, err);
    if (rc == 0 && has_warehouse)
        rc = occ_ship_warehouse(config, &names, &warehouse, err);
    if (rc != 0)
        return rc;
    if (is_for_tables)
        return ask_server(options, config, &raw, &warehouse, err);
    return (options->check ? check : ship)(options, config, &raw, has_warehouse ? &warehouse : NULL, &names,
                                           err);
}

static int print_user(const struct occ_config *config, const char *user, struct occ_error *err)
{
    struct occ_pseudonym users;
    char hash[OCC_PSEUDONYM_BYTES];
    int rc = occ_ship_users(config, &users, err);
    if (rc == 0)
        (void)printf("%s\n", occ_pseudonym_of(&users, user, hash));
    return rc;
}

int main(int argc, char **argv)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_ship_options options;
    struct occ_config config;
    enum occ_dialect dialect = OCC_DIALECT_AUTO;
    occ_log_init("occtrace-ship");
    if (occ_ship_options_parse(argc, argv, &options, &err) != 0 ||
        occ_ship_dialect(options.dialect, &dialect, &err) != 0)
        return usage_error(&err);
    if (options.help)
        occ_ship_options_help(stdout);
    if (options.version)
        (void)printf("occtrace-ship %s\n%s", OCC_VERSION, OCC_VERSION_DETAILS);
    if (options.help || options.version)
        return 0;
    int rc = load_settings(&options, &config, &err);
    if (rc == 0 && options.user_hash)
        rc = print_user(&config, options.user_hash, &err);
    else if (rc == 0 && options.print && dialect != OCC_DIALECT_AUTO)
        rc = print_schema(&config, dialect, &err);
    else if (rc == 0 && options.accounts && dialect != OCC_DIALECT_AUTO)
        rc = print_accounts(&options, &config, dialect, &err);
    else if (rc == 0)
        rc = serve(&options, &config, &err);
    if (rc == 0)
        return 0;
    occ_log(OCC_LOG_ERROR, "%s", err.message);
    return rc == OCC_E_USAGE ? 2 : occ_warehouse_needs_help(rc) ? EX_CONFIG : 1;
}
