/* The line about the daemon that writes the history; see query.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/daemon.h"
#include "query.h"
#include "support/clock.h"
#include "support/control.h"
#include "support/text.h"

enum { PATIENCE_MS = 200 }; /* limit for one answer, and for the search of the history */

/* Gets the daemon's answer about the history. Returns false if the daemon does not write it, or does not
 * report it to this user. */
static bool find_history(int fd, const struct stat *history, char *answer)
{
    int64_t until_ns = occ_monotonic_ns() + PATIENCE_MS * INT64_C(1000000);
    for (unsigned i = 0; occ_monotonic_ns() < until_ns; i++) {
        char request[32];
        struct stat st;
        (void)snprintf(request, sizeof request, "history %u", i);
        if (occ_control_request(fd, request, PATIENCE_MS, answer, OCC_CONTROL_BYTES + 1, NULL) != 0)
            return false;
        _cleanup_(occ_freep) char *path = occ_control_value(answer, "database");
        if (!path)
            return false;
        if (stat(path, &st) == 0 && st.st_ino == history->st_ino && st.st_dev == history->st_dev)
            return true;
    }
    return false;
}

/* Adds up the losses of all causes. */
static double sum_losses(const char *answer)
{
    double sum = 0, lost = 0;
    for (const char *line = answer; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "lost_%*s %lf", &lost) == 1)
            sum += lost;
    return sum;
}

void live_ask_daemon(const char *history, char line[LIVE_LINE_BYTES])
{
    static const struct {
        const char *key, *before, *after;
    } texts[] = {{"state", " ", ""}, {"reason", " (", ")"}, {"programs", "  programs ", ""}};
    _cleanup_(occ_closep) int fd = -1;
    char answer[OCC_CONTROL_BYTES + 1];
    struct stat st;
    line[0] = '\0';
    if (stat(history, &st) != 0 || connect_daemon(NULL, &fd, NULL) != 0 || !find_history(fd, &st, answer))
        return;
    (void)snprintf(line, LIVE_LINE_BYTES, "daemon");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        _cleanup_(occ_freep) char *value = occ_control_value(answer, texts[i].key);
        if (value)
            occ_text_append(line, LIVE_LINE_BYTES, texts[i].before, "%.100s%s", value, texts[i].after);
    }
    occ_text_append(line, LIVE_LINE_BYTES, "  ", "lost %.15g", sum_losses(answer));
    if (occ_control_request(fd, "sampler 0", PATIENCE_MS, answer, sizeof answer, NULL) == 0) {
        _cleanup_(occ_freep) char *value = occ_control_value(answer, "paused_s");
        if (value && strcmp(value, "0") != 0)
            occ_text_append(line, LIVE_LINE_BYTES, "  ", "counters paused for %.20s s", value);
    }
    occ_text_sanitise(line);
}
