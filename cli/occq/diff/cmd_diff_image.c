/* occq diff --image: resources of kernels in two builds. One thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gate/gate.h"
#include "diff_forms.h"
#include "support/text.h"

struct image_args {
    struct history_args history;
    bool image;
};

enum { BEFORE, AFTER, BUILDS };

/* Verdicts, in the order of their rows in the table. X(NAME, word) */
#define VERDICTS(X)                                                                                          \
    X(WORSE, "worse")                                                                                        \
    X(BETTER, "better")                                                                                      \
    X(CHANGED, "changed")                                                                                    \
    X(NEW, "new")                                                                                            \
    X(GONE, "gone")                                                                                          \
    X(SAME, "same")
#define VERDICT_ENUMERATOR(name, word) VERDICT_##name,
enum verdict { VERDICTS(VERDICT_ENUMERATOR) VERDICT_COUNT };
static OCC_WORDS(verdict_word, enum verdict, VERDICTS)

    /* A kernel in both builds; numbers are NaN where they are not known. */
    struct line {
    enum verdict rank;
    const char *verdict, *source, *demangled, *mangled;
    char kernel[GATE_NAME_BYTES], architecture[PIN_ARCHITECTURE_BYTES], changes[GATE_TEXT_BYTES],
        blocks_text[32], predicted[64];
    double value[BUILDS][PIN_RESOURCE_COUNT], blocks[BUILDS];
    double threads, dynamic_bytes, compared, fewer, more, share, ratio, low, high;
};

/* ---- columns ---- */

#define VALUE(build, suffix, resource, key, what)                                                            \
    CLI_FIELD(key suffix, key suffix, CLI_PLAIN, 0, struct line, value[build][resource], what " in " suffix)
#define VALUES(resource, key, what)                                                                          \
    VALUE(BEFORE, "_old", resource, key, what), VALUE(AFTER, "_new", resource, key, what)

static const struct cli_column columns[] = {
    CLI_FIELD("verdict", "verdict", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, struct line, verdict,
              "worse (fewer blocks per SM, more stack or more spills), better, changed, new, gone, same"),
    CLI_FIELD("kernel", "kernel", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS, struct line, kernel,
              "the function's name, with template arguments"),
    CLI_FIELD("architecture", "architecture", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT, struct line, architecture,
              "the architecture of the code"),
    CLI_FIELD("blocks", "blocks", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_TEXT_ONLY, struct line, blocks_text,
              "blocks per SM in OLD and NEW, in the launch with the largest loss, else the largest gain"),
    CLI_FIELD("threads", "block_threads", CLI_PLAIN, CLI_DEFAULT | CLI_SPARE(3), struct line, threads,
              "threads per block of that launch"),
    CLI_FIELD("share", "time_ratio", CLI_RATIO, CLI_DEFAULT | CLI_RARE | CLI_SPARE(2), struct line, share,
              "share of recorded launches with other blocks or spills in the GPU time of the period"),
    CLI_FIELD("predicted", "predicted", CLI_PLAIN,
              CLI_DEFAULT | CLI_LEFT | CLI_RARE | CLI_TEXT_ONLY | CLI_SPARE(4), struct line, predicted,
              "predicted change of the time of these launches, with its 80 % interval"),
    CLI_FIELD("changes", "changes", CLI_PLAIN, CLI_DEFAULT | CLI_LEFT | CLI_CUTS | CLI_SPARE(1), struct line,
              changes, "resources that differ"),
    VALUES(PIN_REGISTERS, "registers", "registers per thread"),
    VALUES(PIN_STACK, "stack_bytes", "bytes of stack frame per thread"),
    VALUES(PIN_SPILLS, "spill_bytes", "spilled bytes per thread; only ptxas -v knows them"),
    VALUES(PIN_SHARED, "static_shared_bytes", "bytes of static shared memory"),
    VALUES(PIN_BARRIERS, "barriers", "barriers"),
    VALUES(PIN_BOUNDS, "bounds_threads", "threads in launch bounds, 0: none"),
    CLI_FIELD("blocks_old", "blocks_per_sm_old", CLI_PLAIN, 0, struct line, blocks[BEFORE],
              "blocks per SM in OLD; 0: the launch is impossible"),
    CLI_FIELD("blocks_new", "blocks_per_sm_new", CLI_PLAIN, 0, struct line, blocks[AFTER],
              "blocks per SM in NEW"),
    CLI_FIELD("dynamic", "dynamic_shared_bytes", CLI_PLAIN, 0, struct line, dynamic_bytes,
              "dynamic shared memory of that launch"),
    CLI_FIELD(
        "source", "launches_from", CLI_PLAIN, CLI_LEFT, struct line, source,
        "source of the compared launches: history, bounds (launch bounds), assumed (128 to 1024 threads)"),
    CLI_FIELD("compared", "compared", CLI_PLAIN, 0, struct line, compared, "compared launches"),
    CLI_FIELD("fewer", "fewer", CLI_PLAIN, 0, struct line, fewer, "launches with fewer blocks per SM in NEW"),
    CLI_FIELD("more", "more", CLI_PLAIN, 0, struct line, more, "launches with more blocks per SM in NEW"),
    CLI_FIELD("ratio", "predicted_ratio", CLI_FACTOR, 0, struct line, ratio, "predicted time in NEW / OLD"),
    CLI_FIELD("ratio_low", "predicted_ratio_low", CLI_FACTOR, 0, struct line, low,
              "low end of the 80 % interval"),
    CLI_FIELD("ratio_high", "predicted_ratio_high", CLI_FACTOR, 0, struct line, high,
              "high end of the 80 % interval"),
    CLI_FIELD("demangled", "demangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, struct line, demangled,
              "the kernel's full name"),
    CLI_FIELD("mangled", "mangled", CLI_PLAIN, CLI_LEFT | CLI_CUTS, struct line, mangled,
              "the kernel's name in the build"),
    CLI_COLUMN_END,
};

