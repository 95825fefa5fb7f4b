/*
 * SQL as an interface: a view or virtual table for each noun, over the storage tables of schema/. One table
 * of columns makes the views, the table column_help inside the file, and docs/sql.md; the virtual tables
 * declare the columns of the lists below. A unit other than 1 is part of the column's name. NULL means
 * "unknown" in every column.
 */
#pragma once

#include "store.h"

#define OCC_SQL_EPOCH "ns since 1970"
#define OCC_SQL_STALL "share of cycles in which block launch is stalled for "
#define OCC_SQL_CI95  "half-width of the 95 % confidence interval (1.96 standard errors)"

/* launch: columns of the single launch. X(NAME, column, type, unit, help) */
#define OCC_SQL_LAUNCH(X)                                                                                    \
    X(RUN, "run_id", "INTEGER NOT NULL", "", "the run it belongs to")                                        \
    X(CONFIG, "config_id", "INTEGER NOT NULL", "", "its launch configuration, see launch_config")            \
    X(KERNEL, "kernel_id", "INTEGER", "", "its kernel, see kernel")                                          \
    X(DEVICE, "device_id", "INTEGER NOT NULL", "", "its device, see device")                                 \
    X(START, "start_ns", "INTEGER NOT NULL", OCC_SQL_EPOCH, "when it began on the device")                   \
    X(END, "end_ns", "INTEGER NOT NULL", OCC_SQL_EPOCH, "when it ended")                                     \
    X(DURATION, "duration_ns", "INTEGER NOT NULL", "ns", "how long it ran")                                  \
    X(CONTEXT, "context_id", "INTEGER NOT NULL", "", "CUDA context")                                         \
    X(STREAM, "stream_id", "INTEGER NOT NULL", "", "CUDA stream")                                            \
    X(CORRELATION, "correlation_id", "INTEGER NOT NULL", "", "CUPTI's correlation id")                       \
    X(GRAPH_NODE, "graph_node_id", "INTEGER", "", "node of a CUDA graph; NULL: launched without one")        \
    X(RANGE, "range_id", "INTEGER", "", "the ranges that it was launched in, see range; NULL: not known")    \
    X(ACHIEVED, "achieved", "REAL", "ratio",                                                                 \
      "measured: warp-cycles / (SM-active cycles x maximum warps per SM); its own where it was measured "    \
      "directly, else the mean of its configuration, run and minute")                                        \
    X(ACHIEVED_CI95, "achieved_ci95", "REAL", "ratio", "of achieved: " OCC_SQL_CI95)                         \
    X(ELAPSED, "elapsed", "REAL", "ratio",                                                                   \
      "measured: warp-cycles / (elapsed cycles of all SMs x maximum warps per SM)")                          \
    X(ELAPSED_CI95, "elapsed_ci95", "REAL", "ratio", "of elapsed: " OCC_SQL_CI95)                            \
    X(MEASURED_SOURCE, "measured_source", "TEXT", "",                                                        \
      "direct: samples inside the launch; regression, exact: its configuration's mean of that run and "      \
      "minute, by least squares or by occtrace --exact; ncu: Nsight Compute, with the kernel alone and "     \
      "replayed; group: withheld, cannot be told apart from other kernels; withheld: that mean does not "    \
      "stand for all launches of the minute, see measured_minute")                                           \
    X(MEASURED_RATIO, "measured_ratio", "REAL", "ratio",                                                     \
      "share of launch time that the values cover: 1 for a value of the launch itself; otherwise the share " \
      "of its configuration, run and minute")                                                                \
    X(WASTE, "waste_warp_seconds", "REAL", "warp-seconds",                                                   \
      "duration x SMs x maximum warps per SM x (1 - elapsed), with expected_elapsed_low where elapsed was "  \
      "not "                                                                                                 \
      "measured")

/* launch and launch_config: columns common to all launches of a configuration. X(column, type, expression,
 * unit, help), over c (stored_launch_config), k (stored_kernel) and d (stored_device) */
