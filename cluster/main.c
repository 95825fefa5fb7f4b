/*
 * occtrace-ship: command line and settings, then ship.c. Exit codes: 0 done, 1 failure, 2 usage, 78 an error
 * that needs a person (EX_CONFIG of sysexits.h; a restart does not help).
 */
#include <stdio.h>
#include <sysexits.h>

#include "options.h"
#include "ship.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/paths.h"

#define MAINTAIN_S 3600 /* adding up an hour of a large cluster takes long */

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
    if (rc == 0)
        occ_log_set_level((enum occ_log_level)config->log_level);
    return rc;
}

static int print_check(struct occ_warehouse *w, const struct occ_config *config,
                       const struct occ_raw_options *raw, struct occ_error *err)
{
    int rc = occ_warehouse_check(w, OCC_FOR_QUESTIONS | OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE, err);
    bool is_over = raw->until_s <= occ_now_ns() / 1000000000;
    if (rc == 0 && raw->jobs[0])
        (void)printf("single launches of jobs %s: %s %s\n", raw->jobs,
                     is_over ? "no longer sent, since it is after" : "sent until", config->ship_raw_until);
    if (rc == 0)
        (void)printf("ClickHouse %s, database %s: version %d, as needed; our clock is %+.1f s off\n",
                     w->version, w->options.database, OCC_WAREHOUSE_SCHEMA, (double)w->clock_offset_ms / 1e3);
    if (rc == 0 && w->unseen[0])
        (void)printf("not looked at, since %s may not see them: %s\n", config->ship_user, w->unseen);
    return rc;
}

/* Options that need the server. */
static int ask_server(const struct occ_ship_options *options, const struct occ_config *config,
                      const struct occ_raw_options *raw, const struct occ_warehouse_options *warehouse,
                      struct occ_error *err)
{
    struct occ_warehouse_options patient = *warehouse;
    struct occ_warehouse *w = NULL;
    uint64_t hours = 0;
    patient.http.timeout_s = options->maintain ? MAINTAIN_S : 0;
    int rc = occ_warehouse_open(&patient, &w, err);
    if (rc == 0)
        rc = occ_warehouse_meet(w, err);
    if (rc == 0 && options->accounts)
        occ_warehouse_print_accounts(w->dialect, config->ship_database, stdout);
    else if (rc == 0 && options->print)
        rc = occ_warehouse_print_schema(w->dialect, config->ship_database, stdout, err);
    else if (rc == 0 && options->init)
        rc = occ_warehouse_init(w, err);
    else if (rc == 0 && options->maintain)
        rc = occ_warehouse_maintain(w, occ_now_ns() / 1000000000, &hours, err);
    if (rc == 0 && options->maintain)
        (void)printf("hours summed up: %llu\n", (unsigned long long)hours);
    if (rc == 0 && !options->print && !options->accounts)
        rc = print_check(w, config, raw, err);
    occ_warehouse_close(w);
    return rc;
}

static int ship(const struct occ_ship_options *options, const struct occ_config *config,
                const struct occ_raw_options *raw, const struct occ_warehouse_options *warehouse,
                struct occ_error *err)
{
    const struct occ_ship_settings settings = {.history = config->database_path[0]
                                                              ? config->database_path
                                                              : OCC_PATH_SERVICE_DIRECTORY "/history.db",
                                               .state = occ_ship_state_path(config),
                                               .metrics = config->ship_metrics_file,
                                               .jobs = config->job_directory,
                                               .interval_ns = config->ship_interval_ns,
                                               .max_configs = config->ship_configs,
                                               .raw = *raw,
                                               .warehouse = *warehouse};
    struct occ_ship shipper;
    int rc = occ_ship_open(&settings, &shipper, err);
    if (rc != 0)
        return rc;
    if (options->once)
        rc = occ_ship_pass(&shipper, true, err);
    else
        occ_ship_run(&shipper);
    occ_ship_close(&shipper);
    return rc;
}

static int print_status(const struct occ_config *config, struct occ_error *err)
{
    struct occ_state *state = NULL;
    int rc = occ_state_open(occ_ship_state_path(config), true, &state, err);
    if (rc == 0)
        rc = occ_state_print(state, stdout, err);
    occ_state_close(state);
    return rc;
}

static int serve(const struct occ_ship_options *options, const struct occ_config *config,
                 struct occ_error *err)
{
    struct occ_ship_names names;
    struct occ_warehouse_options warehouse;
    struct occ_raw_options raw;
    if (options->status)
        return print_status(config, err);
    int rc = occ_ship_raw(config, &raw, err);
    if (rc == 0)
        rc = occ_ship_warehouse(config, &names, &warehouse, err);
    if (rc != 0)
        return rc;
    return options->init || options->accounts || options->check || options->maintain
               ? ask_server(options, config, &raw, &warehouse, err)
               : ship(options, config, &raw, &warehouse, err);
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
    if (rc == 0 && options.print && dialect != OCC_DIALECT_AUTO)
        rc = occ_warehouse_print_schema(dialect, config.ship_database, stdout, &err);
    else if (rc == 0 && options.accounts && dialect != OCC_DIALECT_AUTO)
        occ_warehouse_print_accounts(dialect, config.ship_database, stdout);
    else if (rc == 0)
        rc = serve(&options, &config, &err);
    if (rc == 0)
        return 0;
    occ_log(OCC_LOG_ERROR, "%s", err.message);
    return occ_warehouse_needs_help(rc) ? EX_CONFIG : 1;
}
