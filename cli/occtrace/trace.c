/* Requests to a daemon, shared by occtrace's files; see trace.h. One thread. */
#include "trace.h"

#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"

enum { STATUS_PATIENCE_MS = 500 };

int trace_ask_daemon(const struct trace *trace, const char *request, int patience_ms, char *answer,
                     size_t size, struct occ_error *err)
{
    _cleanup_(occ_closep) int fd = -1;
    int status = trace->options->socket ? occ_control_connect(trace->socket, &fd, err)
                                        : occ_path_connect(trace->socket, &fd, err);
    return status == 0 ? occ_control_request(fd, request, patience_ms, answer, size, err) : status;
}

char *trace_daemon_value(const struct trace *trace, const char *key)
{
    char answer[OCC_CONTROL_BYTES + 1];
    if (trace_ask_daemon(trace, "status", STATUS_PATIENCE_MS, answer, sizeof answer, NULL) != 0)
        return NULL;
    return occ_control_value(answer, key);
}
