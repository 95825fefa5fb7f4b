/*
 * Values and columns: the content of a command's answer, independent of its format. One table of columns
 * defines -o, the text table, JSON, CSV, the help and the man page.
 *
 * Raw values (JSON, CSV): ratios 0...1, nanoseconds, counts. On a terminal: percent and human units. A value
 * that was not measured is CLI_NONE (or a NaN): null in JSON, empty in CSV, "-" on a terminal.
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/digits.h"
#include "support/error.h"

enum cli_type { CLI_NONE, CLI_INTEGER, CLI_UNSIGNED, CLI_REAL, CLI_STRING, CLI_BOOL };

/* The format of a number for people. */
enum cli_unit {
    CLI_PLAIN,    /* unchanged */
    CLI_RATIO,    /* 0.5 -> 50.0% */
    CLI_DURATION, /* nanoseconds */
    CLI_TIME,     /* nanoseconds since the epoch -> local time */
    CLI_UTC,      /* nanoseconds since the epoch -> UTC, with the zone's name */
    CLI_FACTOR,   /* two digits after the point */
    CLI_AMOUNT,   /* 12345.6 -> 12.35k, warp-seconds */
    CLI_MEMORY,   /* bytes: 65536 -> 64.0 KiB */
};

struct cli_value {
    enum cli_type type;
    union {
        int64_t integer;
        uint64_t number;
        double real; /* finite */
        const char *string;
        bool boolean;
    };
};

/* NaN, infinities and NULL are CLI_NONE. */
struct cli_value cli_integer(int64_t integer);
struct cli_value cli_unsigned(uint64_t number);
struct cli_value cli_real(double real);
struct cli_value cli_string(const char *string);
struct cli_value cli_bool(bool boolean);

enum {
    CLI_DEFAULT = 1,    /* shown in text when -o is not given */
    CLI_TEXT_ONLY = 2,  /* repeats other columns for people: in JSON and CSV only on request */
    CLI_LEFT = 4,       /* not a number: left-aligned */
    CLI_CUTS = 8,       /* may be shortened on a narrow screen */
    CLI_MORE = 16,      /* omitted if the command has no values for it */
    CLI_VERBATIM = 32,  /* the heading keeps the name as it is, since the user chose it */
    CLI_WIDE = 64,      /* with CLI_DEFAULT: only on a screen that is wide enough */
    CLI_MARKS = 128,    /* letters of marks.h, with a legend below */
    CLI_RARE = 512,     /* by default shown only if a row has a value */
    CLI_NONZERO = 4096, /* with CLI_RARE: 0 counts as no value */
    CLI_VARIES = 1024,  /* by default shown only if two rows with a value differ */
    CLI_HEAT = 256,     /* a ratio, coloured if it is large */
    CLI_ADDS = 2048,    /* additive: the table of all owners has its sum */
};
/* Rank of a column: on a narrow screen columns that the user did not request are hidden, the largest rank
 * first; a column without a rank is never hidden. */
#define CLI_SPARE(rank)    ((unsigned int)(rank) << 16)
#define CLI_RANK_OF(flags) ((flags) >> 16)

struct cli_column;
/* Returns the column's value in `row`; strings belong to the row. */
typedef struct cli_value cli_getter(const struct cli_column *column, const void *row);

struct cli_column {
    const char *name; /* for -o and the heading; NULL ends a table */
    const char *key;  /* in JSON, CSV and SQL; with its unit */
    enum cli_unit unit;
    unsigned int flags;
    const char *help;
    cli_getter *get;
    size_t index;    /* for `get` functions of several columns; with CLI_FIELD the member's offset */
    const char *sql; /* expression for columns that come from a statement; NULL: the key */
    /* with CLI_CUTS: another text, shown instead of one that would be cut; CLI_NONE: there is none; NULL:
     * there never is */
    cli_getter *brief;
};

/* A column that shows `member` of the rows' type. Texts are `const char *` or arrays; NULL, "" and NaN become
 * CLI_NONE. */
#define CLI_FIELD(name, key, unit, flags, type, member, help)                                                \
    {                                                                                                        \
        name, key, unit, flags, help, CLI_GETTER(((type *)NULL)->member), offsetof(type, member), NULL, NULL \
    }
#define CLI_GETTER(member)                                                                                   \
    _Generic((member), uint32_t                                                                              \
             : cli_get_u32, uint64_t                                                                         \
             : cli_get_u64, int64_t                                                                          \
             : cli_get_i64, double                                                                           \
             : cli_get_real, bool                                                                            \
             : cli_get_bool, const char *                                                                    \
             : cli_get_string, char *                                                                        \
             : cli_get_array)
#define CLI_COLUMN_END                                                                                       \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }
cli_getter cli_get_u32, cli_get_u64, cli_get_i64, cli_get_real, cli_get_bool, cli_get_string, cli_get_array;

#define CLI_MAX_COLUMNS 96

enum cli_format { CLI_FORMAT_TEXT, CLI_FORMAT_JSON, CLI_FORMAT_CSV };

struct cli_gather;

/* The selected columns, their order and the format. */
struct cli_selection {
    const struct cli_column *table; /* the table of all columns */
    struct cli_gather *gather;      /* takes the rows instead of the output (gather.h); NULL: none */
    enum cli_format format;
    const struct cli_column *columns[CLI_MAX_COLUMNS];
    size_t n;
    /* requested by name; a column that was not requested may be hidden (CLI_SPARE) */
    bool asked[CLI_MAX_COLUMNS];
};

/* Selects all columns with (flags & with) == with and (flags & without) == 0; keeps the format, and sets no
 * gatherer. */
void cli_select(const struct cli_column *table, unsigned int with, unsigned int without,
                struct cli_selection *ret_selection);

/* `list`: names or keys, separated by commas; with a leading '+' the columns are added to `selection`,
 * otherwise they replace it. Returns OCC_E_INVALID for an unknown column (the message names the most similar
 * one), a repeated column or too many columns. */
int cli_select_list(const struct cli_column *table, const char *list, struct cli_selection *selection,
                    struct occ_error *err);

/* Writes the value for people into `buffer` (strings are shortened to `size` and sanitised); returns
 * `buffer`. */
const char *cli_value_text(const struct cli_value *value, enum cli_unit unit, char *buffer, size_t size);
/* Formats a number for programs: digits that read back as the same number. CLI_NONE: "". Not for strings. */
const char *cli_value_raw(const struct cli_value *value, char buffer[OCC_DIGITS_BYTES]);

/* Formats "50.0%"; "-" for NaN. */
const char *cli_percent_text(double ratio, char *buffer, size_t size);
/* Formats "50.0 to 62.5%"; "50.0%" if both ends have the same text. A size of 24 suffices. */
const char *cli_range_text(double low, double high, char *buffer, size_t size);
/* Formats a range for a table cell: "50.0-62.5%". */
const char *cli_range_cell(double low, double high, char *buffer, size_t size);
/* Formats "12.35k"; "-" for NaN. */
const char *cli_amount_text(double amount, char *buffer, size_t size);
/* Formats "2026-01-31 12:00:00", local time; "+2.5 ms" in a recording without absolute times. */
const char *cli_time_text(int64_t ns, char *buffer, size_t size);
/* Formats a time with the zone's name: "2026-01-31 12:00:00 CET", or "... UTC". */
const char *cli_zone_time_text(int64_t ns, bool is_utc, char *buffer, size_t size);
