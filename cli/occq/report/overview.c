/* See overview.h. The numbers are those of "occq top": occ_overview_steps(), occ_overview_share(). */
#include "overview.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "bars.h"
#include "html.h"
#include "support/text.h"

/* ---- programs, hosts, dates ---- */

static const char origin_sql[] =
    "SELECT count(DISTINCT program), min(program), count(DISTINCT hostname), min(hostname), count(*), "
    "min(start_ns) FILTER (WHERE time_base = 'epoch'), max(start_ns) FILTER (WHERE time_base = 'epoch') "
    "FROM run WHERE run_id IN " OCC_FILTER_RUN_IDS " AND (:gpu IS NULL OR run_id IN (SELECT u.run_id FROM "
    "stored_run_config AS u JOIN stored_launch_config AS c USING (config_id) JOIN stored_device AS d "
    "USING (device_id) WHERE " OCC_FILTER_GPU(":gpu", "d.name") "))";

/* Writes the value in `column` after the count of different values in the column before, or "2 programs". */
static void put_origin(FILE *out, sqlite3_stmt *stmt, int column, const char *what)
{
    int64_t n = sqlite3_column_int64(stmt, column);
    if (n == 1)
        html_put(out, " \xc2\xb7 <bdi>@</bdi>", (const char *)sqlite3_column_text(stmt, column + 1));
    else if (n > 1)
        (void)fprintf(out, " \xc2\xb7 %" PRId64 " %ss", n, what);
}

static void put_dates(FILE *out, sqlite3_stmt *stmt)
{
    char first[32], last[32];
    int64_t first_ns = sqlite3_column_int64(stmt, 5), last_ns = sqlite3_column_int64(stmt, 6);
    if (first_ns == 0)
        return;
    html_put(out, " \xc2\xb7 started @", cli_time_text(first_ns, first, sizeof first));
    if (last_ns > first_ns)
        html_put(out, " to @", cli_time_text(last_ns, last, sizeof last));
}

int report_origin(FILE *out, const struct report *r, struct occ_error *err)
{
    sqlite3 *db = occ_store_sqlite(r->store);
    sqlite3_stmt *stmt = NULL;
    int status = sqlite3_prepare_v2(db, origin_sql, -1, &stmt, NULL);
    if (status == SQLITE_OK) {
        occ_filter_bind_runs(stmt, r->filter);
        (void)sqlite3_bind_text(stmt, sqlite3_bind_parameter_index(stmt, ":gpu"), r->filter->gpu, -1,
                                SQLITE_STATIC);
        status = sqlite3_step(stmt);
    }
    if (status == SQLITE_ROW) {
        put_origin(out, stmt, 0, "program");
        put_origin(out, stmt, 2, "host");
        if (sqlite3_column_int64(stmt, 4) > 1)
            (void)fprintf(out, " \xc2\xb7 %" PRId64 " runs", (int64_t)sqlite3_column_int64(stmt, 4));
        put_dates(out, stmt);
    }
    (void)sqlite3_finalize(stmt);
    return status == SQLITE_ROW ? 0 : occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(db));
}

/* ---- the GPU time ---- */

static void put_bar(FILE *out, const struct occ_overview *o)
{
    const struct occ_gpu_steps steps = occ_overview_steps(&o->time, 100);
    const struct bars_step of[] = {
        {steps.used, "used", "used", 0},
        {steps.unknown, "unexplained", occ_overview_unknown_text(o), 0},
        {steps.communication, "communication", "communication", 0},
        {steps.copies, "copies", "copies", 0},
        {steps.launch_wait, "launch-wait", "waiting for launches", 0},
        {steps.pause, "pause", o->lost > 0 ? "pauses or lost launches" : "pauses", 0}};
    struct bars_step all[sizeof of / sizeof *of + OCC_PART_COUNT];
    size_t n = 0;
    all[n++] = of[0];
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        all[n++] = (struct bars_step){steps.lost[i], NULL, NULL, i};
    for (size_t i = 1; i < sizeof of / sizeof *of; i++)
        all[n++] = of[i];
    bars_whole(out, all, n);
}