#define OCC_SQL_CONFIG(X)                                                                                    \
    X("kernel", "TEXT", "k.short", "", "short name, without namespaces, template arguments and parameters")  \
    X("kernel_demangled", "TEXT", "k.demangled", "", "full name")                                            \
    X("kernel_mangled", "TEXT", "k.mangled", "", "name as the driver has it")                                \
    X("device", "TEXT", "d.name", "", "name of the GPU")                                                     \
    X("simulated", "INTEGER", "d.simulated", "", "1: the device is a simulated one")                         \
    X("grid_x", "INTEGER", "c.grid_x", "blocks", "grid size")                                                \
    X("grid_y", "INTEGER", "c.grid_y", "blocks", "grid size")                                                \
    X("grid_z", "INTEGER", "c.grid_z", "blocks", "grid size")                                                \
    X("block_x", "INTEGER", "c.block_x", "threads", "block size")                                            \
    X("block_y", "INTEGER", "c.block_y", "threads", "block size")                                            \
    X("block_z", "INTEGER", "c.block_z", "threads", "block size")                                            \
    X("cluster_x", "INTEGER", "c.cluster_x", "blocks", "cluster size")                                       \
    X("cluster_y", "INTEGER", "c.cluster_y", "blocks", "cluster size")                                       \
    X("cluster_z", "INTEGER", "c.cluster_z", "blocks", "cluster size")                                       \
    X("registers_per_thread", "INTEGER", "c.registers_per_thread", "", "registers per thread")               \
    X("static_shared_bytes", "INTEGER", "c.static_shared_bytes", "bytes", "static shared memory per block")  \
    X("dynamic_shared_bytes", "INTEGER", "c.dynamic_shared_bytes", "bytes",                                  \
      "dynamic shared memory per block")                                                                     \
    X("shared_config_bytes", "INTEGER", "nullif(c.shared_config_bytes, 0)", "bytes",                         \
      "shared memory per SM (carve-out) that the driver chose")                                              \
    X("local_bytes_per_thread", "INTEGER", "c.local_bytes_per_thread", "bytes", "local memory per thread")   \
    X("carveout_percent", "INTEGER", "nullif(c.carveout_percent, -1)", "%",                                  \
      "carve-out that the kernel prefers; NULL: the driver's default")                                       \
    X("launch_type", "TEXT",                                                                                 \
      "CASE c.launch_type WHEN 0 THEN 'regular' WHEN 1 THEN 'cooperative' "                                  \
      "WHEN 2 THEN 'cooperative_multi_device' END",                                                          \
      "", "regular, cooperative or cooperative_multi_device")                                                \
    X("cache_config", "TEXT",                                                                                \
      "CASE c.cache_config WHEN 0 THEN 'none' WHEN 1 THEN 'shared' WHEN 2 THEN 'l1' WHEN 3 THEN 'equal' "    \
      "END",                                                                                                 \
      "", "cache preference of the kernel: none, shared, l1 or equal")                                       \
    X("theoretical", "REAL", "c.theoretical", "ratio", "theoretical occupancy")                              \
    X("expected_achieved_low", "REAL", "c.expected_achieved_low", "ratio",                                   \
      "model: achieved occupancy of a balanced grid of that size, if all waves take equally long")           \
    X("expected_achieved_high", "REAL", "c.expected_achieved_high", "ratio",                                 \
      "the same if a block's time is proportional to the blocks that it shares its SM with")                 \
    X("expected_elapsed_low", "REAL", "c.expected_elapsed_low", "ratio",                                     \
      "the same over the elapsed cycles of all SMs, if all waves take equally long; in an only wave, if a "  \
      "block's time is proportional to the blocks on its SM")                                                \
    X("expected_elapsed_high", "REAL", "c.expected_elapsed_high", "ratio",                                   \
      "the other end of the range over the elapsed cycles of all SMs")                                       \
    X("waves", "REAL", "c.waves", "", "grid size / blocks that fill the device once")                        \
    X("full_waves", "INTEGER", "c.full_waves", "", "full waves")                                             \
    X("partial_blocks", "INTEGER", "c.partial_blocks", "blocks", "blocks in the partial last wave")          \
    X("grid_blocks", "INTEGER", "c.grid_blocks", "blocks", "blocks of the grid")                             \
    X("blocks_per_sm", "INTEGER", "c.blocks_per_sm", "blocks", "active blocks per SM")                       \
    X("limiters", "TEXT", "c.limiters", "", "resources that limit the blocks per SM; ties are joined by +")  \
    X("main_cause", "TEXT", "c.main_cause", "", "largest static cause of lost occupancy")

