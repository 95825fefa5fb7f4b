/* occtraced: command line, configuration, limits of the process, then server.c. Exit codes: 0 orderly end, 1
 * failure, 2 usage, 78 history of a newer version (EX_CONFIG of sysexits.h; a restart does not help). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "attribution/attribution.h"
#include "config/config.h"
#include "daemon/histories/histories.h"
#include "options.h"
#include "daemon/owners/owner_directory.h"
#include "alive.h"
#include "probe.h"
#include "server.h"
#include "daemon/serve/status.h"
#include "store/packed_history.h"
#include "support/cleanup.h"
#include "support/control.h"
#include "support/log.h"
#include "support/paths.h"
#include "upgrade.h"

/* A program without a connection counts as dead after this silence of its helper thread. */
#define ORPHAN_GRACE_NS INT64_C(10000000000)
/* The loop waits this long if another process holds the history's lock; then it tries again later. */
#define BUSY_TIMEOUT_MS 2000
/* Used if several users' programs share the daemon: the loop must not wait (0 would mean the store's
 * default). */
#define SHARED_BUSY_TIMEOUT_MS 1
/* Time slice for reading one history's rings in one round of the loop. */
#define ROUND_NS INT64_C(250000)
/* Tolerance between launch times and the machine's clock. */
#define SKEW_NS INT64_C(60000000000)
/* Time limit for reading rings at the end, well below a service manager's limit (TimeoutStopSec is 90 s). */
#define STOP_NS INT64_C(20000000000)

static int load_files(const struct occ_options *options, struct occ_config *config, struct occ_error *err)
{
    occ_config_defaults(config);
    if (options->config)
        return occ_config_load(options->config, config, err);
    return geteuid() == 0 ? occ_config_load_system(config, err) : 0;
}

/* Applies a command-line option (NULL: not given) to the configuration. */
static int override(struct occ_config *config, const char *setting, const char *option, const char *value,
                    struct occ_error *err)
{
    if (!value || occ_config_set(config, setting, value, err) == 0)
        return 0;
    return occ_error_prefix(err, "option '%s'", option);
}

static int apply_options(const struct occ_options *options, struct occ_config *config, struct occ_error *err)
{
    int status = override(config, "log.level", "--log-level", options->log_level, err);
    return status == 0 ? override(config, "counters.mode", "--counters", options->counters, err) : status;
}

static void set_log_level(const struct occ_options *options, const struct occ_config *config)
{
    if (options->log_level || !getenv("OCCTRACE_LOG")) /* the variable takes precedence over the file */
        occ_log_set_level((enum occ_log_level)config->log_level);
}

/* The command line's path, else the configuration's, else the default. malloc'ed. */
static int choose_path(const char *given, const char *configured,
                       int (*default_path)(char **, struct occ_error *), char **ret_path,
                       struct occ_error *err)
{
    if (!given && configured[0] == '\0')
        return default_path(ret_path, err);
    *ret_path = strdup(given ? given : configured);
    return *ret_path ? 0 : occ_no_memory(err);
}

static int check_private(int fd, struct occ_error *err)
{
    struct stat status;
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode) || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return occ_fail(err, OCC_E_INVALID, "option '--private': descriptor %d is not a socket", fd);
    return 0;
}

/* Each program takes a connection, a pidfd and its ring. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* The service accepts all users of the machine; the socket's credentials identify them. */
static uint32_t socket_mode(const struct occ_config *config, const char *path)
{
    if (config->socket_mode)
        return (uint32_t)config->socket_mode;
    return strcmp(path, OCC_PATH_SYSTEM_SOCKET) == 0 ? 0666 : 0600;
}

/* The command line and the configuration in effect. */
struct service {
    const struct occ_options *options;
    struct occ_config config;
    struct occ_attribution_assumptions assumptions;
    struct occ_pseudonym users; /* in series */
    bool is_shared;             /* programs of several users report */
};

static enum occ_command_lines command_lines(const struct service *service)
{
    if (service->config.record_command_line == 0)
        return service->is_shared ? OCC_COMMAND_LINES_PROGRAM : OCC_COMMAND_LINES_FULL;
    return (enum occ_command_lines)(service->config.record_command_line - 1);
}

static void fill_collector(const struct service *service, struct occ_collector_options *options)
{
    const struct occ_config *config = &service->config;
    *options = (struct occ_collector_options){
        .commit_interval_ns = config->commit_interval_ns,
        .memory_bytes = config->memory_bytes,
        .max_producers = config->max_producers,
        .max_ring_bytes = config->max_ring_bytes,
        .budget_ppm = config->budget_ppm,
        .max_user_producers = service->is_shared ? config->max_user_producers : 0,
        .max_user_ring_bytes = service->is_shared ? config->max_user_ring_bytes : 0,
        .round_ns = service->is_shared ? ROUND_NS : 0,
        .skew_ns = service->is_shared ? SKEW_NS : 0,
        .stop_ns = STOP_NS,
        .command_lines = command_lines(service),
        .orphan_grace_ns = ORPHAN_GRACE_NS};
}

