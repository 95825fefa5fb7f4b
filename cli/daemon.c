/* See daemon.h. */
#include "daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"

char *socket_of_process(int32_t pid)
{
    static const char name[] = "OCCTRACE_SOCKET=";
    char path[64];
    char *variable = NULL, *found = NULL;
    size_t allocated = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
    _cleanup_(occ_fclosep) FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&variable, &allocated, '\0', file) > 0)
        if (strncmp(variable, name, sizeof name - 1) == 0)
            found = strdup(variable + sizeof name - 1);
    free(variable);
    return found;
}

int connect_daemon(const char *socket, int *ret_fd, struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    if (socket)
        return occ_control_connect(socket, ret_fd, err);
    int status = occ_path_connect_default(ret_fd, &why);
    if (status == OCC_E_NOT_FOUND)
        return occ_fail(err, status, "%s (\"occtraced --counters auto\" starts one)", why.message);
    if (status != 0 && err)
        *err = why;
    return status;
}