/* ---- rows ---- */

static bool grows(const struct pin_pair *pair, enum pin_resource resource)
{
    uint32_t before = pair->before->value[resource], after = pair->after->value[resource];
    return before != PIN_UNKNOWN && after != PIN_UNKNOWN && after > before;
}

static enum verdict verdict_of(const struct pin_pair *pair, const struct gate_effect *effect)
{
    const struct pin_pair back = {pair->after, pair->before};
    if (!pair->before || !pair->after)
        return pair->before ? VERDICT_GONE : VERDICT_NEW;
    if (effect->fewer > 0 || grows(pair, PIN_STACK) || grows(pair, PIN_SPILLS))
        return VERDICT_WORSE;
    if (effect->more > 0 || grows(&back, PIN_STACK) || grows(&back, PIN_SPILLS))
        return VERDICT_BETTER;
    return pin_is_same(pair->before, pair->after) ? VERDICT_SAME : VERDICT_CHANGED;
}

static double number_of(uint32_t value)
{
    return value == PIN_UNKNOWN ? (double)NAN : value;
}

static void set_values(const struct pin *pin, double value[PIN_RESOURCE_COUNT])
{
    for (int i = 0; i < PIN_RESOURCE_COUNT; i++)
        value[i] = pin ? number_of(pin->value[i]) : (double)NAN;
}

static void set_effect(const struct gate_effect *effect, struct line *line)
{
    line->share = effect->share;
    line->ratio = effect->ratio;
    line->low = effect->low;
    line->high = effect->high;
    line->blocks[BEFORE] = line->blocks[AFTER] = line->threads = line->dynamic_bytes = NAN;
    line->compared = line->fewer = line->more = NAN;
    if (!effect->is_known)
        return;
    line->source = gate_source_word(effect->source);
    line->blocks[BEFORE] = effect->blocks_before;
    line->blocks[AFTER] = effect->blocks_after;
    line->threads = effect->threads;
    line->dynamic_bytes = effect->dynamic_bytes;
    line->compared = effect->compared;
    line->fewer = effect->fewer;
    line->more = effect->more;
    (void)snprintf(line->blocks_text, sizeof line->blocks_text,
                   effect->blocks_before == effect->blocks_after ? "%u" : "%u -> %u", effect->blocks_before,
                   effect->blocks_after);
    if (effect->changed > 0)
        (void)gate_prediction_text(effect, line->predicted, sizeof line->predicted);
}

static void make_line(const struct gate_terms *terms, size_t index, struct line *line)
{
    const struct pin_pair *pair = &terms->pairs->list[index];
    const struct pin *pin = pair->after ? pair->after : pair->before;
    struct gate_effect effect = {.share = NAN, .ratio = NAN, .low = NAN, .high = NAN};
    bool has_both = pair->before && pair->after;
    if (has_both)
        gate_effect_of(terms, index, &effect);
    line->rank = verdict_of(pair, &effect);
    line->verdict = verdict_word(line->rank);
    line->demangled = pin->name;
    line->mangled = pin->kernel;
    (void)gate_short_name(pin, line->kernel);
    (void)pin_architecture(pin, line->architecture);
    if (has_both)
        (void)gate_change_text(pair->before, pair->after, line->changes);
    set_values(pair->before, line->value[BEFORE]);
    set_values(pair->after, line->value[AFTER]);
    set_effect(&effect, line);
}

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* By verdict, worse first; then the most time first; then the largest loss of blocks per SM. */
static int by_importance(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    int order = compare_numbers(a->rank, b->rank);
    if (order == 0)
        order = compare_numbers(isnan(b->share) ? 0 : b->share, isnan(a->share) ? 0 : a->share);
    if (order == 0 && a->blocks[BEFORE] > 0 && b->blocks[BEFORE] > 0)
        order = compare_numbers(a->blocks[AFTER] / a->blocks[BEFORE], b->blocks[AFTER] / b->blocks[BEFORE]);
    if (order == 0)
        order = strcmp(a->mangled, b->mangled);
    return order ? order : strcmp(a->architecture, b->architecture);
}

