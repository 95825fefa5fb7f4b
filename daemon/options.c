/* The command line: see options.h. */
#include "options.h"

#include <limits.h>
#include <stddef.h>

#include "support/options.h"
#include "support/text.h"

static const struct occ_option rows[] = {
#define AT(member) offsetof(struct occ_options, member)
    {'c', "config", "FILE", AT(config),
     "settings (default for root: occtrace.yaml and" OCC_OPTION_INDENT
     "conf.d/*.yaml in /etc/occtrace, installed in another" OCC_OPTION_INDENT
     "prefix than /usr: in PREFIX/etc/occtrace)"},
    {0, "check-config", NULL, AT(check_config), "say whether the settings are valid, and end"},
    {0, "print-config", NULL, AT(print_config), "print the settings in effect, and end"},
    {0, "status", NULL, AT(status), "print the state of the running daemon, and end"},
    {0, "alive", NULL, AT(alive),
     "end with 0 if the running daemon's loop turns, for a" OCC_OPTION_INDENT "liveness probe"},
    {0, "json", NULL, AT(json), "with --status: as JSON"},
    {'v', "verbose", NULL, AT(verbose), "with --status: all of each history, instead of a line"},
    {0, "migrate", "PATH", AT(migrate),
     "bring a history, or all below a directory, to this" OCC_OPTION_INDENT "version's schema, and end"},
    {0, "backup", NULL, AT(backup), "with --migrate: leave a copy beside each"},
    {'d', "db", "FILE", AT(database), "the history"},
    {0, "socket", "PATH", AT(socket), "where programs report"},
    {0, "private", "FD", AT(private),
     "serve one starter at the other end of the socket FD:" OCC_OPTION_INDENT
     "write a byte to it when listening, end after it and" OCC_OPTION_INDENT "the last program have ended"},
    {'f', "foreground", NULL, AT(foreground), "stay in the foreground (always so)"},
    {0, "log-level", "LEVEL", AT(log_level), "error, warning, info or debug"},
    {0, "counters", "MODE", AT(counters),
     "which hardware counters may be used: auto, pm, gpm" OCC_OPTION_INDENT
     "or none (default: the configuration's)"},
    {0, "probe", "ROOT", AT(probe),
     "print the libcupti candidates and the other profilers" OCC_OPTION_INDENT
     "below the directory ROOT, as occq doctor asks, and end"},
    {'h', "help", NULL, AT(help), "this text"},
    {'V', "version", NULL, AT(version), "the version"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

int occ_options_parse(int argc, char **argv, struct occ_options *ret_options, struct occ_error *err)
{
    struct occ_options options = {.private_fd = -1};
    uint64_t fd = 0;
    int status = occ_options_read(rows, N_ROWS, argc, argv, &options, err);
    if (status != 0)
        return status;
    if (options.json && !options.status)
        return occ_fail(err, OCC_E_INVALID, "--json goes with --status");
    if (options.verbose && (!options.status || options.json))
        return occ_fail(err, OCC_E_INVALID, "--verbose goes with --status, as text");
    if (options.private) {
        if (occ_parse_u64(options.private, 0, INT_MAX, &fd, err) != 0)
            return occ_error_prefix(err, "option '--private'");
        options.private_fd = (int)fd;
    }
    *ret_options = options;
    return 0;
}

void occ_options_help(FILE *out)
{
    (void)fputs("Usage: occtraced [options]\n"
                "Collects the kernel launches of CUDA programs into their history.\n\n",
                out);
    occ_options_print(rows, N_ROWS, out);
    (void)fputs("\nEnds with SIGTERM: every ring is drained and committed first.\n", out);
}
