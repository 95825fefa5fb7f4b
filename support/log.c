/* Log lines: formatted on the stack, written with one write(2). May be entered from any thread. */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const int priorities[] = {3, 4, 6, 7}; /* syslog(3) */
static const char *program_name = "occtrace";
static enum occ_log_level threshold = OCC_LOG_WARNING;
static bool has_priorities;

/* journald takes "<N>" before a line as its priority. */
static bool goes_to_journal(void)
{
    const char *stream = secure_getenv("JOURNAL_STREAM");
    unsigned long long dev = 0, ino = 0;
    struct stat status;
    return stream && sscanf(stream, "%20llu:%20llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &status) == 0 &&
           status.st_dev == dev && status.st_ino == ino;
}

void occ_log_init(const char *program)
{
    program_name = program;
    has_priorities = goes_to_journal();
    const char *wanted = getenv("OCCTRACE_LOG");
    for (size_t i = 0; wanted && i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            threshold = (enum occ_log_level)i;
}

void occ_log_set_level(enum occ_log_level level)
{
    threshold = level;
}

void occ_log(enum occ_log_level level, const char *format, ...)
{
    if (level > threshold)
        return;
    char line[1024];
    int used = has_priorities ? snprintf(line, sizeof line, "<%d>", priorities[level])
                              : snprintf(line, sizeof line, "%s: %s: ", program_name, level_names[level]);
    if (used < 0)
        return;
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    size_t length = (size_t)used + (more < 0 ? 0 : (size_t)more);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length] = '\0';
    occ_text_sanitise(line); /* SQLite's messages quote the contents of damaged files */
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* a closed stderr has no remedy */
}