/* A private daemon's history is limited by size only, not by age. */
static void fill_limits(const struct service *service, struct occ_histories_limits *limits)
{
    const struct occ_config *config = &service->config;
    fill_collector(service, &limits->collector);
    limits->max_bytes = config->database_max_bytes;
    limits->max_total_bytes = service->options->private_fd < 0 ? config->database_max_total_bytes : 0;
    limits->ages = (struct occ_store_ages){0};
    if (service->options->private_fd < 0)
        limits->ages = (struct occ_store_ages){.raw_ns = config->raw_age_ns,
                                               .seconds_ns = config->seconds_age_ns,
                                               .minutes_ns = config->minutes_age_ns,
                                               .hours_ns = config->hours_age_ns};
}

/* Settings that need a restart keep their values. */
static int reload(void *context, struct occ_histories_limits *ret_limits, struct occ_error *err)
{
    struct service *service = context;
    struct occ_config config;
    const char *name;
    size_t at = 0;
    bool is_live;
    int status = load_files(service->options, &config, err);
    if (status == 0)
        status = apply_options(service->options, &config, err);
    if (status != 0)
        return status;
    while ((name = occ_config_next_change(&service->config, &config, &at, &is_live)))
        occ_log(OCC_LOG_WARNING, is_live ? "%s has a new value" : "%s has a new value, which needs a restart",
                name);
    service->config = config;
    set_log_level(service->options, &config);
    fill_limits(service, ret_limits);
    return 0;
}

/* Paths of history and socket (malloc'ed), and their users. */
struct paths {
    char *database, *socket;
    uint32_t socket_mode;
    bool is_shared; /* several users share the socket */
    bool split;     /* one history per owner */
};

static void free_paths(struct paths *p)
{
    free(p->database);
    free(p->socket);
}

static int find_paths(const struct occ_options *options, const struct occ_config *config, struct paths *p,
                      struct occ_error *err)
{
    int status =
        choose_path(options->database, config->database_path, occ_path_daemon_history, &p->database, err);
    if (status == 0)
        status = choose_path(options->socket, config->socket_path, occ_path_default_socket, &p->socket, err);
    if (status != 0)
        return status;
    p->socket_mode = socket_mode(config, p->socket);
    p->is_shared = geteuid() == 0 && (p->socket_mode & 0066) != 0 && options->private_fd < 0;
    p->split = p->is_shared && config->users_split == 0 && !options->database;
    /* A default path closed to users is accepted: then root runs the daemon by hand. */
    return p->split && config->database_path[0] ? occ_owner_directory_check_path(p->database, err) : 0;
}

/* Recording does not depend on the key: without it, series have no users. */
static void open_users(struct service *service)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_config *config = &service->config;
    if (occ_pseudonym_open((enum occ_users)config->ship_users, config->ship_users_key_file, &service->users,
                           &err) == 0)
        return;
    occ_log(OCC_LOG_ERROR, "series have no users: %s", err.message);
    service->users = (struct occ_pseudonym){.users = OCC_USERS_NONE};
}

static int run(struct service *service, struct occ_error *err)
{
    const struct occ_config *config = &service->config;
    const struct occ_options *options = service->options;
    _cleanup_(occ_freep) char *directory = NULL; /* directory of the settings if no file is named */
    _cleanup_(free_paths) struct paths paths = {.database = NULL};
    int status = find_paths(options, config, &paths, err);
    if (status == 0 && geteuid() == 0)
        status = occ_path_settings(&directory, err);
    if (status != 0)
        return status;
    service->is_shared = paths.is_shared;
    open_users(service);
    const char *http_socket = config->http_socket;
    if (!http_socket[0] && strcmp(paths.socket, OCC_PATH_SYSTEM_SOCKET) == 0)
        http_socket = OCC_PATH_SYSTEM_METRICS;
    struct occ_histories_limits limits;
    fill_limits(service, &limits);
    struct occ_server_options server = {
        .histories = {.path = paths.database,
                      .split = paths.split,
                      .waits = options->private_fd < 0,
                      .max_total_bytes = limits.max_total_bytes,
                      .store = {.mode = OCC_STORE_WRITE,
                                .empty = &occ_packed_history,
                                .chunk_rows = (uint32_t)config->chunk_rows,
                                .max_bytes = limits.max_bytes,
                                .ages = limits.ages,
                                .durable_full = config->database_sync != 0,
                                .busy_timeout_ms =
                                    service->is_shared ? SHARED_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS},
                      .collector = limits.collector},
        .socket_path = paths.socket,
        .socket_mode = paths.socket_mode,
        .private_fd = options->private_fd,
        .sampler = {.mode = (enum occ_sampler_mode)config->counters_mode,
                    .interval_ns = config->counters_interval_ns,
                    .assumptions = &service->assumptions},
        .http_socket = http_socket,
        .http_listen = config->http_listen,
        .http_max_runs = config->http_max_runs,
        .users = &service->users,
        .http_tls = {[OCC_TLS_CERTIFICATE] = config->tls_cert,
                     [OCC_TLS_KEY] = config->tls_key,
                     [OCC_TLS_CLIENT_CA] = config->client_ca},
        .is_covering = config->coverage_mode == 0,
        .job_directory = config->job_directory,
        .reload = reload,
        .context = service,
        .config = options->config                             ? options->config
                  : directory && access(directory, F_OK) == 0 ? directory
                                                              : NULL,
    };
    return occ_server_run(&server, err);
}

