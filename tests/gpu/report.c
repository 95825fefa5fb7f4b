/* See report.h. One thread. */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 1024

enum { EXIT_SKIPPED = 77 };

/* Appends a fact at once, so that results before a crash are kept. Replaces tabs and line ends, which
 * separate fields and facts. */
static void say(const char *kind, const char *name, const char *text)
{
    char clean[TEXT_BYTES];
    const char *path = getenv("OCC_GPU_REPORT");
    FILE *file = path ? fopen(path, "ae") : NULL;
    (void)snprintf(clean, sizeof clean, "%s", text);
    for (char *c = clean; *c; c++)
        if (*c == '\t' || *c == '\n' || *c == '\r')
            *c = ' ';
    if (file) {
        (void)fprintf(file, "%s%s%s\t%s\n", kind, name ? "\t" : "", name ? name : "", clean);
        (void)fclose(file);
    }
    for (char *c = clean; *c; c++)
        if (*c == '\t')
            *c = ' ';
    (void)printf("  %-9s %s%s%s\n", kind, name ? name : "", name ? ": " : "", clean);
    (void)fflush(stdout);
}

__attribute__((format(printf, 3, 0))) static void print_formatted(const char *kind, const char *name,
                                                                  const char *format, va_list args)
{
    char text[TEXT_BYTES];
    (void)vsnprintf(text, sizeof text, format, args);
    say(kind, name, text);
}

bool gpu_report_quick(void)
{
    return getenv("OCC_GPU_QUICK") != NULL;
}

void gpu_report_expect(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_formatted("expected", NULL, format, args);
    va_end(args);
}

void gpu_report_value(const char *name, double value, const char *unit)
{
    char text[64];
    const char *path = getenv("OCC_GPU_REPORT");
    FILE *file = path ? fopen(path, "ae") : NULL;
    (void)snprintf(text, sizeof text, isfinite(value) ? "%.9g" : "-", value);
    if (file) {
        (void)fprintf(file, "value\t%s\t%s\t%s\n", name, text, unit);
        (void)fclose(file);
    }
    (void)printf("  %-9s %s: %s %s\n", "value", name, text, unit);
    (void)fflush(stdout);
}

void gpu_report_text(const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_formatted("text", name, format, args);
    va_end(args);
}

int gpu_report_decide(enum gpu_verdict verdict, const struct gpu_decisions *decisions, const char *format,
                      ...)
{
    static const char *const words[] = {
#define X(name, word) word,
        GPU_VERDICTS(X)
#undef X
    };
    char figures[TEXT_BYTES / 2], text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(figures, sizeof figures, format, args);
    va_end(args);
    (void)snprintf(text, sizeof text, "%s%s%s", decisions->of[verdict], figures[0] ? ": " : "", figures);
    say("verdict", NULL, words[verdict]);
    say("decision", NULL, text);
    return 0;
}

int gpu_report_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_formatted("skipped", NULL, format, args);
    va_end(args);
    return EXIT_SKIPPED;
}
