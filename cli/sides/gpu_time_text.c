/* The GPU time of two sides in words and as JSON; see gpu_time.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu_time.h"
#include "support/text.h"
#include "texts.h"

/* ---- parts ---- */

/* Parts that are no cause of lost occupancy. X(word, text, member of struct occ_gpu_time) */
#define TIMES(X)                                                                                             \
    X("launch_wait", "waiting for launches", launch_wait)                                                    \
    X("pause", "longer pauses", pause)                                                                       \
    X("communication", "communication", communication)                                                       \
    X("copies", "copies", copies)                                                                            \
    X("unknown", "kernels without a model", unknown)                                                         \
    X("used", "kernels, used", used)
#define COUNT_ONE(word, text, member) +1
enum { TIME_COUNT = 0 TIMES(COUNT_ONE) };

/* Returns the seconds of a share of the side's GPU time for the work of a run of A. */
static double seconds_of(const struct sides_gpu_time *t, uint32_t side, double share)
{
    double runs = isnan(t->work) || side == DIFF_A ? t->runs[side] : t->runs[DIFF_A] * t->work;
    return share * t->overview[side].time.window_s / runs;
}

double sides_gpu_time_seconds(const struct sides_gpu_time *time, uint32_t side)
{
    return seconds_of(time, side, 1);
}

static struct sides_gpu_part part_of(const struct sides_gpu_time *time, unsigned part)
{
#define WORD(word, text, member) word,
#define TEXT(word, text, member) text,
    static const char *const words[] = {TIMES(WORD)};
    static const char *const texts[] = {TIMES(TEXT)};
    bool is_time = part < TIME_COUNT;
    struct sides_gpu_part p = {.word = is_time ? words[part] : occ_part_word(part - TIME_COUNT),
                               .text = is_time ? texts[part] : occ_part_text(part - TIME_COUNT, 1),
                               .is_lost = !is_time};
    bool has_losses = time->overview[DIFF_A].lost > 0 || time->overview[DIFF_B].lost > 0;
    if (has_losses && strcmp(p.word, "pause") == 0)
        p.text = "pauses or lost launches";
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        const struct occ_gpu_time *t = &time->overview[side].time;
#define SHARE(word, text, member) t->member,
        const double shares[] = {TIMES(SHARE)};
        p.seconds[side] = seconds_of(time, side, is_time ? shares[part] : t->lost[part - TIME_COUNT]);
    }
    return p;
}

struct sides_gpu_part sides_gpu_time_part(const struct sides_gpu_time *time)
{
    bool shrank = time->change.change <= -SIDES_GPU_PART_MIN;
    double most = SIDES_GPU_PART_MIN * sides_gpu_time_seconds(time, DIFF_A);
    struct sides_gpu_part ret = {.word = NULL};
    for (unsigned i = 0; i < TIME_COUNT + OCC_PART_COUNT && !isnan(time->work); i++) {
        struct sides_gpu_part part = part_of(time, i);
        double grew = part.seconds[DIFF_B] - part.seconds[DIFF_A], change = shrank ? -grew : grew;
        if (!(change >= most))
            continue;
        most = change;
        ret = part;
        ret.shrank = shrank;
    }
    return ret;
}

/* ---- text ---- */

static double busy_of(const struct sides_gpu_time *time, uint32_t side)
{
    return time->overview[side].time.communication + time->overview[side].time.kernels;
}

static void add_seconds(const char *before, const double seconds[DIFF_SIDES], char *text)
{
    char from[32], to[32];
    occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "%s%s -> %s", before,
                    diff_duration_text(seconds[DIFF_A] * 1e9, from),
                    diff_duration_text(seconds[DIFF_B] * 1e9, to));
}

