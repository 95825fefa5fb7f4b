/* The table of tools, and their common steps; see tools.h. One thread. */
#include "tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/history.h"
#include "support/text.h"

/* ---- arguments ---- */

#define ARGUMENT(name, kind, member, ...)                                                                    \
    {                                                                                                        \
        name, kind, offsetof(struct agent_args, member), __VA_ARGS__                                         \
    }
#define TEXT(name, member, help)     ARGUMENT(name, AGENT_TEXT, member, false, 0, 0, 0, help)
#define REQUIRED(name, member, help) ARGUMENT(name, AGENT_TEXT, member, true, 0, 0, 0, help)
#define NUMBER(name, member, min, max, otherwise, help)                                                      \
    ARGUMENT(name, AGENT_INTEGER, member, false, min, max, otherwise, help)
#define FLAG(name, member, help) ARGUMENT(name, AGENT_BOOLEAN, member, false, 0, 0, 0, help)

#define RUN                                                                                                  \
    TEXT("run", run, "only this run: its number, or last"),                                                  \
        TEXT("label", label, "only runs with this label; * and ? are wildcards")
#define BYTES                                                                                                \
    NUMBER("max_bytes", max_bytes, AGENT_BYTES_MIN, AGENT_BYTES_MAX, AGENT_BYTES, "size limit of the answer")
#define OFFSET NUMBER("offset", offset, 0, 1000000, 0, "rows to skip, see more.offset of an answer")
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

static const struct agent_argument overview_arguments[] = {RUN, BYTES, END};
static const struct agent_argument findings_arguments[] = {RUN, OFFSET, BYTES, END};
static const struct agent_argument kernel_arguments[] = {
    REQUIRED("kernel", kernel, "kernel_id of another answer, a name, or a POSIX extended regular expression"),
    RUN,
    NUMBER("device", device, 0, INT64_MAX, 0, "only this device_id; 0: any"),
    NUMBER("offset", offset, 0, 1000000, 0, "launch configuration, 0: the one with most time"),
    BYTES,
    END};
static const struct agent_argument layer_arguments[] = {
    RUN,
    TEXT("layer", layer, "only ranges with this path, or that match this regular expression"),
    TEXT("unfold", unfold, "name of a folded layer (count > 1) to list one by one"),
    NUMBER("depth", depth, 0, 64, 0, "levels; 0: all that fit"),
    FLAG("operators", operators, "also operators inside layers (aten::addmm)"),
    BYTES,
    END};
#define SIDE "run:ID, run:last, last:N, label:TEXT, job:ID, gpu:ID, since:WHEN, until:WHEN, joined by commas"
static const struct agent_argument diff_arguments[] = {
    REQUIRED("a", a, "side before: " SIDE),
    REQUIRED("b", b, "side after, as a"),
    TEXT("kernel", kernel, "only this kernel"),
    FLAG("force", force, "also compare sides that are not comparable"),
    OFFSET,
    BYTES,
    END};
static const struct agent_argument elsewhere_arguments[] = {
    REQUIRED("gpu", gpu, "the other GPU or MIG slice: h100, a100-1g.5gb, \"Tesla T4\""),
    TEXT("kernel", kernel, "only this kernel"),
    RUN,
    OFFSET,
    BYTES,
    END};
static const struct agent_argument check_arguments[] = {
    TEXT("rules", rules,
         "rules in YAML; without it the file of the option --rules counts. Example: \"config: [{rule: "
         "occupancy, "
         "theoretical: '>= 25%'}]\""),
    TEXT("side", side, "what is checked: " SIDE " (default run:last)"),
    TEXT("baseline", baseline, "what it is compared with; measured rules need it"), BYTES, END};
static const struct agent_argument sql_arguments[] = {
    REQUIRED("statement", statement,
             "one SELECT; tables: launch, launch_config, kernel, run, device, minute, hour, measured_minute, "
             "loss, column_help (descriptions of all columns)"),
    NUMBER("max_rows", max_rows, 1, 500, 20, "limit of rows"), BYTES, END};

/* ---- the table ---- */

