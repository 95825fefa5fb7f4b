/* The head of the page: the devices of the launches, and the verdict; see report.h. One thread. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/marks.h"
#include "html.h"
#include "overview.h"
#include "report.h"
#include "support/map.h"
#include "support/text.h"

static void count(FILE *out, uint64_t n, const char *one)
{
    (void)fprintf(out, "<b>%" PRIu64 "</b> %s%s", n, one,
                  n == 1                       ? ""
                  : strcmp(one, "launch") == 0 ? "es"
                                               : "s");
}

/* Finds a row of each device, at most DEVICES_MAX rows. *ret_n: number of all devices. */
enum { DEVICES_MAX = 64 };
static void find_devices(const struct occ_top *top, const struct occ_row_kernel *devices[DEVICES_MAX],
                         size_t *ret_n)
{
    struct occ_map known = {0};
    *ret_n = 0;
    for (size_t i = 0; i < top->n; i++) {
        const struct occ_row_kernel *kernel = &top->rows[i].kernel;
        if (occ_map_put(&known, (uint64_t)kernel->device, (uint32_t)i) != i)
            continue;
        if (*ret_n < DEVICES_MAX)
            devices[*ret_n] = kernel;
        ++*ret_n;
    }
    occ_map_free(&known);
}

/* Writes the devices: "2 x NVIDIA H100, Tesla T4". */
static void put_devices(FILE *out, const struct report *r)
{
    const struct occ_row_kernel *devices[DEVICES_MAX];
    const char *separator = "";
    size_t n;
    find_devices(r->top, devices, &n);
    size_t listed = n < DEVICES_MAX ? n : DEVICES_MAX;
    for (size_t i = 0; i < listed; i++) {
        size_t alike = 1;
        for (size_t k = i + 1; devices[i] && k < listed; k++)
            if (devices[k] && strcmp(devices[k]->device_name, devices[i]->device_name) == 0) {
                devices[k] = NULL; /* counted in `alike` */
                alike++;
            }
        if (!devices[i])
            continue;
        (void)fputs(separator, out);
        if (alike > 1)
            (void)fprintf(out, "%zu \xc3\x97 ", alike);
        html_put(out, "<bdi>@</bdi>", devices[i]->device_name);
        separator = ", ";
    }
    if (listed < n)
        (void)fprintf(out, " and %zu more", n - listed);
}

/* Writes the advice that saves most time, among kernels with a section. */
static void put_best_advice(FILE *out, const struct report *r)
{
    const struct top_line *best = NULL;
    char anchor[REPORT_ANCHOR_BYTES], saves[32];
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->lines[i].advice[0] && (!best || r->lines[i].advice_saves_ns > best->advice_saves_ns))
            best = &r->lines[i];
    if (!best)
        return;
    html_put(out, "<p>What may save most: @ in <a href=\"#@\"><bdi>@</bdi></a>, 0 to @. <code>@</code></p>\n",
             best->advice, report_anchor(&best->row.kernel, anchor), best->row.kernel.short_name,
             occ_format_duration((int64_t)best->advice_saves_ns, saves, sizeof saves), best->knob);
}

/* Writes a kernel's waste. Returns true if the kernel communicates: its occupancy is low by design. */
static bool put_waster(FILE *out, const struct top_line *line)
{
    char anchor[REPORT_ANCHOR_BYTES], part[16], loss[16], words[CLI_MARKS_BYTES];
    unsigned cause = top_part_of(line->row.main_cause);
    (void)cli_marks_text(cli_marks(false, 0, line->row.kernel.demangled), true, words);
    html_put(out, "<p><a href=\"#@\"><bdi>@</bdi></a> has @ of that",
             report_anchor(&line->row.kernel, anchor), line->row.kernel.short_name,
             cli_percent_text(line->waste_ratio, part, sizeof part));
    if (words[0])
        html_put(out, ": @", words);
    else if (cause < OCC_PART_COUNT)
        html_put(out, ": @ (@ of its occupancy)", occ_part_text(cause, 1),
                 cli_percent_text(line->main_cause_ratio, loss, sizeof loss));
    (void)fputs(".</p>\n", out);
    return words[0] != '\0';
}