/* device_sample and device_second: counters of a device, in the order of OCC_SAMPLE_NUMBERS. scale: scale of
 * the column in stored_device_second, which is also in the column's name. X(name, scale, unit, help) */
#define OCC_SQL_COUNTERS(X)                                                                                  \
    X(elapsed, 4, "ratio", "warp-cycles / (elapsed cycles of all SMs x maximum warps per SM)")               \
    X(sm_active, 4, "ratio", "SM-active cycles / elapsed cycles of all SMs")                                 \
    X(resident_blocks, 3, "blocks", "resident blocks per active SM")                                         \
    X(stall_registers, 4, "ratio", OCC_SQL_STALL "registers")                                                \
    X(stall_shared_memory, 4, "ratio", OCC_SQL_STALL "shared memory")                                        \
    X(stall_blocks, 4, "ratio", OCC_SQL_STALL "block slots")                                                 \
    X(stall_warps, 4, "ratio", OCC_SQL_STALL "warp slots")                                                   \
    X(stall_barriers, 4, "ratio", OCC_SQL_STALL "barriers")

/* Condition on a run r: its losses are unknown. Launches are not countable in periods of level unknown and in
 * the last second of a program that was cut off; a run without an end may still report losses. */
#define OCC_SQL_LOST_UNKNOWN                                                                                 \
    "(r.level_reason GLOB '" OCC_STORE_CUT "*' OR EXISTS(SELECT 1 FROM stored_period AS p WHERE p.run_id = " \
    "r.run_id AND p.level = 'unknown'))"
#define OCC_SQL_LOST                                                                                         \
    "(SELECT sum(l.launches) FROM stored_loss AS l WHERE l.run_id = r.run_id AND l.launches > 0)"
#define OCC_SQL_LOST_CAUSES                                                                                  \
    "(SELECT group_concat(cause, ', ') FROM (SELECT l.cause || ' ' || l.launches AS cause FROM stored_loss " \
    "AS l WHERE l.run_id = r.run_id AND l.launches > 0 UNION ALL SELECT 'unknown' "                          \
    "WHERE " OCC_SQL_LOST_UNKNOWN "))"

/* The module of a virtual table. Its name tells a user who opens a history without the extension what to
 * load. */
#define OCC_SQL_MODULE(noun) "occtrace_" noun "_needs_the_occtrace_extension"

struct occ_sql_column {
    const char *name, *type;
    const char *expression; /* NULL: a column of a virtual table */
    const char *unit, *help;
};

struct occ_sql_noun {
    const char *name;
    const char *from; /* FROM clause of the view; NULL: a virtual table */
    const char *help;
    const struct occ_sql_column *columns[3]; /* lists that end with a NULL name; NULL: no further list */
};

/* The same as occ_measured_ratio() and the reasons of occ_measured_means(), in SQL: over the columns of
 * stored_measured_*, `of`(name), and the time of all launches, `total`. */
/* clang-format off */
#define OCC_SQL_OWN_NS(of) "iif(" of("elapsed_ns") " > 0, " of("elapsed_ns") ", " of("achieved_ns") ")"
#define OCC_SQL_ALL_NS(of, total) \
    "max(coalesce(" total ", 0), max(" of("elapsed_ns") ", " of("achieved_ns") ") + " of("group_elapsed_ns") ")"