const struct agent_tool agent_tools[] = {
    {"overview", "Where GPU time went",
     "Is the GPU busy, and how much of its time do kernels use or lose by cause? Counts of runs, launches "
     "and "
     "kernels. Begin here.",
     overview_arguments, agent_overview},
    {"findings", "What to change first",
     "Losses of GPU time in the order of the predicted saving: kernel, owner, cause, cheapest change.",
     findings_arguments, agent_findings},
    {"kernel", "One kernel: why its occupancy is low, and what would help",
     "Resources, occupancies, causes of lost occupancy and changes with predicted time for one launch "
     "configuration of a kernel. Several kernels that match are listed instead.",
     kernel_arguments, agent_kernel},
    {"layer", "Layers of the model by time",
     "Tree of the ranges (modules, NVTX) that launches were made in, with time, used occupancy and the worst "
     "kernel of each, whose worst_kernel_id is an argument of the tool kernel.",
     layer_arguments, agent_layer},
    {"diff", "What changed between two sides",
     "Compares the launches of two runs, labels or periods kernel by kernel, with statistical verdicts.",
     diff_arguments, agent_diff},
    {"what_if", "The recorded launches on another GPU",
     "The model's occupancy of every recorded kernel on another GPU. Durations there are not predicted.",
     elsewhere_arguments, agent_elsewhere},
    {"check", "Rules that a run must keep",
     "Judges a run by rules for CI: occupancy, resources, regressions.", check_arguments, agent_check},
    {"sql", "Query in SQL",
     "Runs one statement that reads. Ratios 0 to 1, times in nanoseconds, null: not known. minute and hour "
     "have sums without reading single launches.",
     sql_arguments, agent_sql},
    {.name = NULL}};

const struct agent_tool *agent_find_tool(const char *name)
{
    for (const struct agent_tool *tool = agent_tools; tool->name; tool++)
        if (strcmp(tool->name, name) == 0)
            return tool;
    return NULL;
}

void agent_defaults(const struct agent_tool *tool, struct agent_args *args)
{
    *args = (struct agent_args){.max_bytes = AGENT_BYTES};
    for (const struct agent_argument *a = tool->arguments; a->name; a++)
        if (a->kind == AGENT_INTEGER)
            *(int64_t *)((char *)args + a->offset) = a->otherwise;
}

/* ---- a question ---- */

static int parse_run(const char *text, int64_t *ret_run, struct occ_error *err)
{
    uint64_t run = 0;
    if (strcmp(text, "last") == 0) {
        *ret_run = OCC_RUN_LAST;
        return 0;
    }
    if (occ_parse_u64(text, 1, INT64_MAX, &run, err) != 0)
        return occ_error_prefix(err, "run");
    *ret_run = (int64_t)run;
    return 0;
}

static int make_filter(struct agent_question *question, struct occ_error *err)
{
    const struct agent_args *args = question->args;
    question->filter =
        (struct occ_filter){.label = args->label, .kernel = args->kernel, .range_regex = args->layer};
    if (args->device > 0) {
        (void)snprintf(question->device, sizeof question->device, "%" PRId64, args->device);
        question->filter.gpu = question->device;
    }
    return args->run ? parse_run(args->run, &question->filter.run, err) : 0;
}

int agent_ask(const struct agent_tool *tool, const struct agent_place *place, const struct agent_args *args,
              char **ret_text, struct occ_error *err)
{
    _cleanup_(occ_store_freep) struct occ_store *store = NULL;
    _cleanup_(agent_document_free) struct agent_document document = {.limit = 0};
    struct agent_question question = {.place = place, .args = args};
    int status = make_filter(&question, err);
    if (status == 0)
        status = cli_open_history(place->where, OCC_STORE_READ, &store, err);
    if (status != 0)
        return status;
    question.store = store;
    agent_watch_store(&question, store);
    status = agent_document_open(&document, (size_t)args->max_bytes, err);
    if (status == 0)
        status = tool->answer(&question, &document, err);
    if (status == 0 && agent_document_bytes(&document) >= document.limit)
        status = occ_fail(err, OCC_E_FULL, "the answer has %zu bytes: raise max_bytes", document.bytes + 1);
    return status == 0 ? agent_document_close(&document, ret_text, err) : status;
}

/* Returns the word of an error. The table has the order of enum occ_error_code, from -1 down. */
static const char *error_word(int code)
{
    static const char *const words[] = {"invalid", "not_found", "io",   "no_memory", "corrupt", "version",
                                        "busy",    "read_only", "full", "denied",    "invalid"};
    size_t at = (size_t)(-1 - code);
    return code < 0 && at < sizeof words / sizeof *words ? words[at] : "failed";
}

char *agent_failure(const struct occ_error *err)
{
    struct agent_document document;
    char message[OCC_ERROR_MESSAGE_BYTES], *text = NULL;
    if (agent_document_open(&document, AGENT_BYTES, NULL) != 0)
        return NULL;
    (void)snprintf(message, sizeof message, "%s", err->message);
    occ_text_sanitise(message);
    occ_json_string(&document.json, "error", error_word(err->code));
    occ_json_string(&document.json, "quoted_message", message);
    return agent_document_close(&document, &text, NULL) == 0 ? text : NULL;
}
