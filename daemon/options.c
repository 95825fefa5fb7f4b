/* The command line: see options.h. getopt_long() keeps state of its own, so: the main thread, once. */
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "support/text.h"

enum option_id {
    ID_CONFIG = 256,
    ID_DB,
    ID_SOCKET,
    ID_PRIVATE,
    ID_FOREGROUND,
    ID_LOG_LEVEL,
    ID_COUNTERS,
    ID_VERSION,
    ID_HELP
};

static const struct row {
    enum option_id id;
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
} rows[] = {
    {ID_CONFIG, 'c', "config", "FILE", "settings (default for root: " OCC_CONFIG_FILE ", if it is there)"},
    {ID_DB, 'd', "db", "FILE", "the history"},
    {ID_SOCKET, 0, "socket", "PATH", "where programs report"},
    {ID_PRIVATE, 0, "private", "FD",
     "serve one starter at the other end of the socket FD: write a byte to it when listening, "
     "end after it and the last program are gone"},
    {ID_FOREGROUND, 'f', "foreground", NULL, "stay in the foreground (always so; accepted for habit)"},
    {ID_LOG_LEVEL, 0, "log-level", "LEVEL", "error, warning, info or debug"},
    {ID_COUNTERS, 0, "counters", "MODE",
     "which hardware counters may be used: auto, pm, gpm or none (default: the configuration's)"},
    {ID_HELP, 'h', "help", NULL, "this text"},
    {ID_VERSION, 'V', "version", NULL, "the version"},
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* getopt's tables out of ours. */
static void build_tables(struct option options[N_ROWS + 1], char letters[2 * N_ROWS + 2])
{
    char *letter = letters;
    *letter++ = ':'; /* tell a missing argument from an unknown option */
    for (size_t i = 0; i < N_ROWS; i++) {
        options[i] = (struct option){.name = rows[i].name,
                                     .has_arg = rows[i].argument ? required_argument : no_argument,
                                     .val = (int)rows[i].id};
        if (rows[i].letter)
            *letter++ = rows[i].letter;
        if (rows[i].letter && rows[i].argument)
            *letter++ = ':';
    }
    *letter = '\0';
    options[N_ROWS] = (struct option){0};
}

static int id_of(int value)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].letter == value)
            return (int)rows[i].id;
    return value;
}

static int fail_option(int value, const char *word, struct occ_error *err)
{
    if (value == ':')
        return occ_fail(err, OCC_E_INVALID, "option '%.64s' needs an argument", word);
    const char *names[N_ROWS + 1] = {0};
    for (size_t i = 0; i < N_ROWS; i++)
        names[i] = rows[i].name;
    const char *nearest = strncmp(word, "--", 2) == 0 ? occ_text_nearest(word + 2, names) : NULL;
    return occ_fail(err, OCC_E_INVALID, "unknown option '%.64s'%s%s%s", word,
                    nearest ? "; did you mean '--" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int take_private(const char *text, int *ret_fd, struct occ_error *err)
{
    uint64_t fd = 0;
    int status = occ_parse_u64(text, 0, INT_MAX, &fd, err);
    if (status != 0)
        return occ_error_prefix(err, "option '--private'");
    *ret_fd = (int)fd;
    return 0;
}

static int take_option(int id, const char *argument, struct occ_options *options, struct occ_error *err)
{
    switch (id) {
    case ID_CONFIG:
        options->config = argument;
        return 0;
    case ID_DB:
        options->database = argument;
        return 0;
    case ID_SOCKET:
        options->socket = argument;
        return 0;
    case ID_LOG_LEVEL:
        options->log_level = argument;
        return 0;
    case ID_COUNTERS:
        options->counters = argument;
        return 0;
    case ID_PRIVATE:
        return take_private(argument, &options->private_fd, err);
    case ID_HELP:
        options->help = 1;
        return 0;
    case ID_VERSION:
        options->version = 1;
        return 0;
    default: /* --foreground */
        return 0;
    }
}

int occ_options_parse(int argc, char **argv, struct occ_options *ret_options, struct occ_error *err)
{
    struct option table[N_ROWS + 1];
    char letters[2 * N_ROWS + 2];
    struct occ_options options = {.private_fd = -1};
    build_tables(table, letters);
    opterr = 0;
    optind = 1;
    for (;;) {
        int at = optind;
        int value = getopt_long(argc, argv, letters, table, NULL);
        if (value == -1)
            break;
        if (value == '?' || value == ':')
            return fail_option(value, argv[optind > at ? optind - 1 : at], err);
        int status = take_option(id_of(value), optarg, &options, err);
        if (status != 0)
            return status;
    }
    if (optind < argc)
        return occ_fail(err, OCC_E_INVALID, "unexpected argument '%.64s'", argv[optind]);
    *ret_options = options;
    return 0;
}

/* One help text, broken between words at the right margin. */
static void print_help(FILE *out, const char *text)
{
    const size_t indent = 26, width = 80;
    size_t column = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + n > width) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        column += (size_t)fprintf(out, "%s%.*s", column > indent ? " " : "", (int)n, text);
        text += n + (text[n] == ' ');
    }
    (void)fputc('\n', out);
}

void occ_options_help(FILE *out)
{
    (void)fputs("Usage: occtraced [options]\n"
                "Collects the kernel launches of CUDA programs into their history.\n\n",
                out);
    for (size_t i = 0; i < N_ROWS; i++) {
        char left[64];
        char letter[8] = "    ";
        if (rows[i].letter)
            (void)snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        (void)snprintf(left, sizeof left, "  %s--%s%s%s", letter, rows[i].name, rows[i].argument ? " " : "",
                       rows[i].argument ? rows[i].argument : "");
        (void)fprintf(out, "%-25s ", left);
        print_help(out, rows[i].help);
    }
    (void)fputs("\nEnds with SIGTERM: every ring is drained and committed first.\n", out);
}
