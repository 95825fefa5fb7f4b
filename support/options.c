/* See options.h. */
#include "options.h"

#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "text.h"

#define FIRST_ID 256 /* getopt's value for the first row; lower values are letters */

/* Makes getopt's tables from ours. */
static void build_tables(const struct occ_option *rows, size_t n, struct option *options, char *letters)
{
    char *letter = letters;
    *letter++ = ':'; /* tells a missing argument from an unknown option */
    for (int i = 0; i < (int)n; i++) {
        options[i] = (struct option){.name = rows[i].name,
                                     .has_arg = rows[i].argument ? required_argument : no_argument,
                                     .val = FIRST_ID + i};
        if (rows[i].letter)
            *letter++ = rows[i].letter;
        if (rows[i].letter && rows[i].argument)
            *letter++ = ':';
    }
    *letter = '\0';
    options[n] = (struct option){0};
}

static const struct occ_option *row_of(const struct occ_option *rows, int value)
{
    size_t i = 0;
    while (value < FIRST_ID && rows[i].letter != value)
        i++;
    return &rows[value < FIRST_ID ? i : (size_t)(value - FIRST_ID)];
}

static int fail_option(const struct occ_option *rows, size_t n, int value, const char *word,
                       struct occ_error *err)
{
    if (value == ':')
        return occ_fail(err, OCC_E_INVALID, "option '%.64s' needs an argument", word);
    const char *names[OCC_OPTIONS_MAX + 1] = {0};
    for (size_t i = 0; i < n; i++)
        names[i] = rows[i].name;
    const char *nearest = strncmp(word, "--", 2) == 0 ? occ_text_nearest(word + 2, names) : NULL;
    return occ_fail(err, OCC_E_INVALID, "unknown option '%.64s'%s%s%s", word,
                    nearest ? "; did you mean '--" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

int occ_options_read(const struct occ_option *options, size_t n, int argc, char **argv, void *values,
                     struct occ_error *err)
{
    struct option table[OCC_OPTIONS_MAX + 1];
    char letters[2 * OCC_OPTIONS_MAX + 2];
    build_tables(options, n, table, letters);
    opterr = 0;
    optind = 1;
    for (int at = 1, value; (value = getopt_long(argc, argv, letters, table, NULL)) != -1; at = optind) {
        if (value == '?' || value == ':')
            return fail_option(options, n, value, argv[optind > at ? optind - 1 : at], err);
        const struct occ_option *row = row_of(options, value);
        void *member = (char *)values + row->offset;
        if (row->argument)
            *(const char **)member = optarg;
        else
            *(bool *)member = true;
    }
    return optind < argc ? occ_fail(err, OCC_E_INVALID, "unexpected argument '%.64s'", argv[optind]) : 0;
}

void occ_options_print(const struct occ_option *options, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct occ_option *row = &options[i];
        char left[64], letter[8] = "    ";
        if (row->letter)
            (void)snprintf(letter, sizeof letter, "-%c, ", row->letter);
        (void)snprintf(left, sizeof left, "  %s--%s%s%s", letter, row->name, row->argument ? " " : "",
                       row->argument ? row->argument : "");
        (void)fprintf(out, "%-25s %s\n", left, row->help);
    }
}
