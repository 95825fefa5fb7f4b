/* See exposition.h. */
#include "exposition.h"

#include <math.h>
#include <string.h>

enum type { COUNTER, GAUGE };
enum audience { ALL, IDENTITY };

static const struct metric {
    const char *name;
    enum type type;
    enum audience audience;
    const char *help;
} metrics[] = {
#define METRIC(id, name, type, audience, help) {name, type, audience, help},
    OCC_METRICS(METRIC)};

/* OpenMetrics names a counter without the suffix of its series. */
static int length_of_family(const struct occ_exposition *e, const struct metric *metric)
{
    size_t n = strlen(metric->name);
    return (int)(e->is_openmetrics && metric->type == COUNTER ? n - strlen("_total") : n);
}

bool occ_exposition_begin(const struct occ_exposition *e, enum occ_metric metric)
{
    const struct metric *m = &metrics[metric];
    int n = length_of_family(e, m);
    if (m->audience == IDENTITY && !e->has_identity)
        return false;
    (void)fprintf(e->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", n, m->name, m->help, n, m->name,
                  m->type == COUNTER ? "counter" : "gauge");
    return true;
}

static void put_label(const struct occ_exposition *e, const char *before, const struct occ_label *label)
{
    (void)fprintf(e->out, "%s%s=\"", before, label->name);
    for (const char *c = label->value; *c; c++)
        if (*c == '\n')
            (void)fputs("\\n", e->out);
        else
            (void)fprintf(e->out, "%s%c", *c == '\\' || *c == '"' ? "\\" : "", *c);
    (void)fputc('"', e->out);
}

void occ_exposition_put(const struct occ_exposition *e, enum occ_metric metric,
                        const struct occ_label *labels, double value)
{
    (void)fputs(metrics[metric].name, e->out);
    put_label(e, "{", &(struct occ_label){"hostname", e->hostname});
    for (; labels && labels->name; labels++)
        if (labels->value[0])
            put_label(e, ",", labels);
    (void)fprintf(e->out, "} %.*g\n", fabs(value) < 1e15 ? 15 : 17, value);
}

void occ_exposition_one(const struct occ_exposition *e, enum occ_metric metric, double value)
{
    if (occ_exposition_begin(e, metric))
        occ_exposition_put(e, metric, NULL, value);
}

void occ_exposition_end(const struct occ_exposition *e)
{
    if (e->is_openmetrics)
        (void)fputs("# EOF\n", e->out);
}
