/* The lines above the table of `occq live`; see model.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model.h"
#include "support/text.h"

/* Writes the age of the newest launch: "newest 1.2 s ago", "ahead" if the clock was set back; without
 * launches the reason. */
static void age_text(const struct live_sample *sample, char *text, size_t size)
{
    int64_t age_ns = sample->at_ns - sample->newest_ns;
    char age[32];
    (void)occ_format_duration(age_ns < 0 ? -age_ns : age_ns, age, sizeof age);
    if (sample->missing_run != 0)
        (void)snprintf(text, size, "there is no run %" PRId64, sample->missing_run);
    else if (sample->newest_ns == 0)
        (void)snprintf(text, size, "no launches yet");
    else
        (void)snprintf(text, size, "newest %s %s", age,
                       age_ns < 0 ? "ahead (the clock was set back)" : "ago");
}

void live_head_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES])
{
    char window[32], age[96], overhead[32];
    age_text(sample, age, sizeof age);
    (void)snprintf(line, LIVE_LINE_BYTES, "last %s  %s  %" PRId64 " run%s  lost %" PRId64 "  overhead %s",
                   occ_format_duration(sample->window_ns, window, sizeof window), age, sample->runs,
                   sample->runs == 1 ? "" : "s", sample->lost,
                   cli_percent_text(sample->overhead, overhead, sizeof overhead));
}

void live_gpu_text(const struct live_sample *sample, size_t i, char line[LIVE_LINE_BYTES])
{
    const struct occ_top_row *row = &sample->gpus.rows[i];
    bool measured = !isnan(row->achieved);
    char busy[32], occupancy[32], waste[32], covered[32], coverage[48] = "";
    if (measured)
        (void)snprintf(coverage, sizeof coverage, " in %s",
                       cli_percent_text(row->measured_ratio, covered, sizeof covered));
    (void)snprintf(
        line, LIVE_LINE_BYTES, "GPU %-2" PRId64 " busy %6s  %s %6s%s  waste %7s%s  %s", row->kernel.id,
        cli_percent_text((double)row->total_ns / (double)sample->window_ns, busy, sizeof busy),
        measured ? "achieved" : "expected",
        cli_range_cell(measured ? row->achieved : row->expected_achieved_low,
                       measured ? row->achieved : row->expected_achieved_high, occupancy, sizeof occupancy),
        coverage,
        cli_amount_text(isnan(row->used) ? (double)NAN : row->waste_warp_seconds, waste, sizeof waste),
        row->kernel.simulated ? "  sim" : "", row->kernel.short_name ? row->kernel.short_name : "");
    occ_text_sanitise(line);
}

void live_causes_text(const struct live_sample *sample, char line[LIVE_LINE_BYTES])
{
    double all = 0;
    size_t used =
        (size_t)snprintf(line, LIVE_LINE_BYTES, "waste by main cause:%s", sample->causes.n ? "" : " -");
    for (size_t i = 0; i < sample->causes.n; i++)
        all += top_waste_of(&sample->causes.rows[i]);
    for (size_t i = 0; i < sample->causes.n && used < LIVE_LINE_BYTES - 64; i++) {
        const struct occ_top_row *row = &sample->causes.rows[i];
        char share[32];
        used += (size_t)snprintf(line + used, 64, "%s %.30s %s", i ? "," : "",
                                 row->kernel.short_name ? row->kernel.short_name : "none",
                                 cli_percent_text(top_waste_of(row) / all, share, sizeof share));
    }
    occ_text_sanitise(line);
}

void live_nothing_text(const struct live_sample *sample, const struct live_model *model,
                       char line[LIVE_LINE_BYTES])
{
    char window[32], age[96];
    (void)occ_format_duration(sample->window_ns, window, sizeof window);
    age_text(sample, age, sizeof age);
    line[0] = '\0';
    if (sample->err.code != 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "%.440s; waiting until it can be read", sample->err.message);
    else if (model->n == 0 && sample->kernels.n > 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "no kernel's name has '%s' in it", model->filter);
    else if (model->n == 0 && sample->missing_run != 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "%s ('occq runs' lists them); waits for it", age);
    else if (model->n == 0 && sample->newest_ns == 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "waits for the first launch: \"occtrace PROGRAM\" records one");
    else if (model->n == 0)
        (void)snprintf(line, LIVE_LINE_BYTES, "no launches in the last %s that match (%s); waits for more",
                       window, age);
    occ_text_sanitise(line);
}
