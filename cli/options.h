/*
 * Commands and their options as tables. One row of `struct cli_option` drives parsing (here), --help
 * (usage.h), and through it the man pages (scripts/gen-man) and the shell completion.
 *
 * The command line has the rules of GNU getopt_long without abbreviations: -n5, -n 5, --number=5, --number 5;
 * letters of flags may be joined; an option with an optional value takes it only after "="; "--" ends the
 * options; operands may stand between options, unless the command stops at the first operand (occtrace: the
 * program's arguments follow).
 *
 * Spellings of other tools are understood but not listed: --limit (--number), --format json|csv|text (--json,
 * --csv), -k
 * (--kernel), --colour (--color).
 *
 * No output, no exit, no globals; reads the clock for CLI_MOMENT. argv is reordered and not copied: texts
 * point into it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/paths.h"
#include "support/error.h"

struct cli_column;
struct cli_command;

/* The kind of a value, with the type of the field at `offset` that receives it. */
enum cli_kind {
    CLI_FLAG,    /* bool; no value */
    CLI_TEXT,    /* const char *; not empty */
    CLI_MOMENT,  /* int64_t, nanoseconds since the epoch; see occ_parse_time_ns() */
    CLI_NUMBER,  /* int64_t, min ... max of the row, or -1, -2 ... for one of its words */
    CLI_PERCENT, /* double, a ratio; given as 0 < percent <= 100 */
    CLI_WORD,    /* const char *; one of the row's words (the pointer is the row's) */
    CLI_SPAN,    /* int64_t, nanoseconds, min ... max of the row; "90s", "5m" */
    CLI_BYTES,   /* int64_t, min ... max of the row; "64k", "1M" */
    /* uint32_t[3], x, y and z, at least 1 each; "128", "16x16", "8,8,4": omitted dimensions are 1 */
    CLI_SIZE,
};

struct cli_option {
    char letter;      /* 0: none */
    const char *name; /* long; NULL ends a table */
    enum cli_kind kind;
    size_t offset;            /* of the field in the command's arguments */
    const char *value;        /* name of the value in the help */
    const char *help;         /* one sentence without a full stop */
    const char *without;      /* value if the option is given without one; NULL: a value is required */
    const char *const *words; /* CLI_WORD, CLI_NUMBER: NULL-terminated */
    int64_t min, max;         /* CLI_NUMBER, CLI_SPAN, CLI_BYTES */
};

/* Options of every command; the first member of every command's arguments. */
struct cli_args {
    bool help, version, no_pager;
    const char *colour; /* NULL: auto */
    const char *db;
    const char *all_users;    /* directory of histories that are all queried; NULL: none */
    uint32_t busy_timeout_ms; /* see struct occ_store_options */
    char **operands;          /* in argv */
    int operand_count;
    uint64_t given; /* bit i: row i of the options */
};

struct cli_example {
    const char *command, *text;
};
enum { CLI_EXAMPLES = 12 };

/* Another form of a command: an option that chooses other options, columns and another function. */
struct cli_form {
    const char *option;                 /* long name; NULL ends a table */
    const char *word;                   /* the only value that chooses the form; NULL: any value, or none */
    bool (*applies)(char *const *argv); /* a further condition; NULL: none */
    const struct cli_command *command;
};

/* Histories of owners, in ascending order of their names. */
struct cli_owner {
    char *name, *path;
};
struct cli_owners {
    struct cli_owner *list;
    size_t n, closed; /* closed: number of further directories that the user may not enter */
};

struct cli_command {
    const char *program;  /* "occtrace"; NULL: a command of occq */
    const char *name;     /* "top"; NULL: the program itself */
    const char *operands; /* for the synopsis: "KERNEL"; NULL: none */
    int min_operands, max_operands;
    bool stops_at_operand;
    bool merges_owners;           /* --all-users prints one table; else an answer for each owner */
    bool is_paged;                /* answers may be longer than a screen */
    const char *group;            /* heading in the program's --help; NULL for other forms and older names */
    const char *form;             /* of another form: its option, as in the synopsis: "--on GPU" */
    const struct cli_form *forms; /* other forms of this command; NULL: none */
    const char *summary;          /* for occq's commands: half a sentence, lower case */
    const char *description;      /* paragraphs, separated by an empty line */
    const struct cli_option *options;
    const struct cli_column *columns; /* for -o; NULL: none */
    bool checks_columns;              /* `check` checks -o: names of columns depend on other options */
    struct cli_example examples[CLI_EXAMPLES]; /* the last example is empty */
    /* Defaults and size of the command's arguments. The arguments begin with a struct cli_args, or, for a
     * command with columns, with a struct cli_list_args (command.h). */
    const void *defaults;
    size_t args_bytes;
    /* Checks conditions that `kind` cannot express; NULL: none. A failure counts as wrong usage. */
    int (*check)(void *args, struct occ_error *err);
    int (*run)(const struct cli_command *command, const void *args); /* returns the exit status */
    /* With --all-users: answers for all histories at once and returns the exit status; NULL: `run` answers
     * for each. */
    int (*run_all)(const struct cli_command *command, const void *args, const struct cli_owners *owners);
    /* With --all-users and merges_owners: called once, after all histories were queried; or NULL. */
    void (*note_all)(const struct cli_command *command, const void *args);
};
static inline const char *cli_program(const struct cli_command *command)
{
    return command->program ? command->program : "occq";
}

