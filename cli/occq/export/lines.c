/* Writes a line of CSV or JSON for each launch, with the columns' SQL names; see export.h. Counters are left
 * out. The common part of a configuration's launches is encoded once. */
#include <stdlib.h>

#include "cli/csv.h"
#include "cli/json.h"
#include "digits.h"

static const char *const keys[] = {"start_ns",      "duration_ns",    "run_id",        "context_id",
                                   "stream_id",     "correlation_id", "graph_node_id", "achieved",
                                   "achieved_ci95", "measured_ratio"};
enum { ALWAYS = 2, NUMBERS = 7, KEYS = sizeof keys / sizeof *keys };

static char *put_value(char *at, size_t i, const struct export_launch *l, const char *null)
{
    const uint64_t numbers[NUMBERS] = {(uint64_t)l->start_ns,
                                       (uint64_t)(l->end_ns - l->start_ns),
                                       l->run,
                                       l->context,
                                       l->stream,
                                       l->correlation,
                                       l->graph_node};
    const double ratios[] = {l->achieved, l->achieved_ci95, l->measured_ratio};
    if (i < NUMBERS)
        return i < ALWAYS || numbers[i] ? export_put_digits(at, numbers[i], 1) : export_put_text(at, null);
    return isnan(ratios[i - NUMBERS]) ? export_put_text(at, null) : export_put_ratio(at, ratios[i - NUMBERS]);
}

static void put_rest(struct export_writer *w, const char *line, const char *end,
                     const struct export_config *config)
{
    (void)fwrite_unlocked(line, 1, (size_t)(end - line), w->out);
    (void)fwrite_unlocked(config->bytes, 1, config->size, w->out);
    (void)fputc_unlocked('\n', w->out);
}

/* Closes the memory stream. Returns false if memory was too short for the whole text. */
static bool close_whole(FILE *memory)
{
    bool failed = ferror(memory);
    return fclose(memory) == 0 && !failed;
}

/* ---- CSV ---- */

static void csv_heading(FILE *out, const struct export_arg *args, size_t n)
{
    for (size_t i = 0; i < KEYS; i++)
        (void)fprintf(out, "%s,", keys[i]);
    (void)fputs("kernel", out);
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
    cli_csv_value(memory, &name);
    for (size_t i = 0; i < n; i++) {
        (void)fputc(',', memory);
        cli_csv_value(memory, &args[i].value);
    }
    return close_whole(memory);
}

static void csv_add_launch(struct export_writer *w, const struct export_track *track,
                           const struct export_config *config, const struct export_launch *launch)
{
    char line[256], *at = line;
    (void)track;
    for (size_t i = 0; i < KEYS; i++) {
        at = put_value(at, i, launch, "");
        *at++ = ',';
    }
    put_rest(w, line, at, config);
}

/* ---- JSON ---- */

bool export_config_json(const char *name_key, const char *kernel, const char *nested,
                        const struct export_arg *args, size_t n, struct export_config *ret_config)
{
    FILE *memory = open_memstream(&ret_config->bytes, &ret_config->size);
    struct occ_json json = {.out = memory};
    if (!memory)
        return false;
    occ_json_object(&json, NULL, true);
    occ_json_string(&json, name_key, kernel);
    if (nested)
        occ_json_object(&json, nested, true);
    for (size_t i = 0; i < n; i++)
        if (!nested || args[i].value.type != CLI_NONE)
            cli_json_value(&json, args[i].key, args[i].value);
    if (!nested)
        occ_json_close(&json);
    if (!close_whole(memory))
        return false;
    ret_config->bytes[0] = ' '; /* in place of '{': continues the object of an event or line */
    return true;
}

static bool jsonl_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args,
                             size_t n, struct export_config *config)
{
    (void)w;
    return export_config_json("kernel", kernel, NULL, args, n, config);
}

static void jsonl_add_launch(struct export_writer *w, const struct export_track *track,
                             const struct export_config *config, const struct export_launch *launch)
{
    char line[512], *at = line;
    (void)track;
    for (size_t i = 0; i < KEYS; i++) {
        at = export_put_text(at, i ? ", \"" : "{\"");
        at = export_put_text(export_put_text(at, keys[i]), "\": ");
        at = put_value(at, i, launch, "null");
    }
    *at++ = ',';
    put_rest(w, line, at, config);
}

const struct export_format export_csv = {
    .name = "csv", .is_flat = true, .add_config = csv_add_config, .add_launch = csv_add_launch};
const struct export_format export_jsonl = {
    .name = "jsonl", .is_flat = true, .add_config = jsonl_add_config, .add_launch = jsonl_add_launch};