/* Asks the daemon at the named socket, else the user's own, else the service. */
static int print_status(const struct occ_options *options, const struct occ_config *config,
                        struct occ_error *err)
{
    _cleanup_(occ_freep) char *path = NULL;
    _cleanup_(occ_closep) int fd = -1;
    bool is_named = options->socket || config->socket_path[0];
    enum occ_status_form form = options->json      ? OCC_STATUS_JSON
                                : options->verbose ? OCC_STATUS_ALL
                                                   : OCC_STATUS_LINES;
    int status = choose_path(options->socket, config->socket_path, occ_path_default_socket, &path, err);
    if (status == 0)
        status = is_named ? occ_control_connect(path, &fd, err) : occ_path_connect_default(&fd, err);
    if (status == 0)
        status = occ_status_print(fd, form, stdout, err);
    return status == 0 && fflush(stdout) != 0 ? occ_fail(err, OCC_E_IO, "cannot write to stdout") : status;
}

static const char *metrics_socket(const struct occ_config *config)
{
    return config->http_socket[0] ? config->http_socket : OCC_PATH_SYSTEM_METRICS;
}

static int usage_error(const struct occ_error *err)
{
    (void)fprintf(stderr, "occtraced: %s\nTry 'occtraced --help'.\n", err->message);
    return 2;
}

/* --check-config: also checks the directories in the settings, and settings that need each other. */
static int check_config(const struct occ_options *options, const struct occ_config *config,
                        struct occ_error *err)
{
    _cleanup_(free_paths) struct paths paths = {.database = NULL};
    if (!options->check_config)
        return 0;
    int status = occ_config_check_groups(config, err);
    return status == 0 && geteuid() == 0 ? find_paths(options, config, &paths, err) : status;
}

/* Other assumptions of the attribution, for experiments on a real GPU. */
static int read_assumptions(struct occ_attribution_assumptions *assumptions, struct occ_error *err)
{
    const char *given = secure_getenv("OCCTRACE_ASSUME");
    *assumptions = occ_attribution_usual;
    return !given || occ_attribution_assume(assumptions, given)
               ? 0
               : occ_fail(err, OCC_E_INVALID, "OCCTRACE_ASSUME is not a list of NAME=VALUE: %.100s", given);
}

static void print_settings(const struct service *service)
{
    char assumptions[OCC_ASSUMPTIONS_BYTES];
    occ_attribution_print_assumptions(&service->assumptions, assumptions);
    occ_config_print(&service->config, stdout);
    printf("# OCCTRACE_ASSUME=%s\n", assumptions);
}

/* Prints help, version, probe results or settings. */
static int answer(const struct service *service)
{
    const struct occ_options *options = service->options;
    if (options->help)
        occ_options_help(stdout);
    else if (options->version)
        (void)fputs("occtraced " OCC_VERSION "\n" OCC_VERSION_DETAILS, stdout);
    else if (options->probe)
        occ_probe(stdout, options->probe);
    else if (options->print_config)
        print_settings(service);
    return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_options options;
    struct service service = {.options = &options};
    occ_log_init("occtraced");
    if (occ_options_parse(argc, argv, &options, &err) != 0)
        return usage_error(&err);
    if (options.help || options.version || options.probe)
        return answer(&service);
    if (read_assumptions(&service.assumptions, &err) != 0)
        return usage_error(&err);
    int status = 0;
    if (options.migrate)
        status = occ_upgrade_histories(options.migrate, options.backup, stdout, &err);
    else
        status = load_files(&options, &service.config, &err);
    if (status == 0 &&
        (apply_options(&options, &service.config, &err) != 0 || check_private(options.private_fd, &err) != 0))
        return usage_error(&err);
    if (status == 0 && options.migrate)
        return 0;
    if (status == 0 && options.alive && (status = occ_alive_ask(metrics_socket(&service.config), &err)) == 0)
        return 0;
    if (status == 0 && options.status && (status = print_status(&options, &service.config, &err)) == 0)
        return 0;
    if (status == 0)
        status = check_config(&options, &service.config, &err);
    if (status == 0 && (options.check_config || options.print_config))
        return answer(&service);
    set_log_level(&options, &service.config);
    raise_descriptor_limit();
    (void)signal(SIGXFSZ, SIG_IGN); /* a history that hits RLIMIT_FSIZE is treated as on a full disk */
    if (status == 0)
        status = run(&service, &err);
    if (status == 0)
        return 0;
    occ_log(OCC_LOG_ERROR, "%s", err.message);
    return status == OCC_E_VERSION ? EX_CONFIG : 1;
}