/* ---- the command ---- */

static void print_counts(const struct cli_command *command, const struct cli_selection *selection,
                         const struct line *lines, size_t n, size_t shown)
{
    size_t count[VERDICT_COUNT] = {0};
    char text[160] = "";
    for (size_t i = 0; i < n; i++)
        count[lines[i].rank]++;
    for (int i = 0; i < VERDICT_COUNT; i++)
        occ_text_append(text, sizeof text, ", ", "%zu %s", count[i], verdict_word((enum verdict)i));
    cli_footer(command, selection, "%s%s", text, shown < n - count[VERDICT_SAME] ? "; -n shows more" : "");
}

/* Text has the kernels that differ; JSON and CSV have all. */
static int print(const struct cli_command *command, const struct image_args *args, struct line *lines,
                 size_t n, struct occ_error *err)
{
    const struct cli_selection *selection = &args->history.list.selection;
    size_t shown = 0;
    if (n > 1)
        qsort(lines, n, sizeof *lines, by_importance);
    while (shown < n && (selection->format != CLI_FORMAT_TEXT ||
                         (lines[shown].rank != VERDICT_SAME && shown < (size_t)args->history.number)))
        shown++;
    int status = cli_table_print("kernels", selection, lines, shown, sizeof *lines, err);
    if (status == 0)
        print_counts(command, selection, lines, n, shown);
    return status;
}

static int print_pairs(const struct cli_command *command, const struct image_args *args,
                       const struct gate_terms *terms, struct occ_error *err)
{
    _cleanup_(occ_freep) struct line *lines = calloc(terms->pairs->n + 1, sizeof *lines);
    if (!lines)
        return occ_no_memory(err);
    for (size_t i = 0; i < terms->pairs->n; i++)
        make_line(terms, i, &lines[i]);
    return print(command, args, lines, terms->pairs->n, err);
}

static int compare(const struct cli_command *command, const struct image_args *args,
                   struct gate_build build[BUILDS], struct occ_error *err)
{
    _cleanup_(gate_recorded_free) struct gate_recorded recorded = {.period = ""};
    struct pin_pairs pairs = {0};
    int status = 0;
    for (int i = 0; i < BUILDS && status == 0; i++) {
        status = gate_read(args->history.list.common.operands[i], &build[i], err);
        if (status == 0)
            gate_note_build(command, args->history.list.common.operands[i], &build[i]);
    }
    if (status == 0)
        status = gate_recorded_read(&args->history, &recorded, err);
    if (status == 0)
        status = pins_match(&build[BEFORE].pins, &build[AFTER].pins, &pairs, err);
    if (status == 0)
        status = print_pairs(command, args, &(struct gate_terms){&pairs, NULL, &recorded}, err);
    free(pairs.list);
    return status;
}

static int run(const struct cli_command *command, const void *arguments)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct gate_build build[BUILDS] = {{.unread = 0}};
    int status = compare(command, arguments, build, &err);
    for (int i = 0; i < BUILDS; i++)
        gate_build_free(&build[i]);
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION(0, "image", CLI_FLAG, struct image_args, image, NULL,
               "compare two builds: OLD and NEW are cubins, fat binaries, objects, static or shared "
               "libraries, programs, or outputs of ptxas -v"),
    CLI_OPTION_DB,
    CLI_OPTIONS_PERIOD,
    CLI_OPTION_NUMBER("at most N rows (default 20)"),
    CLI_OPTIONS_LIST,
};

const struct cli_command cli_diff_image = {
    .name = "diff",
    .form = "--image",
    .operands = "OLD NEW",
    .min_operands = 2,
    .max_operands = 2,
    .is_paged = true,
    .summary = "resources of kernels in two builds, without a GPU",
    .description =
        "Compares the resources that the compiler chose for each kernel and architecture in two builds, and "
        "the blocks per SM that result. Kernels are matched by name, and by the name without hashes of "
        "anonymous namespaces and static functions.\n\n"
        "Blocks per SM are compared in the launches that the history recorded for the kernel (of the last 30 "
        "days, unless --since or --until are given); else at the launch bounds; else at 128, 256, 512 and "
        "1024 threads. Recorded launches have their share of the GPU time and a predicted change of their "
        "time.\n\n"
        "Text shows the kernels that differ; JSON and CSV have all. 'occq check --image' is the gate.",
    .options = options,
    .columns = columns,
    .examples = {{"occq diff --image old.so new.so", "two builds of a library"},
                 {"occq diff --image old.so new.so --csv", "all kernels, for a program"}},
    CLI_ARGS(struct image_args, .history = {.number = 20}),
    .check = cli_check_history,
    .run = run,
};