/* Writes " #26" if another kernel has the same family and tile. */
static const char *number_of(const struct occ_overview *o, size_t at, char number[24])
{
    number[0] = '\0';
    for (size_t i = 0; i < o->totals.n_kernels && o->kernels[at].label[0]; i++)
        if (o->totals.kernels[i].kernel != o->totals.kernels[at].kernel &&
            strcmp(o->kernels[i].label, o->kernels[at].label) == 0)
            (void)snprintf(number, 24, " #%" PRId64, o->totals.kernels[at].kernel);
    return number;
}

/* Writes the kernel of a finding, linked to its section. */
static void put_kernel(FILE *out, const struct report *r, const struct occ_finding *f)
{
    const struct occ_answer_kernel *kernel = &r->overview->kernels[f->kernel];
    const struct occ_row_kernel row = {.id = r->overview->totals.kernels[f->kernel].kernel,
                                       .device = kernel->device};
    char anchor[REPORT_ANCHOR_BYTES], number[24];
    (void)number_of(r->overview, f->kernel, number);
    const char *name = kernel->label[0] ? kernel->label : kernel->name ? kernel->name : kernel->demangled;
    bool is_linked = false;
    for (size_t i = 0; i < r->n_lines && !is_linked; i++)
        is_linked = r->lines[i].row.kernel.id == row.id && r->lines[i].row.kernel.device == row.device;
    if (is_linked)
        html_put(out, " <a href=\"#@\"><bdi>@@</bdi></a>", report_anchor(&row, anchor), name, number);
    else
        html_put(out, " <bdi>@@</bdi>", name, number);
}

static void put_finding(FILE *out, const struct report *r, const struct occ_finding *f)
{
    char lost[16], saves[16], why[OCC_WHY_BYTES];
    (void)cli_percent_text(f->lost, lost, sizeof lost);
    html_put(out, "<li data-finding><b>@</b> ", lost);
    if (f->kind != OCC_FINDING_KERNEL)
        html_put(out, "@", occ_overview_finding_text(r->overview, f->kind));
    else
        (void)fputs("empty warp slots in", out);
    if (f->kernel != SIZE_MAX && f->kind == OCC_FINDING_KERNEL) {
        put_kernel(out, r, f);
        (void)occ_overview_why(r->overview, f->kernel, why);
        if (why[0])
            html_put(out, ": @", why);
    }
    html_put(out, "; @", f->low_reasons ? occ_low_reason_text(f->low_reasons) : occ_change_text(f->change));
    if (!f->low_reasons && f->aside != OCC_ASIDE_NONE)
        html_put(out, " (@)", occ_aside_text(f->aside));
    if (!f->low_reasons && isfinite(f->saves.median) && f->saves.median > 0)
        html_put(out, ", saves about @", cli_percent_text(f->saves.median, saves, sizeof saves));
    (void)fputs("</li>\n", out);
}

void report_gpu_time(FILE *out, const struct report *r)
{
    enum { FINDINGS = 5 };
    const struct occ_overview *o = r->overview;
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES];
    if (occ_overview_text(o, lines) > 0)
        html_put(out, "<p><b>@</b></p>\n", lines[0]);
    put_bar(out, o);
    if (o->n_findings > 0)
        (void)fputs("<h3>Findings, in percent of the GPU time</h3>\n<ol>\n", out);
    for (size_t i = 0; i < o->n_findings && i < FINDINGS; i++)
        put_finding(out, r, &o->findings[i]);
    if (o->n_findings > 0)
        (void)fputs("</ol>\n", out);
}

/* ---- layers ---- */

static void put_layer_name(FILE *out, const struct occ_layer *layer, bool is_short)
{
    const char *last = strrchr(layer->name, '/');
    html_put(out, "<bdi>@</bdi>", is_short && last ? last + 1 : layer->name);
    if (layer->count > 1)
        (void)fprintf(out, " \xc3\x97 %u", layer->count);
    if (layer->is_backward)
        (void)fputs(" backward", out);
}

