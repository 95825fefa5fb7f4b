/*
 * occtraced: command line, configuration, limits of the process, then server.c. Exit codes: 0 an orderly end,
 * 1 failure, 2 usage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "options.h"
#include "probe.h"
#include "server.h"
#include "support/cleanup.h"
#include "support/log.h"
#include "support/paths.h"

/* Silence of the helper thread after which a program without a connection counts as dead. */
#define ORPHAN_GRACE_NS INT64_C(10000000000)
/* The loop stands still while another process holds the history's lock; after this it tries again later. */
#define BUSY_TIMEOUT_MS 2000
/* With other users' programs beside: it does not wait (0 would be the store's default). */
#define SHARED_BUSY_TIMEOUT_MS 1
/* Of reading one history's rings in one round of the loop. */
#define ROUND_NS INT64_C(5000000)
/* By which the clocks of launches may differ from the machine's. */
#define SKEW_NS INT64_C(60000000000)

static int load_config(const struct occ_options *options, struct occ_config *config, struct occ_error *err)
{
    occ_config_defaults(config);
    if (options->config)
        return occ_config_load(options->config, config, err);
    if (geteuid() != 0 || access(OCC_CONFIG_FILE, F_OK) != 0)
        return 0;
    return occ_config_load(OCC_CONFIG_FILE, config, err);
}

/* A setting of the command line (NULL: none given) over the file's. */
static int override(struct occ_config *config, const char *setting, const char *option, const char *value,
                    struct occ_error *err)
{
    if (!value || occ_config_set(config, setting, value, err) == 0)
        return 0;
    return occ_error_prefix(err, "option '%s'", option);
}

/* The command line's path, else the configuration's, else the default. malloc'ed. */
static int choose_path(const char *given, const char *configured,
                       int (*default_path)(char **, struct occ_error *), char **ret_path,
                       struct occ_error *err)
{
    if (!given && configured[0] == '\0')
        return default_path(ret_path, err);
    *ret_path = strdup(given ? given : configured);
    return *ret_path ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
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

/* The service is for all users of the machine; the socket's credentials tell who connects. */
static uint32_t socket_mode(const struct occ_config *config, const char *path)
{
    if (config->socket_mode)
        return (uint32_t)config->socket_mode;
    return strcmp(path, OCC_PATH_SYSTEM_SOCKET) == 0 ? 0666 : 0600;
}

static int run(const struct occ_config *config, const struct occ_options *options, struct occ_error *err)
{
    _cleanup_(occ_freep) char *database = NULL;
    _cleanup_(occ_freep) char *socket_path = NULL;
    int status =
        choose_path(options->database, config->database_path, occ_path_default_history, &database, err);
    if (status == 0)
        status =
            choose_path(options->socket, config->socket_path, occ_path_default_socket, &socket_path, err);
    if (status != 0)
        return status;
    uint32_t mode = socket_mode(config, socket_path);
    bool is_shared = geteuid() == 0 && (mode & 0066) != 0 && options->private_fd < 0;
    const struct occ_server_options server = {
        .histories = {.path = database,
                      .split = is_shared && config->users_split == 0 && !options->database,
                      .store = {.mode = OCC_STORE_WRITE,
                                .chunk_rows = (uint32_t)config->chunk_rows,
                                .max_bytes = config->database_max_bytes,
                                .durable_full = config->database_sync != 0,
                                .busy_timeout_ms = is_shared ? SHARED_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS},
                      .collector = {.commit_interval_ns = config->commit_interval_ns,
                                    .memory_bytes = config->memory_bytes,
                                    .max_producers = config->max_producers,
                                    .max_ring_bytes = config->max_ring_bytes,
                                    .budget_ppm = config->budget_ppm,
                                    .max_user_producers = is_shared ? config->max_user_producers : 0,
                                    .max_user_ring_bytes = is_shared ? config->max_user_ring_bytes : 0,
                                    .round_ns = is_shared ? ROUND_NS : 0,
                                    .skew_ns = is_shared ? SKEW_NS : 0,
                                    .orphan_grace_ns = ORPHAN_GRACE_NS}},
        .socket_path = socket_path,
        .socket_mode = mode,
        .private_fd = options->private_fd,
        .sampler = {.mode = (enum occ_sampler_mode)config->counters_mode,
                    .interval_ns = config->counters_interval_ns},
    };
    return occ_server_run(&server, err);
}

static int usage_error(const struct occ_error *err)
{
    (void)fprintf(stderr, "occtraced: %s\nTry 'occtraced --help'.\n", err->message);
    return 2;
}

int main(int argc, char **argv)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_options options;
    struct occ_config config;
    occ_log_init("occtraced");
    if (occ_options_parse(argc, argv, &options, &err) != 0)
        return usage_error(&err);
    if (options.help || options.version || options.probe) {
        if (options.help)
            occ_options_help(stdout);
        else if (options.version)
            (void)puts("occtraced " OCC_VERSION);
        else
            occ_probe(stdout, options.probe);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    int status = load_config(&options, &config, &err);
    if (status == 0 && (override(&config, "log.level", "--log-level", options.log_level, &err) != 0 ||
                        override(&config, "counters.mode", "--counters", options.counters, &err) != 0 ||
                        check_private(options.private_fd, &err) != 0))
        return usage_error(&err);
    if (options.log_level || !getenv("OCCTRACE_LOG")) /* which wins over the file */
        occ_log_set_level((enum occ_log_level)config.log_level);
    raise_descriptor_limit();
    if (status == 0)
        status = run(&config, &options, &err);
    if (status == 0)
        return 0;
    occ_log(OCC_LOG_ERROR, "%s", err.message);
    return 1;
}
