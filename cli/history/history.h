/* Shared by the commands of occq that read a history: filters, and opening the file. One thread. */
#pragma once

#include "cli/command.h"
#include "store/store.h"
#include "support/cleanup.h"

/* The first member of the arguments of commands that read a history. */
struct history_args {
    struct cli_list_args list;
    struct occ_filter filter;
    const char *cluster, *cluster_name, *node; /* see cluster.h */
    struct occ_filter asked;                   /* the filter as given, for the warehouse */
    const char *name;                          /* form of kernel names; see names.h */
    int64_t number;                            /* maximum number of rows */
};

#define CLI_OPTIONS_PERIOD                                                                                   \
    CLI_OPTION(0, "since", CLI_MOMENT, struct history_args, filter.since_ns, "WHEN",                         \
               "only from then on: " CLI_MOMENT_HELP                                                         \
               "; rows count whole launches by their start, GPU time the part of each in the period"),       \
        CLI_OPTION(0, "until", CLI_MOMENT, struct history_args, filter.until_ns, "WHEN", "only before then")
#define CLI_OPTIONS_RUN                                                                                      \
    CLI_OPTION(0, "run", CLI_NUMBER, struct history_args, filter.run, "ID",                                  \
               "only this run ('occq runs' lists them); last: the newest run with launches", .min = 1,       \
               .max = INT64_MAX, .words = cli_run_words),                                                    \
        CLI_OPTION(0, "label", CLI_TEXT, struct history_args, filter.label, "TEXT",                          \
                   "only runs with this label (occtrace --label); * and ? match any text and character"),    \
        CLI_OPTION(0, "user", CLI_TEXT, struct history_args, filter.user, "NAME", "only runs of this user"), \
        CLI_OPTION(0, "job", CLI_TEXT, struct history_args, filter.job, "ID",                                \
                   "only runs of this Slurm job or Kubernetes pod"),                                         \
        CLI_OPTION(0, "account", CLI_TEXT, struct history_args, filter.account, "NAME",                      \
                   "only runs of this Slurm account"),                                                       \
        CLI_OPTION(0, "partition", CLI_TEXT, struct history_args, filter.partition, "NAME",                  \
                   "only runs in this Slurm partition"),                                                     \
        CLI_OPTION(0, "rank", CLI_TEXT, struct history_args, filter.rank, "N",                               \
                   "only this rank of a distributed job")
#define CLI_OPTION_DEVICE(option)                                                                            \
    CLI_OPTION(0, option, CLI_TEXT, struct history_args, filter.gpu, "ID|NAME",                              \
               "only devices with this number (column device_id) or this text in their name")
#define CLI_OPTION_STREAM                                                                                    \
    CLI_OPTION(0, "stream", CLI_NUMBER, struct history_args, filter.stream, "ID", "only this CUDA stream",   \
               .min = 1, .max = UINT32_MAX)
#define CLI_OPTIONS_PLACE                                                                                    \
    CLI_OPTION(0, "range", CLI_TEXT, struct history_args, filter.range_regex, "REGEX",                       \
               "only launches made in a range (NVTX, PyTorch's operators and modules) with this path, or "   \
               "with a path that matches"),                                                                  \
        CLI_OPTION(0, "graph", CLI_FLAG, struct history_args, filter.graphs, NULL,                           \
                   "only launches of CUDA graphs")
#define CLI_OPTION_KERNEL                                                                                    \
    CLI_OPTION(0, "kernel", CLI_TEXT, struct history_args, filter.kernel_regex, "NAME|REGEX",                \
               "only the kernels of this name, as commands print it; if there are none, all kernels with a " \
               "demangled name that matches this POSIX extended regular expression; if there are none, all " \
               "kernels with these words, such as 'GEMM 64x64'")
#define CLI_OPTION_EXCLUDE                                                                                   \
    CLI_OPTION(0, "exclude", CLI_TEXT, struct history_args, filter.exclude_regex, "NAME|REGEX",              \
               "without the kernels that --kernel would choose, such as nccl")
#define CLI_OPTION_NUMBER(help)                                                                              \
    CLI_OPTION('n', "number", CLI_NUMBER, struct history_args, number, "N", help, .min = 1, .max = 1000000000)
/* All options of the filter; `device`: the name of the option for devices. */
#define CLI_OPTIONS_FILTER(device)                                                                           \
    CLI_OPTIONS_PERIOD, CLI_OPTIONS_RUN, CLI_OPTION_KERNEL, CLI_OPTION_EXCLUDE, CLI_OPTION_DEVICE(device),   \
        CLI_OPTION_STREAM, CLI_OPTIONS_PLACE
#define CLI_OPTION_LOW_OCCUPANCY(what)                                                                       \
    CLI_OPTION(                                                                                              \
        0, "low-occupancy", CLI_PERCENT, struct history_args, filter.below_achieved, "PCT",                  \
        "only " what                                                                                         \
        " with an achieved occupancy (measured, else expected_achieved_low) below PCT percent (default 50)", \
        .without = "50")

extern const char *const cli_run_words[];

/* For `check` of struct cli_command: checks the period and the rank. */
int cli_check_history(void *args, struct occ_error *err);
/* A rank must be a number, although filters compare it as text. */
int cli_check_rank(const char *text, struct occ_error *err);
/* Checks the operand KERNEL. The name is looked up later, in the open history. */
int cli_check_kernel(const char *text, struct occ_error *err);

/* True if the file of cli_open_history() exists. */
bool cli_has_history(const struct cli_args *args);

/* Opens the history: --db, else the user's. Reading requires an existing file. */
int cli_open_history(const struct cli_args *args, enum occ_store_mode mode, struct occ_store **ret_store,
                     struct occ_error *err);
OCC_CLEANUP(occ_store, occ_store_close)

/* Return the path of an open history's file, and its size in bytes without the write-ahead log. */
const char *cli_history_path(struct occ_store *store);
int64_t cli_history_bytes(struct occ_store *store);

/* Prints lines on stderr: the period excludes runs with times that do not count from 1970; newer runs than
 * the last run with launches have none. */
void cli_note_filter(const struct cli_command *command, struct occ_store *store,
                     const struct occ_filter *filter);
