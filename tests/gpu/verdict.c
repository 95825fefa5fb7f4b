/* See verdict.h. */
#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stop.h"

void gpu_check(struct gpu_checks *checks, bool holds, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *(holds ? &checks->held : &checks->failed) += 1;
    gpu_report_text(holds ? "holds" : "does not hold", "%s", text);
}

enum gpu_verdict gpu_checks_verdict(const struct gpu_checks *checks)
{
    if (checks->failed)
        return GPU_REFUTED;
    return checks->held ? GPU_CONFIRMED : GPU_UNCLEAR;
}

int gpu_cannot(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!gpu_stopped())
        return gpu_report_skip("%s", text);
    gpu_report_text("ended by a signal", "%s", text);
    return 1;
}

int gpu_cannot_sample(const char *what, const struct gpu_sampled *seen)
{
    if (gpu_stopped() || strcmp(seen->state, GPU_SAMPLED_DIED) != 0)
        return gpu_cannot("%s: %s: %s", what, seen->state, seen->why);
    gpu_report_text(what, "the process that samples ended with %d; its last words: %s", seen->exit_code,
                    seen->why);
    return 1;
}

void gpu_report_value_of(const char *prefix, const char *name, double value, const char *unit)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%s.%s", prefix, name);
    gpu_report_value(key, value, unit);
}

void gpu_report_sampled(const char *prefix, const struct gpu_sampled *seen)
{
    const struct {
        const char *name, *unit;
        double value;
    } values[] = {
        {"achieved", "ratio", seen->achieved},   {"elapsed", "ratio", seen->elapsed},
        {"sm_active", "ratio", seen->sm_active}, {"blocks", "blocks/SM", seen->blocks},
        {"samples", "", seen->samples},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gpu_report_value_of(prefix, values[i].name, values[i].value, values[i].unit);
}

bool gpu_is_near(double value, double expected, double tolerance)
{
    return fabs(value - expected) <= tolerance;
}
