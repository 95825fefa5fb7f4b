/*
 * A line of CSV or of JSON for each launch, with the columns' names in SQL; see export.h. Counters are left
 * out. What all launches of a configuration have in their lines is made once.
 */
#include <stdlib.h>

#include "cli/json.h"
#include "cli/table.h"
#include "digits.h"

/* X(name, member of struct export_launch) */
#define IDS(X)                                                                                               \
    X(run_id, run)                                                                                           \
    X(context_id, context)                                                                                   \
    X(stream_id, stream) X(correlation_id, correlation) X(graph_node_id, graph_node)
#define RATIOS(X) X(achieved, achieved) X(achieved_ci95, achieved_ci95)

static void begin_or_end(struct export_writer *w)
{
    (void)w;
}

/* ---- CSV ---- */

static void csv_heading(FILE *out, const struct export_arg *args, size_t n)
{
#define X(name, member) "," #name
    (void)fputs("start_ns,duration_ns" IDS(X) RATIOS(X) ",kernel", out);
#undef X
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, ",%s", args[i].key);
    (void)fputc('\n', out);
}

static bool csv_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args,
                           size_t n, struct export_config *config)
{
    const struct cli_value name = cli_string(kernel);
    FILE *memory = open_memstream(&config->bytes, &config->size);
    if (!memory)
        return false;
    if (w->written++ == 0)
        csv_heading(w->out, args, n);
    int status = cli_csv_value(memory, &name, NULL);
    for (size_t i = 0; i < n && status == 0; i++) {
        (void)fputc(',', memory);
        status = cli_csv_value(memory, &args[i].value, NULL);
    }
    return fclose(memory) == 0 && status == 0;
}

static char *put_csv(char *at, const struct export_launch *l)
{
    *at++ = ',';
    at = export_put_digits(at, (uint64_t)(l->end_ns - l->start_ns), 1);
#define X(name, member)                                                                                      \
    *at++ = ',';                                                                                             \
    at = l->member ? export_put_digits(at, l->member, 1) : at;
    IDS(X)
#undef X
#define X(name, member)                                                                                      \
    *at++ = ',';                                                                                             \
    at = isnan(l->member) ? at : export_put_ratio(at, l->member);
    RATIOS(X)
#undef X
    *at++ = ',';
    return at;
}

static void put_line(struct export_writer *w, const char *line, const char *end,
                     const struct export_config *config)
{
    (void)fwrite_unlocked(line, 1, (size_t)(end - line), w->out);
    (void)fwrite_unlocked(config->bytes, 1, config->size, w->out);
    (void)fputc_unlocked('\n', w->out);
}

static void csv_add_launch(struct export_writer *w, const struct export_track *track,
                           const struct export_config *config, const struct export_launch *launch)
{
    char line[256];
    (void)track;
    put_line(w, line, put_csv(export_put_digits(line, (uint64_t)launch->start_ns, 1), launch), config);
}

/* ---- JSON ---- */

/* The rest of the line's object. */
static bool jsonl_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args,
                             size_t n, struct export_config *config)
{
    FILE *memory = open_memstream(&config->bytes, &config->size);
    struct cli_json json = {.out = memory};
    (void)w;
    if (!memory)
        return false;
    cli_json_object(&json, NULL, true);
    cli_json_string(&json, "kernel", kernel);
    for (size_t i = 0; i < n; i++)
        cli_json_value(&json, args[i].key, args[i].value);
    cli_json_close(&json);
    if (fclose(memory) != 0)
        return false;
    config->bytes[0] = ','; /* the object's brace: it goes on where the line's began */
    return true;
}

static void jsonl_add_launch(struct export_writer *w, const struct export_track *track,
                             const struct export_config *config, const struct export_launch *l)
{
    char line[512];
    (void)track;
    char *at = export_put_text(line, "{\"start_ns\": ");
    at = export_put_text(export_put_digits(at, (uint64_t)l->start_ns, 1), ", \"duration_ns\": ");
    at = export_put_digits(at, (uint64_t)(l->end_ns - l->start_ns), 1);
#define X(name, member)                                                                                      \
    at = export_put_text(at, ", \"" #name "\": ");                                                           \
    at = l->member ? export_put_digits(at, l->member, 1) : export_put_text(at, "null");
    IDS(X)
#undef X
#define X(name, member)                                                                                      \
    at = export_put_text(at, ", \"" #name "\": ");                                                           \
    at = isnan(l->member) ? export_put_text(at, "null") : export_put_ratio(at, l->member);
    RATIOS(X)
#undef X
    put_line(w, line, at, config);
}

const struct export_format export_csv = {.name = "csv",
                                         .is_flat = true,
                                         .begin = begin_or_end,
                                         .add_config = csv_add_config,
                                         .add_launch = csv_add_launch,
                                         .end = begin_or_end};
const struct export_format export_jsonl = {.name = "jsonl",
                                           .is_flat = true,
                                           .begin = begin_or_end,
                                           .add_config = jsonl_add_config,
                                           .add_launch = jsonl_add_launch,
                                           .end = begin_or_end};