/* Appends "+100.0% for the same work (95 %: ...) within these runs; ". */
static void add_change(const struct sides_gpu_time *time, double floor, char *text)
{
    struct diff_gpu_time_verdict v = diff_judge_gpu_time(&time->change, floor);
    char change[16], low[16], high[16];
    if (isnan(time->change.change)) {
        occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "the work of the sides is not known; ");
        return;
    }
    occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "%s for the same work",
                    diff_change_text(v.ratio.ratio - 1, change));
    if (!isnan(v.ratio.low))
        occ_text_append(text, SIDES_GPU_TIME_BYTES, "", " (95 %%: %s to %s)",
                        diff_change_text(v.ratio.low - 1, low), diff_change_text(v.ratio.high - 1, high));
    if (v.verdict == DIFF_SAME && fabs(v.ratio.ratio - 1) >= SIDES_SMALL_CHANGE)
        occ_text_append(text, SIDES_GPU_TIME_BYTES, "", ", within the floor of %.3g %%", 100 * floor);
    if (!time->by_runs && (v.verdict == DIFF_WORSE || v.verdict == DIFF_BETTER))
        occ_text_append(text, SIDES_GPU_TIME_BYTES, "", " within these runs");
    occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "; ");
}

const char *sides_gpu_time_text(const struct sides_gpu_time *time, double floor,
                                char text[SIDES_GPU_TIME_BYTES])
{
    const double seconds[] = {sides_gpu_time_seconds(time, DIFF_A), sides_gpu_time_seconds(time, DIFF_B)};
    struct sides_gpu_part part = sides_gpu_time_part(time);
    text[0] = '\0';
    if (!time->is_known)
        return text;
    add_change(time, floor, text);
    add_seconds("", seconds, text);
    occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "%s; busy %.1f%% -> %.1f%%",
                    time->runs[DIFF_A] > 1 || time->runs[DIFF_B] > 1 ? " a run" : "",
                    100 * busy_of(time, DIFF_A), 100 * busy_of(time, DIFF_B));
    if (part.text) {
        occ_text_append(text, SIDES_GPU_TIME_BYTES, "", "; %s most: %s%s", part.shrank ? "shrank" : "grew",
                        part.is_lost ? "kernels, " : "", part.text);
        add_seconds(" ", part.seconds, text);
    }
    return text;
}

/* ---- JSON ---- */

static void put_part(struct occ_json *json, const struct sides_gpu_time *time)
{
    struct sides_gpu_part part = sides_gpu_time_part(time);
    if (!part.word) {
        occ_json_null(json, "changed_most");
        return;
    }
    occ_json_object(json, "changed_most", false);
    occ_json_string(json, "part", part.word);
    occ_json_string(json, "text", part.text);
    occ_json_real(json, "same_work_s_a", part.seconds[DIFF_A]);
    occ_json_real(json, "same_work_s_b", part.seconds[DIFF_B]);
    occ_json_close(json);
}

void sides_gpu_time_json(struct occ_json *json, const char *key, const struct sides_gpu_time *time,
                         double floor)
{
    struct diff_gpu_time_verdict v = diff_judge_gpu_time(&time->change, floor);
    if (!time->is_known) {
        occ_json_null(json, key);
        return;
    }
    occ_json_object(json, key, false);
    occ_json_string(json, "verdict", diff_verdict_word(v.verdict));
    occ_json_real(json, "change_ratio", v.ratio.ratio - 1);
    occ_json_real(json, "change_low_ci95_ratio", v.ratio.low - 1);
    occ_json_real(json, "change_high_ci95_ratio", v.ratio.high - 1);
    occ_json_real(json, "false_verdict_chance", v.ratio.p);
    occ_json_string(json, "replicates", time->by_runs ? "runs" : "slices");
    occ_json_real(json, "work_ratio", time->work * time->runs[DIFF_A] / time->runs[DIFF_B]);
    occ_json_real(json, "same_work_s_a",
                  isnan(time->work) ? (double)NAN : sides_gpu_time_seconds(time, DIFF_A));
    occ_json_real(json, "same_work_s_b",
                  isnan(time->work) ? (double)NAN : sides_gpu_time_seconds(time, DIFF_B));
    put_part(json, time);
    occ_gpu_time_json(json, "a", &time->overview[DIFF_A]);
    occ_gpu_time_json(json, "b", &time->overview[DIFF_B]);
    occ_json_close(json);
}
