/* What occtrace's files share: notes, texts, requests to a daemon; see trace.h. One thread. */
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/control.h"
#include "support/text.h"

enum { STATUS_PATIENCE_MS = 500, LINE_BYTES = OCC_ERROR_MESSAGE_BYTES + 64 };

void trace_note(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    occ_text_sanitise(line);
    (void)fprintf(stderr, "occtrace: %s\n", line);
}

int trace_ask_daemon(const char *socket, const char *request, int patience_ms, char *answer, size_t size,
                     struct occ_error *err)
{
    _cleanup_(occ_closep) int fd = -1;
    int status = occ_control_connect(socket, &fd, err);
    return status == 0 ? occ_control_request(fd, request, patience_ms, answer, size, err) : status;
}

char *trace_daemon_value(const char *socket, const char *key)
{
    char answer[OCC_CONTROL_BYTES + 1];
    size_t length = strlen(key);
    if (trace_ask_daemon(socket, "status", STATUS_PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return NULL;
    for (const char *line = answer; *line;) {
        size_t end = strcspn(line, "\n");
        if (end > length && strncmp(line, key, length) == 0 && line[length] == ' ')
            return strndup(line + length + 1, end - length - 1);
        line += end + (line[end] == '\n');
    }
    return NULL;
}
