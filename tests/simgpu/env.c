/*
 * Settings and faults from the environment. See env.h. Threads: any; the first caller reads, under
 * pthread_once.
 */
#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, NUMBER, INTEGER };

struct setting {
    const char *variable;
    enum kind kind;
    size_t offset;
    const char *standard;
    uint64_t smallest, largest;
};

static const struct setting settings[] = {
#define X(field, variable, kind, standard, smallest, largest, help)                                          \
    {variable, kind, offsetof(struct sim_env, field), standard, smallest, largest},
    SIM_SETTINGS(X)
#undef X
};

static const char *const fault_words[] = {
#define X(name, word, argument, text) word,
    SIM_FAULTS(X)
#undef X
};

static struct sim_env environment;
static int log_fd = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool read_number(const char *text, uint64_t smallest, uint64_t largest, uint64_t *ret_value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < smallest || value > largest)
        return false;
    *ret_value = value;
    return true;
}

/* Reads a number or, if the setting may be negative, an integer; *ret_value has its bits. */
static bool read_value(const struct setting *setting, const char *text, uint64_t *ret_value)
{
    bool negative = setting->kind == INTEGER && *text == '-';
    if (!read_number(text + negative, setting->smallest, setting->largest, ret_value))
        return false;
    if (negative)
        *ret_value = -*ret_value;
    return true;
}

static void read_setting(const struct setting *setting)
{
    char *field = (char *)&environment + setting->offset;
    const char *text = getenv(setting->variable);
    if (!text || !*text)
        text = setting->standard;
    if (setting->kind == TEXT) {
        memcpy(field, &text, sizeof text);
        return;
    }
    uint64_t value = 0;
    if (!read_value(setting, text, &value)) {
        sim_complain("%s=%s is not a number from %s%llu to %llu, %s is used", setting->variable, text,
                     setting->kind == INTEGER ? "-" : "",
                     (unsigned long long)(setting->kind == INTEGER ? setting->largest : setting->smallest),
                     (unsigned long long)setting->largest, setting->standard);
        read_number(setting->standard, 0, UINT64_MAX, &value);
    }
    memcpy(field, &value, sizeof value);
}

static void read_fault(const char *item)
{
    const char *colon = strchr(item, ':');
    size_t length = colon ? (size_t)(colon - item) : strlen(item);
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        if (strlen(fault_words[i]) != length || strncmp(fault_words[i], item, length) != 0)
            continue;
        if (colon && read_number(colon + 1, 1, UINT32_MAX, &environment.fault_argument[i]))
            return;
        break;
    }
    sim_complain("OCCSIM_FAULT: \"%s\" is not a fault with a number", item);
}

static void read_faults(void)
{
    char *copy = strdup(environment.fault), *rest = copy;
    for (char *item = strsep(&rest, ","); item; item = strsep(&rest, ",")) {
        if (*item)
            read_fault(item);
    }
    free(copy);
}

static void read_clock(void)
{
    static const char *const words[] = {"real", "ahead", "virtual"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(environment.clock, words[i]) == 0) {
            environment.clock_mode = (enum sim_clock_mode)i;
            return;
        }
    }
    sim_complain("OCCSIM_CLOCK=%s is not real, ahead or virtual; real is used", environment.clock);
}

static void open_log(void)
{
    const char *path = getenv("OCCSIM_LOG");
    if (!path || !*path)
        return;
    if (strcmp(path, "1") == 0 || strcmp(path, "stderr") == 0)
        log_fd = STDERR_FILENO;
    else
        log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

static void read_environment(void)
{
    open_log();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        read_setting(&settings[i]);
    read_clock();
    read_faults();
}

const struct sim_env *sim_env(void)
{
    pthread_once(&once, read_environment);
    return &environment;
}

uint64_t sim_fault(enum sim_fault fault)
{
    return sim_env()->fault_argument[fault];
}

/* Writes a line with a single write(2), so that lines of several threads and processes stay whole. */
__attribute__((format(printf, 2, 0))) static void put_line(int fd, const char *format, va_list arguments)
{
    int saved = errno;
    char line[1024] = "simgpu: ";
    size_t used = strlen(line);
    int n = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    if (n > 0) {
        used += (size_t)n < sizeof line - used - 1 ? (size_t)n : sizeof line - used - 2;
        line[used++] = '\n';
        if (write(fd, line, used) < 0)
            log_fd = -1;
    }
    errno = saved;
}

void sim_log(const char *format, ...)
{
    if (log_fd < 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    put_line(log_fd, format, arguments);
    va_end(arguments);
}

void sim_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line(log_fd >= 0 ? log_fd : STDERR_FILENO, format, arguments);
    va_end(arguments);
}
