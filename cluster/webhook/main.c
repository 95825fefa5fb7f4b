/* occtrace-webhook: command line, then server.c. Exit codes: 0 ended by SIGTERM or SIGINT, 1 failure, 2
 * usage. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "server.h"
#include "support/log.h"
#include "support/options.h"

#define REQUEST_NS INT64_C(10000000000) /* the API server waits for 10 s by default */

struct options {
    const char *listen, *certificate, *key, *library, *run, *log_level;
    bool help, version;
};

static const struct occ_option rows[] = {
#define AT(member) offsetof(struct options, member)
    {0, "cert", "FILE", AT(certificate), "the server's certificate (PEM); read again when it changes"},
    {0, "key", "FILE", AT(key), "the certificate's key (PEM)"},
    {0, "listen", "[ADDRESS]:PORT", AT(listen), "default [::]:8443, all addresses; port 0: any, logged"},
    {0, "library-directory", "DIR", AT(library),
     "the node's directory with libocctrace.so" OCC_OPTION_INDENT "(default " OCC_ADMISSION_LIBRARY_DIRECTORY
     ")"},
    {0, "run-directory", "DIR", AT(run),
     "the node's directory with the daemon's socket" OCC_OPTION_INDENT "(default " OCC_ADMISSION_RUN_DIRECTORY
     ")"},
    {0, "log-level", "LEVEL", AT(log_level), "error, warning, info (a line per pod) or debug"},
    {'h', "help", NULL, AT(help), "this text"},
    {'V', "version", NULL, AT(version), "the version"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static volatile sig_atomic_t is_over;

static void on_end(int number)
{
    (void)number;
    is_over = 1;
}

static void print_help(void)
{
    (void)fputs("Usage: occtrace-webhook --cert FILE --key FILE [options]\n"
                "Answers Kubernetes' admission requests: new pods of chosen namespaces report to the node's "
                "daemon.\n\n",
                stdout);
    occ_options_print(rows, N_ROWS, stdout);
}

/* Sets `*directory` to its default, or checks it. Kubernetes refuses a hostPath with "..". */
static int check_directory(const char **directory, const char *preset, struct occ_error *err)
{
    if (!*directory)
        *directory = preset;
    size_t n = strlen(*directory);
    bool leaves = strstr(*directory, "/../") || (n >= 3 && strcmp(*directory + n - 3, "/..") == 0);
    return (*directory)[0] == '/' && !leaves
               ? 0
               : occ_fail(err, OCC_E_INVALID, "'%.128s' is not an absolute path without '..'", *directory);
}

static int set_log_level(const char *word, struct occ_error *err)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            occ_log_set_level((enum occ_log_level)i);
            return 0;
        }
    return occ_fail(err, OCC_E_INVALID,
                    "option '--log-level': '%.64s' is not one of error, warning, info, debug", word);
}

static int check_options(struct options *options, struct occ_error *err)
{
    if (!options->certificate || !options->key)
        return occ_fail(err, OCC_E_INVALID, "--cert and --key are needed");
    int status = check_directory(&options->library, OCC_ADMISSION_LIBRARY_DIRECTORY, err);
    if (status == 0)
        status = check_directory(&options->run, OCC_ADMISSION_RUN_DIRECTORY, err);
    return status == 0 && options->log_level ? set_log_level(options->log_level, err) : status;
}

/* The signals are blocked except while the server waits, so that none is missed. */
static void catch_signals(sigset_t *ret_while_waiting)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    const struct sigaction action = {.sa_handler = on_end};
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)sigaddset(&blocked, numbers[i]);
        (void)sigaction(numbers[i], &action, NULL);
    }
    (void)sigprocmask(SIG_BLOCK, &blocked, ret_while_waiting);
    (void)signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct options options = {0};
    struct occ_webhook *webhook = NULL;
    sigset_t while_waiting;
    occ_log_init("occtrace-webhook");
    int status = occ_options_read(rows, N_ROWS, argc, argv, &options, &err);
    if (status == 0 && (options.help || options.version)) {
        if (options.help)
            print_help();
        else
            (void)printf("occtrace-webhook %s\n%s", OCC_VERSION, OCC_VERSION_DETAILS);
        return 0;
    }
    if (status == 0)
        status = check_options(&options, &err);
    if (status != 0) {
        (void)fprintf(stderr, "occtrace-webhook: %s (try --help)\n", err.message);
        return 2;
    }
    const struct occ_webhook_options settings = {
        .listen = options.listen ? options.listen : "[::]:8443",
        .certificate_file = options.certificate,
        .key_file = options.key,
        .admission = {.library_directory = options.library, .run_directory = options.run},
        .request_ns = REQUEST_NS};
    catch_signals(&while_waiting);
    if (occ_webhook_open(&settings, &webhook, &err) != 0) {
        occ_log(OCC_LOG_ERROR, "%s", err.message);
        return 1;
    }
    occ_log(OCC_LOG_INFO, "listens at port %u", occ_webhook_port(webhook));
    occ_webhook_serve(webhook, &is_over, &while_waiting);
    occ_webhook_close(webhook);
    return 0;
}
