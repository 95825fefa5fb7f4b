/* The terminal and the pager; see screen.h. One thread; the state is the process's. */
#include "screen.h"

#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fit.h"
#include "stream.h"
#include "support/cleanup.h"
#include "support/cut.h"
#include "support/text.h"

static struct {
    bool is_known, is_terminal, has_colour;
    size_t width;
    pid_t pager; /* 0: none */
} screen;

static void look(const char *colour)
{
    const char *no_colour = getenv("NO_COLOR"), *type = getenv("TERM"), *columns = getenv("COLUMNS");
    struct winsize size = {0};
    uint64_t width = 0;
    screen.is_known = true;
    if (cli_is_redirected(&screen.width)) {
        screen.is_terminal = screen.has_colour = false;
        return;
    }
    screen.is_terminal = isatty(STDOUT_FILENO) != 0;
    bool may_colour = screen.is_terminal && !(no_colour && no_colour[0]) && type && strcmp(type, "dumb") != 0;
    screen.has_colour = strcmp(colour, "auto") == 0 ? may_colour : strcmp(colour, "always") == 0;
    if (columns && occ_parse_u64(columns, 1, 10000, &width, NULL) == 0)
        screen.width = width;
    else if (screen.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        screen.width = size.ws_col;
}

size_t cli_screen_width(void)
{
    if (!screen.is_known)
        look("auto");
    return screen.width;
}

bool cli_screen_has_colour(void)
{
    if (!screen.is_known)
        look("auto");
    return screen.has_colour;
}

void cli_put_word(FILE *out, enum cli_tone tone, const char *word, int width)
{
    static const char *const colours[CLI_TONES] = {
        [CLI_TONE_BAD] = "\x1b[1;31m", [CLI_TONE_GOOD] = "\x1b[1;32m", [CLI_TONE_UNSURE] = "\x1b[2m"};
    bool has_colour = cli_screen_has_colour() && colours[tone];
    int rest = width - (int)strlen(word);
    (void)fprintf(out, "%s%s%s%*s", has_colour ? colours[tone] : "", word, has_colour ? "\x1b[0m" : "",
                  rest > 0 ? rest : 0, "");
}

/* ---- text ---- */

static bool lost_text;
static char *begun; /* an incomplete line of cli_print() */

void cli_screen_lose_text(void)
{
    lost_text = true;
}

bool cli_screen_lost_text(void)
{
    return lost_text;
}

const char *cli_screen_ellipsis(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? OCC_ELLIPSIS : OCC_ASCII_ELLIPSIS;
}

const char *cli_screen_times(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? " \xc3\x97 " : " x ";
}

char *cli_screen_text(const char *text)
{
    char *copy = strdup(text), *out = copy;
    if (!copy)
        return NULL;
    occ_text_sanitise(copy);
    if (cli_screen_ellipsis()[0] != '.')
        return copy;
    for (const char *at = copy; *at; out++) { /* ".." is shorter than the ellipsis */
        bool replace = strncmp(at, OCC_ELLIPSIS, sizeof OCC_ELLIPSIS - 1) == 0;
        *out = replace ? '.' : *at;
        if (replace)
            *++out = '.';
        at += replace ? sizeof OCC_ELLIPSIS - 1 : 1;
    }
    *out = '\0';
    return copy;
}

void cli_put_line(FILE *out, const char *line, size_t limit)
{
    size_t column = strspn(line, " "), indent = column + 2;
    if (limit <= indent || cli_text_width(line) <= limit) {
        (void)fprintf(out, "%s\n", line);
        return;
    }
    (void)fprintf(out, "%*s", (int)column, "");
    for (line += column; *line;) {
        size_t blanks = strspn(line, " "), length = blanks + strcspn(line + blanks, " ");
        _cleanup_(occ_freep) char *word = strndup(line, length);
        lost_text |= !word;
        size_t width = word ? cli_text_width(word) : 0;
        bool wraps = column + width > limit && column > indent;
        if (wraps)
            (void)fprintf(out, "\n%*s", (int)indent, "");
        (void)fputs(word ? word + (wraps ? blanks : 0) : "", out);
        column = wraps ? indent + width - blanks : column + width;
        line += length;
    }
    (void)fputc('\n', out);
}

void cli_print(const char *format, ...)
{
    char *text = NULL, *all = NULL, *rest;
    va_list arguments;
    va_start(arguments, format);
    int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0 || asprintf(&all, "%s%s", begun ? begun : "", text) < 0) {
        lost_text = true;
    } else {
        for (rest = all; strchr(rest, '\n');)
            cli_put_line(cli_out(), strsep(&rest, "\n"), cli_screen_width());
        free(begun);
        begun = *rest ? strdup(rest) : NULL;
        lost_text |= *rest && !begun;
        free(all);
    }
    free(n >= 0 ? text : NULL);
}

/* ---- the pager ---- */

static bool has_less(void)
{
    char path[4096], *rest = path;
    (void)snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
    for (const char *directory; (directory = strsep(&rest, ":"));) {
        char file[4200];
        (void)snprintf(file, sizeof file, "%s/less", directory);
        if (directory[0] && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* Returns NULL for no pager. */
static const char *pager_command(void)
{
    const char *command = getenv("OCC_PAGER");
    if (!command)
        command = getenv("PAGER");
    if (!command)
        command = has_less() ? "less" : "";
    return command[0] && strcmp(command, "cat") != 0 ? command : NULL;
}

_Noreturn static void run_pager(const char *command, int fd)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(fd, STDIN_FILENO);
    (void)setenv("LESS", "FRX", 0);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Closes the output, so that the pager ends, and waits for the pager. */
static void wait_for_pager(void)
{
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    while (waitpid(screen.pager, NULL, 0) < 0)
        if (kill(screen.pager, 0) != 0)
            break;
}

/* Waits for the pager on a signal; otherwise the shell would print its prompt while the pager still runs. */
static void on_signal(int number)
{
    wait_for_pager();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void start_pager(const char *command)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    (void)fflush(NULL);
    screen.pager = fork();
    if (screen.pager == 0)
        run_pager(command, ends[0]);
    if (screen.pager > 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        if (isatty(STDERR_FILENO))
            (void)dup2(ends[1], STDERR_FILENO);
        (void)signal(SIGINT, on_signal);
        (void)signal(SIGTERM, on_signal);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

void cli_screen_begin(const char *colour, bool pager)
{
    lost_text = false;
    free(begun);
    begun = NULL;
    look(colour);
    const char *command = pager && screen.is_terminal ? pager_command() : NULL;
    if (command)
        start_pager(command);
}

void cli_screen_end(void)
{
    if (screen.pager > 0)
        wait_for_pager();
    screen.pager = 0;
}
