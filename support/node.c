/* See node.h. */
#include "node.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODE_CHARACTERS 253 /* of a DNS name */

static bool is_node_name(const char *text)
{
    size_t n = 0;
    while (text[n] > ' ' && text[n] <= '~' && n <= NODE_CHARACTERS)
        n++;
    return text[n] == '\0' && n > 0 && n <= NODE_CHARACTERS;
}

int occ_node_name(char name[OCC_NODE_NAME_BYTES], struct occ_error *err)
{
    const char *given = secure_getenv("OCCTRACE_NODE");
    memset(name, 0, OCC_NODE_NAME_BYTES);
    if (given && is_node_name(given)) {
        memcpy(name, given, strlen(given));
        return 0;
    }
    if (gethostname(name, OCC_NODE_NAME_BYTES - 1) == 0)
        return 0;
    int why = errno;
    name[0] = '\0';
    return occ_fail_errno(err, why, "cannot find out the host's name");
}
