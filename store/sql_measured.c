/* The columns of measured values, for any grouping of a view; see sql_nouns.h. */
#include "sql_nouns.h"

#define OF_ROW(name)     "m." name
#define KNOWN(value)     "iif(m.withheld IS NULL, " value ", NULL)"
#define PURE(name)       "m." name "_sum / nullif(m." name "_ns, 0)"
#define MEAN(name)       KNOWN(PURE(name))
#define GROUP_MEAN(name) PURE(name)

#define UNMEASURED(name)  "max(0, 1 - m." name "_ns / nullif(m.all_ns, 0))"
#define REST(name)        UNMEASURED(name) " * " OCC_SQL_REST_SPREAD(OF_ROW) " * " PURE(name)
#define ERROR(name)       "coalesce(" PURE(name "_error") ", 0)"
#define OF_MEAN(name)     ERROR(name) " * " OCC_SQL_PART_OF_ERROR(OF_ROW)
#define CI95(error, name) KNOWN("1.96 * nullif(" OCC_SQL_WIDENED(error, REST(name)) ", 0)")
#define REST_OF(name)     "coalesce(" REST(name) ", 0)"
#define THROUGHPUT_REST                                                                                      \
    "max(" REST_OF("dram_throughput") ", " REST_OF("l2_throughput") ", " REST_OF(                            \
        "l1_throughput") ", " REST_OF("tensor_active") ")"

const struct occ_sql_column occ_sql_measured[] = {
    {"run_id", "INTEGER", "m.run_id", "", "the run, see run"},
    {"config_id", "INTEGER", "m.config_id", "", "the launch configuration, see launch_config"},
    {"kernel_id", "INTEGER", "c.kernel_id", "", "its kernel"},
    {"kernel", "TEXT", "k.short", "", "the kernel's short name"},
    {"measured_ratio", "REAL", "coalesce(" OCC_SQL_OWN_NS(OF_ROW) " / nullif(m.all_ns, 0), 0)", "ratio",
     OCC_SQL_RATIO_HELP "; all errors below cover the other launches, too"},
    {"withheld", "TEXT", "m.withheld", "",
     "why the means below are NULL: group (cannot be told apart from other kernels), durations_differ "
     "(launches without a value last longer or shorter), launches_differ (measured launches differ by more "
     "than their errors explain, and less than 90 % of the time was measured), total_contradicts (the "
     "known total of the GPU differs from the means in seconds with launches without a value); NULL: they "
     "are not withheld"},
    {"achieved", "REAL", MEAN("achieved"), "ratio",
     "warp-cycles / (SM-active cycles x maximum warps per SM); a mean by time, as all that follow"},
    {"achieved_ci95", "REAL", CI95(OF_MEAN("achieved"), "achieved"), "ratio", "of achieved: " OCC_SQL_CI95},
    {"elapsed", "REAL", MEAN("elapsed"), "ratio",
     "warp-cycles / (elapsed cycles of all SMs x maximum warps per SM)"},
    {"elapsed_ci95", "REAL", CI95(OF_MEAN("elapsed"), "elapsed"), "ratio", "of elapsed: " OCC_SQL_CI95},
    {"variance_inflation", "REAL", MEAN("variance_inflation"), "",
     "of the regression; 1: regressors that are independent"},
    {"sm_active", "REAL", MEAN("sm_active"), "ratio", "SM-active cycles / elapsed cycles of all SMs"},
    {"resident_blocks", "REAL", MEAN("resident_blocks"), "blocks", "resident blocks per active SM"},
    {"imbalance", "REAL", MEAN("imbalance"), "ratio", "imbalance between SMs"},
    {"stall_registers", "REAL", MEAN("stall_registers"), "ratio", OCC_SQL_STALL "registers"},
    {"stall_shared_memory", "REAL", MEAN("stall_shared_memory"), "ratio", OCC_SQL_STALL "shared memory"},
    {"stall_blocks", "REAL", MEAN("stall_blocks"), "ratio", OCC_SQL_STALL "block slots"},
    {"stall_warps", "REAL", MEAN("stall_warps"), "ratio", OCC_SQL_STALL "warp slots"},
    {"stall_barriers", "REAL", MEAN("stall_barriers"), "ratio", OCC_SQL_STALL "barriers"},
    {"group_achieved", "REAL", GROUP_MEAN("group_achieved"), "ratio",
     "mean achieved occupancy of launches that the estimator cannot separate from other kernels, and of "
     "these kernels"},
    {"group_elapsed", "REAL", GROUP_MEAN("group_elapsed"), "ratio", "elapsed of the same"},
    {"group_elapsed_ci95", "REAL", "1.96 * " GROUP_MEAN("group_elapsed_error"), "ratio",
     "of group_elapsed: " OCC_SQL_CI95},
    {"issue_active", "REAL", MEAN("issue_active"), "ratio",
     "cycles in which a scheduler issued an instruction / its SM-active cycles"},
    {"issue_active_ci95", "REAL", CI95(ERROR("issue_active"), "issue_active"), "ratio",
     "of issue_active: " OCC_SQL_CI95},
    {"no_eligible", "REAL", "1 - " MEAN("issue_active"), "ratio",
     "cycles in which a scheduler had no eligible warp / its SM-active cycles: 1 - issue_active"},
    {"dram_throughput", "REAL", MEAN("dram_throughput"), "ratio", "of the peak, over elapsed cycles"},
    {"l2_throughput", "REAL", MEAN("l2_throughput"), "ratio", "sectors through the L2 cache, of the peak"},
    {"l1_throughput", "REAL", MEAN("l1_throughput"), "ratio",
     "wavefronts through L1 caches and shared memory, of the peak"},
    {"tensor_active", "REAL", MEAN("tensor_active"), "ratio", "cycles in which tensor cores were active"},
    {"throughput_ci95", "REAL",
     KNOWN("1.96 * nullif(" OCC_SQL_WIDENED(ERROR("throughput"), THROUGHPUT_REST) ", 0)"), "ratio",
     "of the four before it, of the least certain: " OCC_SQL_CI95},
    {"direct", "INTEGER", "m.direct", "", "launches measured by samples inside them"},
    {"regression", "INTEGER", "m.regression", "", "launches measured by least squares over many"},
    {"grouped", "INTEGER", "m.grouped", "", "launches measured only together with other kernels"},
    {"exact", "INTEGER", "m.exact", "", "launches measured one at a time (occtrace --exact)"},
    {"ncu", "INTEGER", "m.ncu", "", "launches measured by Nsight Compute, alone and replayed"},
    {"overlapped", "INTEGER", "m.overlapped", "", "measured launches that overlapped other kernels"},
    {0},
};
