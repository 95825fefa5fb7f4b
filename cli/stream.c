/* Destinations of a command's output; see stream.h. One thread at a time; the state is the process's. */
#include "stream.h"

static struct {
    FILE *out, *err; /* NULL: the process's own */
    size_t width;
} redirected;

FILE *cli_out(void)
{
    return redirected.out ? redirected.out : stdout;
}

FILE *cli_err(void)
{
    return redirected.err ? redirected.err : stderr;
}

void cli_redirect(FILE *out, FILE *err, size_t width)
{
    redirected.out = out;
    redirected.err = err;
    redirected.width = width;
}

bool cli_is_redirected(size_t *ret_width)
{
    *ret_width = redirected.width;
    return redirected.out != NULL;
}
