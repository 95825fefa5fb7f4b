/*
 * Chrome's Trace Event Format, JSON, one event a line; see export.h. Viewers read numbers as doubles, so
 * times are relative to the first launch, with exactly three decimals of a microsecond; baseTimeNanoseconds
 * is their origin, like in Kineto's traces. Thread numbers are unique in the whole file, since some importers
 * name threads by number alone. ph, ts, dur, pid and tid come first, since old importers search for them
 * before texts.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "digits.h"

/* Appends nanoseconds as microseconds; `ns` is never negative here. */
static char *put_us(char *at, int64_t ns)
{
    at = export_put_digits(at, (uint64_t)ns / 1000, 1);
    *at++ = '.';
    return export_put_digits(at, (uint64_t)ns % 1000, 3);
}

static void next_event(struct export_writer *w)
{
    (void)fputs_unlocked(w->written++ ? ",\n" : "\n", w->out);
}

static void chrome_begin(struct export_writer *w)
{
    (void)fprintf(w->out,
                  "{\"displayTimeUnit\": \"ns\", \"baseTimeNanoseconds\": %" PRId64
                  ", \"otherData\": {\"producer\": \"occtrace\"}, \"traceEvents\": [",
                  w->base_ns);
}

static void add_metadata(struct export_writer *w, const struct export_track *track, const char *key,
                         const char *name, bool is_number)
{
    struct occ_json json = {.out = w->out};
    next_event(w);
    (void)fprintf(w->out,
                  "{\"ph\": \"M\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32 ", \"name\": \"%s\", \"args\": ",
                  track->gpu, track->id, key);
    occ_json_object(&json, NULL, true);
    if (is_number)
        occ_json_unsigned(&json, "sort_index", track->id);
    else
        occ_json_string(&json, "name", name);
    occ_json_close(&json);
    (void)fputc('}', w->out);
}

static void chrome_add_track(struct export_writer *w, const struct export_track *track)
{
    char name[256];
    if (track->kind == EXPORT_COUNTER)
        return; /* a counter begins with its first value */
    (void)snprintf(name, sizeof name, track->lane ? "%s (overlap %u)" : "%s", track->name, track->lane + 1);
    add_metadata(w, track, track->kind == EXPORT_GPU ? "process_name" : "thread_name", name, false);
    add_metadata(w, track, track->kind == EXPORT_GPU ? "process_sort_index" : "thread_sort_index", NULL,
                 true);
}

/* Encodes "name": ..., "args": {... without the closing braces. */
static bool chrome_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args,
                              size_t n, struct export_config *config)
{
    (void)w;
    return export_config_json("name", kernel, "args", args, n, config);
}

static char *put_key(char *at, const char *key)
{
    at = export_put_text(at, ", \"");
    at = export_put_text(at, key);
    return export_put_text(at, "\": ");
}

static char *put_ratio(char *at, const char *key, double ratio)
{
    return isnan(ratio) ? at : export_put_ratio(put_key(at, key), ratio);
}

static char *put_number(char *at, const char *key, uint64_t number)
{
    return number ? export_put_digits(put_key(at, key), number, 1) : at;
}

static char *put_slice(char *at, struct export_writer *w, const struct export_track *track, int64_t start_ns,
                       int64_t end_ns)
{
    at = put_us(export_put_text(at, "{\"ph\": \"X\", \"ts\": "), start_ns - w->base_ns);
    at = put_us(export_put_text(at, ", \"dur\": "), end_ns - start_ns);
    at = export_put_digits(export_put_text(at, ", \"pid\": "), track->gpu, 1);
    return export_put_text(export_put_digits(export_put_text(at, ", \"tid\": "), track->id, 1), ",");
}

/* Writes the ranges around a launch as further members of its open object. */
static void add_range(struct export_writer *w, const struct export_range *range)
{
    struct occ_json json = {
        .out = w->out, .depth = 1, .open = {{.end = '}', .compact = true, .filled = true}}};
    occ_json_string(&json, "layer", range->path);
    if (range->is_backward)
        occ_json_string(&json, "phase", "backward");
}

static void chrome_add_launch(struct export_writer *w, const struct export_track *track,
                              const struct export_config *config, const struct export_launch *launch)
{
    char head[192], tail[256];
    char *head_end = put_slice(head, w, track, launch->start_ns, launch->end_ns);
    char *end = put_number(tail, "correlation_id", launch->correlation);
    end = put_number(end, "graph_node_id", launch->graph_node);
    end = put_ratio(end, "achieved", launch->achieved);
    end = put_ratio(end, "achieved_ci95", launch->achieved_ci95);
    end = put_ratio(end, "measured_ratio", launch->measured_ratio);
    end = export_put_text(end, "}}");
    next_event(w);
    (void)fwrite_unlocked(head, 1, (size_t)(head_end - head), w->out);
    (void)fwrite_unlocked(config->bytes, 1, config->size, w->out);
    if (launch->range)
        add_range(w, launch->range);
    (void)fwrite_unlocked(tail, 1, (size_t)(end - tail), w->out);
}

static void chrome_add_value(struct export_writer *w, const struct export_track *track, int64_t ns,
                             double value)
{
    char time[48];
    *put_us(time, ns - w->base_ns) = '\0';
    next_event(w);
    (void)fprintf(
        w->out, "{\"ph\": \"C\", \"ts\": %s, \"pid\": %" PRIu32 ", \"name\": \"%s\", \"args\": {\"\": %.3f}}",
        time, track->gpu, track->name, value);
}

/* Begins "{"ph": "B", "ts": 1.000, "pid": 1, "tid": 3", without the closing brace. */
static void begin_mark(struct export_writer *w, char phase, uint32_t gpu, uint32_t track, int64_t ns)
{
    char time[48];
    *put_us(time, ns - w->base_ns) = '\0';
    next_event(w);
    (void)fprintf(w->out, "{\"ph\": \"%c\", \"ts\": %s, \"pid\": %" PRIu32 ", \"tid\": %" PRIu32, phase, time,
                  gpu, track);
}

static void chrome_begin_layer(struct export_writer *w, const struct export_track *track, int64_t ns,
                               const char *name, size_t n)
{
    struct occ_json json = {
        .out = w->out, .depth = 1, .open = {{.end = '}', .compact = true, .filled = true}}};
    char *copy = strndup(name, n);
    w->failed |= !copy;
    begin_mark(w, 'B', track->gpu, track->id, ns);
    occ_json_string(&json, "name", copy);
    (void)fputc('}', w->out);
    free(copy);
}

static void chrome_end_layer(struct export_writer *w, const struct export_track *track, int64_t ns)
{
    begin_mark(w, 'E', track->gpu, track->id, ns);
    (void)fputc('}', w->out);
}

static void chrome_add_hole(struct export_writer *w, const struct export_track *lane, int64_t start_ns,
                            int64_t end_ns)
{
    char head[192];
    *put_slice(head, w, lane, start_ns, end_ns) = '\0';
    next_event(w);
    (void)fprintf(w->out, "%s \"name\": \"%s\"}", head, lane->name);
}

static void chrome_end(struct export_writer *w)
{
    (void)fputs("\n]}\n", w->out);
}

const struct export_format export_chrome = {.name = "chrome",
                                            .begin = chrome_begin,
                                            .add_track = chrome_add_track,
                                            .add_config = chrome_add_config,
                                            .add_launch = chrome_add_launch,
                                            .add_value = chrome_add_value,
                                            .begin_layer = chrome_begin_layer,
                                            .end_layer = chrome_end_layer,
                                            .add_hole = chrome_add_hole,
                                            .end = chrome_end};