/* An SVG text has no <bdi>: direction marks are invisible characters, which html_text() replaces. */
static void put_label(FILE *out, const struct report *r, const struct occ_layer *layer)
{
    const char *last = strrchr(layer->name, '/');
    char share[16], count[24] = "";
    if (layer->count > 1)
        (void)snprintf(count, sizeof count, " \xc3\x97 %u", layer->count);
    html_put(out, "<text x=\"4\" y=\"13\">@ @@@</text>",
             cli_percent_text(occ_overview_share(r->overview, OCC_SHARE_OF_ALL, 0, layer->time_s * 1e9),
                              share, sizeof share),
             last ? last + 1 : layer->name, count, layer->is_backward ? " backward" : "");
}

enum { ICICLE_DEPTH = 4, ICICLE_PIXELS = 420, LABEL_PIXELS = 16 };

/* Draws the layers: a column for each depth, a height in proportion to time. */
static void put_icicle(FILE *out, const struct report *r)
{
    const struct occ_layers *layers = r->layers;
    double top[ICICLE_DEPTH + 1] = {0};
    unsigned depths = 1;
    for (size_t i = 0; i < layers->n; i++)
        depths = layers->layers[i].depth + 1 > depths ? layers->layers[i].depth + 1 : depths;
    depths = depths < ICICLE_DEPTH ? depths : ICICLE_DEPTH;
    (void)fprintf(out, "<svg class=\"icicle\" aria-hidden=\"true\" height=\"%d\">", ICICLE_PIXELS);
    for (size_t i = 0; i < layers->n; i++) {
        const struct occ_layer *layer = &layers->layers[i];
        unsigned depth = layer->depth;
        if (depth >= depths)
            continue;
        bool is_leaf = i + 1 == layers->n || layers->layers[i + 1].depth <= depth || depth + 1 == depths;
        (void)fprintf(
            out,
            "<svg x=\"%.2f%%\" y=\"%.2f%%\" width=\"%.2f%%\" height=\"%.2f%%\"><rect width=\"100%%\" "
            "height=\"100%%\"/>",
            100.0 * depth / depths, 100 * top[depth], 100.0 * (is_leaf ? depths - depth : 1) / depths,
            100 * layer->share);
        if (layer->share * ICICLE_PIXELS >= LABEL_PIXELS)
            put_label(out, r, layer);
        (void)fputs("</svg>", out);
        top[depth + 1] = top[depth];
        top[depth] += layer->share;
    }
    (void)fputs("</svg>\n", out);
}

void report_layers(FILE *out, const struct report *r)
{
    const struct occ_layers *layers = r->layers;
    char share[16], used[16], launches[24];
    if (layers->n == 0)
        return;
    (void)fputs(
        "<section aria-labelledby=\"by-layer\"><h2 id=\"by-layer\">Layers</h2>\n<p>In percent of the GPU "
        "time; a height is a part of the kernel time.</p>\n",
        out);
    put_icicle(out, r);
    (void)fputs("<details><summary>Show as table</summary>\n<div class=\"scroll\" tabindex=\"0\"><table "
                "id=\"layers\"><caption>Layers by time</caption><thead><tr><th scope=\"col\" "
                "class=\"l\">layer</th><th scope=\"col\">GPU time</th><th scope=\"col\">used</th><th "
                "scope=\"col\">launches</th></tr></thead><tbody>\n",
                out);
    for (size_t i = 0; i < layers->n; i++) {
        const struct occ_layer *layer = &layers->layers[i];
        (void)snprintf(launches, sizeof launches, "%" PRIu64, layer->launches);
        (void)fprintf(out, "<tr><td class=\"l depth-%u\">", layer->depth < 9 ? layer->depth : 9);
        put_layer_name(out, layer, false);
        html_put(out, "</td><td>@</td><td>@</td><td>@</td></tr>\n",
                 cli_percent_text(occ_overview_share(r->overview, OCC_SHARE_OF_ALL, 0, layer->time_s * 1e9),
                                  share, sizeof share),
                 cli_percent_text(layer->used, used, sizeof used), launches);
    }
    (void)fputs("</tbody></table></div></details></section>\n", out);
}
