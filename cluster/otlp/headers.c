/* See headers.h. */
#include "headers.h"

#include <string.h>
#include <strings.h>

#include "cluster/ask/warehouse.h"

/* RFC 9110: letters of a field's name */
static const char name_letters[] =
    "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Headers that the request sets itself; the file must not have them. */
static const char *const taken[] = {
    "content-type", "content-encoding", "content-length", "transfer-encoding", "host", "expect"};

static const char *mistake_in(const char *line)
{
    size_t n = strspn(line, name_letters);
    if (n == 0 || line[n] != ':')
        return "is not NAME: VALUE";
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strlen(taken[i]) == n && strncasecmp(line, taken[i], n) == 0)
            return "is a header that the request sets itself";
    if (line[n + 1 + strspn(line + n + 1, " \t")] == '\0')
        return "has no value";
    for (const char *at = line + n; *at; at++)
        if ((*at < ' ' && *at != '\t') || *at == 0x7f)
            return "has a control character";
    return NULL;
}

int occ_otlp_headers_split(struct occ_otlp_headers *headers, struct occ_error *err)
{
    size_t n = 0, number = 0;
    for (char *line = headers->text; line;) {
        char *end = strchr(line, '\n');
        number++;
        if (end)
            *end++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        const char *mistake = line[0] == '\0' || line[0] == '#' ? NULL : mistake_in(line);
        if (!mistake && line[0] != '\0' && line[0] != '#') {
            if (n == OCC_OTLP_HEADERS_MAX)
                return occ_fail(err, OCC_E_INVALID, "more than %d headers", OCC_OTLP_HEADERS_MAX);
            headers->lines[n++] = line;
        }
        if (mistake)
            return occ_fail(err, OCC_E_INVALID, "line %zu %s", number, mistake);
        line = end;
    }
    headers->lines[n] = NULL;
    return 0;
}

int occ_otlp_headers_read(const char *path, struct occ_otlp_headers *ret_headers, struct occ_error *err)
{
    size_t n = 0;
    int rc = occ_warehouse_read_private(path, "header", ret_headers->text, sizeof ret_headers->text, &n, err);
    if (rc == 0 && n == sizeof ret_headers->text - 1)
        rc = occ_fail(err, OCC_E_INVALID, "%s: longer than %zu bytes", path, sizeof ret_headers->text - 2);
    if (rc != 0)
        return rc;
    rc = occ_otlp_headers_split(ret_headers, err);
    return rc == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