#define OCC_SQL_MEASURED_RATIO(of, total) \
    "coalesce(" OCC_SQL_OWN_NS(of) " / nullif(" OCC_SQL_ALL_NS(of, total) ", 0), 0)"
#define OCC_SQL_OWN_LAUNCHES(of) \
    "(" of("direct") " + " of("regression") " + " of("exact") " + " of("ncu") ")"
#define OCC_SQL_DURATIONS_DIFFER(of) \
    of("group_elapsed_ns") " > 0.1 * (" of("elapsed_ns") " + " of("group_elapsed_ns") ") AND " \
    of("elapsed_ns") " > 0 AND NOT (" of("elapsed_ns") " / " OCC_SQL_OWN_LAUNCHES(of) ") / (" \
    of("group_elapsed_ns") " / " of("grouped") ") BETWEEN 1 / 1.2 AND 1.2"
#define OCC_SQL_TOTAL_CONTRADICTS(of) \
    "abs(" of("rest_shift_sum") ") > 1.96 * " of("rest_error_sum") " + 0.02 * " of("rest_ns")
/* the same as OCC_MEASURED_WINDOWS, occ_measured_rest_spread() and occ_measured_widened() */
#define OCC_SQL_PART_OF_ERROR(of) \
    "iif(2 * " of("regression") " >= " OCC_SQL_OWN_LAUNCHES(of) ", 0.8, 1)"
#define OCC_SQL_REST_SPREAD(of) \
    "max(0.13, coalesce(abs(" of("rest_shift_sum") ") * " of("elapsed_ns") " / nullif(" of("rest_ns") " * " \
    of("elapsed_sum") ", 0), 0))"
#define OCC_SQL_WIDENED(error, rest) \
    "max(" error ", " rest ") + 0.4142 * min(" error ", " rest ")"
#define OCC_SQL_SQUARE(of, name) \
    "(" of(name) " / " of("elapsed_ns") ") * (" of(name) " / " of("elapsed_ns") ")"
#define OCC_SQL_LAUNCHES_DIFFER(of) \
    of("elapsed_square_sum") " / " of("elapsed_ns") " - " OCC_SQL_SQUARE(of, "elapsed_error_sum") \
    " > (1 + 0.13 * 0.13) * " OCC_SQL_SQUARE(of, "elapsed_sum")
#define OCC_SQL_WITHHELD(of, total) \
    "CASE WHEN " OCC_SQL_OWN_LAUNCHES(of) " = 0 THEN iif(" of("grouped") " > 0, 'group', NULL) " \
    "WHEN " OCC_SQL_DURATIONS_DIFFER(of) " THEN 'durations_differ' " \
    "WHEN " OCC_SQL_MEASURED_RATIO(of, total) " >= 0.9 THEN NULL " \
    "WHEN " OCC_SQL_TOTAL_CONTRADICTS(of) " THEN 'total_contradicts' " \
    "WHEN " OCC_SQL_LAUNCHES_DIFFER(of) " THEN 'launches_differ' END"
/* clang-format on */

#define OCC_SQL_RATIO_HELP "part of the time of all launches that has a value of its own"

/* The columns of measured values, over m (stored_measured_*, with all_ns and withheld), c and k. */
extern const struct occ_sql_column occ_sql_measured[];

/* The list ends with a NULL name. */
extern const struct occ_sql_noun occ_sql_nouns[];

struct sqlite3;
/* Makes the views, the virtual tables and column_help in a history that has neither our views nor our
 * column_help; occ_sql_drop_nouns() removes the views and column_help. SQLite code. */
int occ_sql_drop_nouns(struct sqlite3 *db);
int occ_sql_make_nouns(struct sqlite3 *db);
/* Makes a temporary view for a noun of the list, which hides the history's view. SQLite code. */
int occ_sql_hide_noun(struct sqlite3 *db, const char *name);
