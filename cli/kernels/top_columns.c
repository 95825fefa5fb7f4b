/* The columns of `occq top`; see top.h. One thread. */
#include <string.h>

#include "top.h"

/* ---- columns ---- */

#define FIELD(name, key, unit, flags, member, help)                                                          \
    CLI_FIELD(name, key, unit, flags, struct top_line, member, help)
/* A column for each cause, with the cause's label. */
#define CAUSE_COLUMN(name, label, text)                                                                      \
    FIELD(label, "cause_" label, CLI_RATIO, 0, row.part[OCC_CAUSE_##name], text " (model)"),
#define MEASURED_COLUMN(name, label, text, gain)                                                             \
    FIELD(label, "cause_" label, CLI_RATIO, 0, row.part[OCC_PART_##name], text),
/* Returns the device's number; nothing for a row without a device. */
static struct cli_value get_device(const struct cli_column *column, const void *row)
{
    const struct top_line *line = row;
    (void)column;
    return line->row.kernel.device > 0 ? cli_integer(line->row.kernel.device)
                                       : (struct cli_value){.type = CLI_NONE};
}

static struct cli_value get_words(const struct cli_column *column, const void *row)
{
    (void)column;
    return cli_string(((const struct top_line *)row)->row.kernel.words);
}

#define EXPECTED "occupancy of a balanced grid of that size (model, not measured), over "
#define HIGH_END "the same if a block's time is proportional to the blocks that it shares its SM with"
#define DOMINANT "of the configuration with most time"

const struct cli_column top_columns[] = {
    FIELD("id", "kernel_id", CLI_PLAIN, CLI_DEFAULT, row.kernel.id,
          "the kernel's number in the history, for occq show"),
    {.name = "kernel",
     .key = "kernel",
     .flags = CLI_DEFAULT | CLI_LEFT | CLI_CUTS,
     .get = cli_get_string,
     .index = offsetof(struct top_line, row.kernel.short_name),
     .brief = get_words,
     .help = "name of the kernel, see --name; with --by, name of the group"},
    {.name = "device_id",
     .key = "device_id",
     .get = get_device,
     .help = "the device's number in the history; shown by default where rows differ in their device alone"},
    FIELD("launches", "launches", CLI_PLAIN, CLI_DEFAULT | CLI_ADDS | CLI_SPARE(6), row.launches,
          "number of launches that match the filters"),
    FIELD("time", "total_duration_ns", CLI_DURATION, CLI_DEFAULT | CLI_ADDS | CLI_SPARE(3), row.total_ns,
          "sum of their durations"),
    FIELD(
        "share", "gpu_time_ratio", CLI_RATIO, CLI_DEFAULT | CLI_HEAT, gpu_share,
        "part of the GPU time: the recorded time of all GPUs, with the time in which no kernel ran; kernels "
        "that overlap share their time"),
    FIELD("used", "effective_elapsed", CLI_RATIO, CLI_DEFAULT, row.used,
          "elapsed occupancy, mean by time: of launches that were measured the measured one, of others "
          "expected_elapsed_low"),
    FIELD("why", "why", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_SPARE(1), why,
          "largest cause of lost occupancy, in words, with numbers of the configuration with most time: "
          "registers "
          "per thread, blocks per SM, blocks of the grid beside SMs or blocks of a full wave"),
    FIELD(
        "whose", "whose", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_RARE | CLI_SPARE(2), whose,
        "who can change the kernel, by its name: library, framework, Triton, communication; yours?: no rule "
        "knows the name"),
    FIELD("kernel%", "time_ratio", CLI_RATIO, CLI_SPARE(10), share,
          "part of the time of all kernels that match the filters"),
    FIELD("theor", "theoretical", CLI_RATIO, CLI_SPARE(5), row.theoretical,
          "theoretical occupancy: active warps per SM that the launch's resources allow / maximum warps per "
          "SM"),
    FIELD("expected", "expected", CLI_PLAIN, CLI_TEXT_ONLY | CLI_SPARE(4), expected,
          "from expect_low to expect_high"),
    FIELD("expect_low", "expected_achieved_low", CLI_RATIO, 0, row.expected_achieved_low,
          EXPECTED "SM-active cycles, if all waves take equally long"),
    FIELD("expect_high", "expected_achieved_high", CLI_RATIO, 0, row.expected_achieved_high, HIGH_END),
    FIELD("achieved", "achieved", CLI_RATIO, 0, row.achieved,
          "measured: warp-cycles / (SM-active cycles x maximum warps per SM), mean of the configurations "
          "that were measured; - also where it is withheld (occq show tells why); shown by default where any "
          "launch was measured"),
    FIELD("achieved_ci95", "achieved_ci95", CLI_RATIO, 0, achieved_ci95,
          "half-width of the 95 % confidence interval of achieved"),
    FIELD("expect_elapsed_low", "expected_elapsed_low", CLI_RATIO, 0, row.expected_elapsed_low,
          EXPECTED "the elapsed cycles of all SMs, if all waves take equally long; in an only wave, if a "
                   "block's time is proportional to the blocks on its SM"),
    FIELD("expect_elapsed_high", "expected_elapsed_high", CLI_RATIO, 0, row.expected_elapsed_high,
          "the other end of its range"),
    FIELD("elapsed", "elapsed", CLI_RATIO, 0, row.elapsed,
          "measured: warp-cycles / (elapsed cycles of all SMs x maximum warps per SM), mean of the "
          "configurations "
          "that were measured"),
    FIELD("elapsed_ci95", "elapsed_ci95", CLI_RATIO, 0, elapsed_ci95,
          "half-width of the 95 % confidence interval of elapsed"),
    FIELD("measured", "measured_ratio", CLI_RATIO, CLI_SPARE(3), row.measured_ratio,
          "part of the time in launches with a measured value; the intervals cover the rest, too; shown by "
          "default where achieved is"),
    FIELD("waves", "waves", CLI_FACTOR, CLI_SPARE(9), waves, "waves " DOMINANT),
    FIELD("full_waves", "full_waves", CLI_PLAIN, 0, full_waves, "full waves " DOMINANT),
    FIELD("partial", "partial_blocks", CLI_PLAIN, 0, partial_blocks,
          "blocks in the partial last wave " DOMINANT),
    FIELD("limiters", "limiters", CLI_PLAIN, CLI_LEFT | CLI_SPARE(11), limiters,
          "occupancy limiters (all that tie) " DOMINANT),
    FIELD("cause", "main_cause", CLI_PLAIN, CLI_LEFT | CLI_SPARE(1), row.main_cause,
          "largest cause of lost occupancy"),
    FIELD("loss", "main_cause_ratio", CLI_RATIO, CLI_HEAT | CLI_SPARE(7), main_cause_ratio,
          "part of all SMs' occupancy lost to this cause; used and all causes except partial_warp add up to "
          "100 %"),
    FIELD("waste", "waste_warp_seconds", CLI_AMOUNT, CLI_ADDS, waste_warp_seconds,
          "wasted warp-seconds: duration x SMs x maximum warps per SM x (1 - used)"),
    FIELD("waste%", "waste_ratio", CLI_RATIO, CLI_HEAT | CLI_SPARE(8), waste_ratio,
          "part of the waste of all kernels that match the filters"),
    FIELD("sum%", "running_waste_ratio", CLI_RATIO, CLI_SPARE(3), running_waste_ratio,
          "sum of waste% over this row and the rows above it"),
    FIELD("regs", "registers_per_thread", CLI_PLAIN, CLI_SPARE(12), row.dominant.registers_per_thread,
          "registers per thread " DOMINANT),
    FIELD("block", "block_threads", CLI_PLAIN, CLI_SPARE(13), row.dominant.block_threads,
          "threads per block " DOMINANT),
    FIELD("configs", "configs", CLI_PLAIN, CLI_SPARE(15), row.configs, "number of launch configurations"),
    FIELD("mean", "mean_duration_ns", CLI_DURATION, CLI_SPARE(14), mean_duration_ns, "mean duration"),
    FIELD("min", "min_duration_ns", CLI_DURATION, 0, row.min_ns, "shortest duration"),
    FIELD("max", "max_duration_ns", CLI_DURATION, 0, row.max_ns, "longest duration"),
    FIELD("demangled", "kernel_demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, row.kernel.demangled, "full name"),
    FIELD("mangled", "kernel_mangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, row.kernel.mangled,
          "name in the driver"),
    FIELD("device", "device", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_VARIES | CLI_SPARE(12),
          row.kernel.device_name, "name of the GPU"),
    FIELD("by_design", "by_design", CLI_PLAIN, CLI_LEFT, by_design,
          "marks of kernels that may have low occupancy by design: communication (by name), persistent, "
          "one_block_shared_memory, cluster (by configuration)"),
    FIELD("simulated", "simulated", CLI_PLAIN, CLI_LEFT, row.kernel.simulated,
          "whether the device is a simulated one"),
    FIELD("estimated", "estimated", CLI_PLAIN, CLI_LEFT, row.kernel.estimated,
          "whether limits are estimated, since the device's compute capability is not known here"),
    OCC_CAUSES(CAUSE_COLUMN) OCC_MEASURED_CAUSES(MEASURED_COLUMN) /* */
    FIELD("tail_low", "cause_tail_low", CLI_RATIO, 0, tail_low,
          "tail where it was not measured and a block's time is proportional to the blocks that it shares "
          "its SM with"),
    FIELD("small_grid_low", "cause_small_grid_low", CLI_RATIO, 0, small_grid_low,
          "small_grid where it was not measured and all SMs take equally long"),
    FIELD("bound", "bound", CLI_PLAIN, CLI_LEFT | CLI_RARE | CLI_SPARE(15), bound,
          "with --advice: whether more warps would help, of the configuration with most time: latency (they "
          "would), between, throughput (they would not), too_little_work, not_measured"),
    FIELD("advice", "advice", CLI_PLAIN, CLI_LEFT, advice,
          "with --advice: the change that would save most in the launch configuration with most time, in the "
          "words of the kernel's owner"),
    FIELD(
        "saves", "advice_saves_ns", CLI_DURATION, 0, advice_saves_ns,
        "with --advice: predicted saving in that configuration; - where the sign of the effect is not known"),
    FIELD("advice_config", "advice_config_id", CLI_PLAIN, 0, advice_config,
          "with --advice: the configuration that it is for"),
    FIELD("knob", "knob", CLI_PLAIN, CLI_LEFT | CLI_SPARE(16), knob,
          "with --advice: the change in CUDA's terms, of own kernels"),
    FIELD("marks", "marks", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY | CLI_MARKS | CLI_RARE, letters,
          "letters: s simulated; e estimated; m measured in less than 90 % of the time; low by design: c "
          "communication; maybe: p persistent, o one "
          "block per SM, k "
          "clusters"),
    CLI_COLUMN_END,
};

/* ---- kinds of rows ---- */

#define BY_LABEL(name, label) label,
const char *const top_by_labels[] = {OCC_TOP_BY(BY_LABEL) NULL};

/* Keys of the first column, the row's number, for kinds of rows other than kernels. Without a key the column
 * is not shown. */
static const char *const row_ids[] = {[OCC_TOP_BY_CONFIG] = "config_id",
                                      [OCC_TOP_BY_GPU] = "device_id",
                                      [OCC_TOP_BY_RUN] = "run_id",
                                      [OCC_TOP_BY_NODE] = NULL};

void top_copy_columns(enum occ_top_by by, struct cli_column *table)
{
    memcpy(table, top_columns, sizeof top_columns);
    if (by == OCC_TOP_BY_KERNEL)
        return;
    table[0].flags = row_ids[by] ? CLI_DEFAULT : CLI_TEXT_ONLY;
    table[0].key = row_ids[by] ? row_ids[by] : table[0].key;
    table[1].name = top_by_labels[by];
    for (struct cli_column *c = table + 2; c->name; c++) { /* hide values that the first two columns have */
        if (by == OCC_TOP_BY_CAUSE && (strcmp(c->key, "main_cause") == 0 || strcmp(c->key, "why") == 0))
            c->flags = 0;
        if (by == OCC_TOP_BY_GPU && strcmp(c->key, "device_id") == 0)
            c->flags = CLI_TEXT_ONLY;
    }
}

static struct cli_value get_nothing(const struct cli_column *column, const void *row)
{
    (void)column;
    (void)row;
    return (struct cli_value){.type = CLI_NONE};
}

void top_leave_unknown(struct cli_column *table)
{
    static const char *const unknown[] = {"device_id",       "measured_ratio", "registers_per_thread",
                                          "block_threads",   "configs",        "min_duration_ns",
                                          "max_duration_ns", "simulated"};
    for (; table->name; table++)
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            if (strcmp(table->key, unknown[i]) == 0) {
                table->get = get_nothing;
                table->flags &= ~(unsigned)CLI_DEFAULT;
            }
}

void top_use_kernel_time(struct cli_column *table)
{
    for (; table->name; table++) {
        if (strcmp(table->key, "gpu_time_ratio") == 0)
            table->flags &= ~(unsigned)CLI_DEFAULT;
        if (strcmp(table->key, "time_ratio") == 0)
            table->flags |= CLI_DEFAULT;
    }
}

void top_name_rows(enum occ_top_by by, struct cli_column *table)
{
    table[1].key = by == OCC_TOP_BY_RUN ? "program" : top_by_labels[by];
}

bool top_is_of_advice(const char *name)
{
    static const char *const names[] = {"id",    "kernel", "config", "time", "share",
                                        "saves", "bound",  "advice", "knob"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

struct cli_merge top_merge_of(const char *order)
{
    static const struct {
        const char *order;
        struct cli_merge merge;
    } orders[] = {{"waste", {.keys = {"waste_warp_seconds"}}},
                  {"time", {.keys = {"total_duration_ns"}}},
                  {"launches", {.keys = {"launches"}}},
                  {"occupancy", {.keys = {"achieved", "expected_achieved_low"}, .ascending = true}}};
    static const struct cli_part parts[] = {{"time_ratio", "total_duration_ns", false},
                                            {"waste_ratio", "waste_warp_seconds", false},
                                            {"running_waste_ratio", "waste_warp_seconds", true},
                                            {0}};
    struct cli_merge merge = {0};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(order, orders[i].order) == 0)
            merge = orders[i].merge;
    for (const struct cli_column *c = top_columns; c->name && !merge.keys[0]; c++)
        if (strcmp(c->name, order) == 0)
            merge.keys[0] = c->key;
    merge.parts = parts;
    return merge;
}