/* Size and defaults of a command's arguments: their type, and initialisers of members with a default other
 * than 0. */
#define CLI_ARGS(type, ...)                                                                                  \
    .args_bytes = sizeof(type), .defaults = &(const type)                                                    \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Forms of a moment, for the help. */
#define CLI_MOMENT_HELP                                                                                      \
    "a duration ago (90s, 15m, 2h, 3d), 'YYYY-MM-DD HH:MM', today, yesterday, now or @SECONDS"

/* Exit statuses of occq. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILURE = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_NOTHING = 3,
    CLI_EXIT_RULE_FAILS = 4 /* occq check */
};

/* A row: struct cli_option's members, `field` of `type` instead of the offset; then other members by name
 * (.words = ..., .min = ...). */
#define CLI_OPTION(letter_, name_, kind_, type, field, value_, help_, ...)                                   \
    {                                                                                                        \
        .letter = letter_, .name = name_, .kind = kind_, .offset = offsetof(type, field), .value = value_,   \
        .help = help_, __VA_ARGS__                                                                           \
    }
/* Options of commands that can query several histories: one table (struct cli_command, merges_owners) or one
 * answer per owner. Their arguments begin with a struct cli_list_args. */
#define CLI_OPTION_OF_ALL_USERS(answer)                                                                      \
    CLI_OPTION(0, "all-users", CLI_TEXT, struct cli_args, all_users, "DIR",                                  \
               "ask the service's histories of all owners (default " OCC_PATH_SERVICE_DIRECTORY              \
               "; for root): " answer,                                                                       \
               .without = OCC_PATH_SERVICE_DIRECTORY)
#define CLI_OPTION_ALL_USERS                                                                                 \
    CLI_OPTION_OF_ALL_USERS("one table in the command's order, with column owner and a sum of the columns "  \
                            "that add up, over the rows above")
#define CLI_OPTION_EACH_USER CLI_OPTION_OF_ALL_USERS("text, one owner's answer after the other's")
#define CLI_OPTION_DB                                                                                        \
    CLI_OPTION('d', "db", CLI_TEXT, struct cli_args, db, "FILE",                                             \
               "the history (default: $XDG_STATE_HOME/occtrace/history.db)")
#define CLI_OPTION_HELP                                                                                      \
    CLI_OPTION('h', "help", CLI_FLAG, struct cli_args, help, NULL, "show this help and exit")
#define CLI_OPTION_VERSION                                                                                   \
    CLI_OPTION('V', "version", CLI_FLAG, struct cli_args, version, NULL, "show the version and exit")
/* Options of commands that print for people. */
extern const char *const cli_colour_words[];
#define CLI_OPTION_COLOUR                                                                                    \
    CLI_OPTION(0, "color", CLI_WORD, struct cli_args, colour, "WHEN",                                        \
               "auto (default: on a terminal, unless NO_COLOR is set), always or never",                     \
               .words = cli_colour_words)
#define CLI_OPTIONS_SCREEN                                                                                   \
    CLI_OPTION_COLOUR, CLI_OPTION(0, "no-pager", CLI_FLAG, struct cli_args, no_pager, NULL,                  \
                                  "do not page on a terminal (pager: $OCC_PAGER, $PAGER, else less)")
#define CLI_OPTION_END                                                                                       \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

/* Reads `argv` (NULL-terminated, without the program's name) into `args`, the command's own arguments, which
 * the caller has filled with defaults. Returns OCC_E_INVALID with a message that names the option or operand,
 * and the nearest existing name. The number of operands is not checked if help or version is requested. */
int cli_parse(const struct cli_command *command, char **argv, struct cli_args *args, struct occ_error *err);

/* True if the option was given; `options` is the table used for parsing. */
bool cli_is_given(const struct cli_option *options, const struct cli_args *args, const char *name);

/* Fails with "unknown option '--flog'; did you mean '--flag'?", made of `what`, `before`, the first `length`
 * bytes of `word`, and the most similar of `names` (NULL-terminated), if one is similar. Returns
 * OCC_E_INVALID. */
int cli_fail_unknown(const char *what, const char *before, const char *word, size_t length,
                     const char *const *names, struct occ_error *err);