/* Writes the kernel with the largest waste; after a kernel that is low by design also the next one. */
static void put_largest(FILE *out, const struct report *r)
{
    enum { MOST = 3 };
    bool by_design = true;
    for (size_t i = 0; by_design && i < r->n_lines && i < MOST && !isnan(r->lines[i].waste_ratio); i++)
        by_design = put_waster(out, &r->lines[i]);
}

static void put_lost(FILE *out, const struct report *r)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, sql_count_partial(r->store, r->filter).lost);
    if (strcmp(text, "0") != 0)
        html_put(out,
                 "<p class=\"note warning\">Launches that could not be recorded: @. <a "
                 "href=\"#runs\">Runs</a> have "
                 "the causes.</p>\n",
                 text);
}

static bool is_simulated(const struct occ_top_row *row)
{
    return row->kernel.simulated;
}

static bool is_measured(const struct occ_top_row *row)
{
    return !isnan(row->elapsed);
}

/* Returns the number of kernels with such a row, each counted once over all devices. */
static size_t count_kernels(const struct occ_top *top, bool (*is_such)(const struct occ_top_row *))
{
    struct occ_map kernels = {0};
    for (size_t i = 0; i < top->n; i++)
        if (is_such(&top->rows[i]))
            (void)occ_map_put(&kernels, (uint64_t)top->rows[i].kernel.id, 0);
    size_t n = kernels.used;
    occ_map_free(&kernels);
    return n;
}

static void put_notes(FILE *out, const struct report *r)
{
    size_t simulated = count_kernels(r->top, is_simulated), measured = count_kernels(r->top, is_measured);
    char text[2][32];
    (void)snprintf(text[0], sizeof text[0], "%zu", simulated);
    (void)snprintf(text[1], sizeof text[1], "%zu", measured);
    if (simulated)
        html_put(out, "<p class=\"note\">@ kernels ran on a simulated device: no real GPU did.</p>\n",
                 text[0]);
    if (measured == 0)
        (void)fputs("<p class=\"note\">Nothing was measured by hardware counters: occupancy is the low end "
                    "of what the model expects.</p>\n",
                    out);
    else
        html_put(out,
                 "<p class=\"note\">Hardware counters measured @ of the kernels; of others the low end of "
                 "what the model expects counts.</p>\n",
                 text[1]);
}

/* Writes the sums and the largest losses in warp-seconds, where the GPU time is not known. */
static void put_waste(FILE *out, const struct report *r)
{
    char waste[32];
    html_put(out, "<p>They wasted <b>@</b> warp-seconds.</p>\n",
             cli_amount_text(r->sums.waste, waste, sizeof waste));
    put_largest(out, r);
    put_best_advice(out, r);
}

int report_verdict(FILE *out, const struct report *r, struct occ_error *err)
{
    char time[32];
    (void)fputs("<header><h1>GPU occupancy report</h1>\n<p>", out);
    put_devices(out, r);
    int status = report_origin(out, r, err);
    if (r->asked[0])
        html_put(out, " \xc2\xb7 <bdi>@</bdi>", r->asked);
    if (r->diff)
        html_put(out, " \xc2\xb7 all but <a href=\"#diff\">what changed</a> is about B: <bdi>@</bdi>",
                 r->diff->side[DIFF_B].title);
    (void)fputs(
        "</p></header>\n<main>\n<section aria-labelledby=\"verdict\"><h2 id=\"verdict\">Verdict</h2>\n<p>",
        out);
    count(out, r->sums.launches, "launch");
    (void)fputs(" of ", out);
    count(out, r->top->n_kernels, "kernel");
    html_put(out, " took <b>@</b>.</p>\n", occ_format_duration((int64_t)r->sums.ns, time, sizeof time));
    if (r->overview->time.window_s > 0)
        report_gpu_time(out, r);
    else
        put_waste(out, r);
    put_notes(out, r);
    put_lost(out, r);
    (void)fputs("</section>\n", out);
    return status;
}
