/* The warehouse's answers: see warehouse.h. */
#include "warehouse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

#define SQL_BYTES 1024

int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err)
{
    struct occ_warehouse *w = calloc(1, sizeof *w);
    if (!w)
        return occ_no_memory(err);
    w->options = *options;
    (void)snprintf(w->password, sizeof w->password, "%s", options->http.password);
    int rc = occ_http_open(&w->options.http, &w->http, err);
    if (rc != 0) {
        free(w);
        return occ_error_prefix(err, "%s", options->url_of);
    }
    *ret_warehouse = w;
    return 0;
}

void occ_warehouse_close(struct occ_warehouse *w)
{
    if (!w)
        return;
    occ_http_close(w->http);
    free(w->answer.text);
    free(w);
}

bool occ_warehouse_needs_help(int code)
{
    return code != OCC_E_IO && code != OCC_E_BUSY && code != OCC_E_NO_MEMORY && code != OCC_E_FULL;
}

/* ---- answers ---- */

/* ClickHouse's exceptions with another meaning than "try later". `of_user`: text after "SECTION.user". */
static const struct {
    int exception, code;
    bool of_user;
    const char *advice;
} exceptions[] = {
    {81, OCC_E_NOT_FOUND, false, "there is no such database: make it with occtrace-ship --init"},
    {60, OCC_E_NOT_FOUND, false, "there is no such table: make it with occtrace-ship --init"},
    {16, OCC_E_INVALID, false, "a table of that name is not occtrace's"},
    {47, OCC_E_INVALID, false, "a table of that name is not occtrace's"},
    {53, OCC_E_INVALID, false, "a table of that name is not occtrace's"},
    {27, OCC_E_INVALID, false, "a value is none of its column's type"},
    {69, OCC_E_INVALID, false, "a value is none of its column's type"},
    {72, OCC_E_INVALID, false, "a value is none of its column's type"},
    {117, OCC_E_INVALID, false, "a value is none of its column's type"},
    {376, OCC_E_INVALID, false, "a value is none of its column's type"},
    {497, OCC_E_DENIED, true, "lacks a right"},
    {164, OCC_E_DENIED, true, "may only read"},
    {192, OCC_E_DENIED, true, "is unknown there"},
    {193, OCC_E_DENIED, true, "or its password is wrong"},
    {194, OCC_E_DENIED, true, "needs a password: password_file"},
    {516, OCC_E_DENIED, true, "or its password is wrong"},
};

/* Finds an exception: "Code: 60, e.displayText() = ..." or "Code: 60. DB::Exception: ...", on a line of its
 * own. An answer that began normally may end with an exception. */
static const char *find_exception(const char *text)
{
    static const char begin[] = "\nCode: ";
    const char *line = strncmp(text, begin + 1, strlen(begin) - 1) == 0 ? text : strstr(text, begin);
    return line ? strstr(line, begin + 1) : NULL;
}

int occ_warehouse_exception(const struct occ_warehouse *w)
{
    const char *at = find_exception(w->answer.text);
    return at ? atoi(at + strlen("Code: ")) : 0;
}

static int fail_status(const struct occ_warehouse *w, int exception, struct occ_error *err)
{
    char reason[160];
    long status = w->answer.status;
    const char *found = find_exception(w->answer.text);
    (void)snprintf(reason, sizeof reason, "%s", found ? found : w->answer.text);
    reason[strcspn(reason, "\r\n")] = '\0';
    occ_text_sanitise(reason);
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (exceptions[i].exception == exception)
            return occ_fail(err, exceptions[i].code, "%s: %s%s%s (%s)", w->options.http.url,
                            exceptions[i].of_user ? w->options.section : "",
                            exceptions[i].of_user ? ".user " : "", exceptions[i].advice, reason);
    if (status == 401 || status == 403)
        return occ_fail(err, OCC_E_DENIED, "%s: %s.user or its password is wrong (HTTP %ld)",
                        w->options.http.url, w->options.section, status);
    if (status >= 300 && status < 400)
        return occ_fail(err, OCC_E_INVALID,
                        "%s: redirects elsewhere, which is not followed: name the server itself",
                        w->options.http.url);
    return occ_fail(err, OCC_E_BUSY, "%s: HTTP %ld: %s", w->options.http.url, status, reason);
}

int occ_warehouse_post(struct occ_warehouse *w, const char *data, size_t n, struct occ_error *err)
{
    int rc = occ_http_post(w->http, data, n, &w->answer, err);
    w->has_no_answer = rc != 0;
    if (rc != 0)
        return rc;
    int exception = occ_warehouse_exception(w);
    return w->answer.status == 200 && exception == 0 ? 0 : fail_status(w, exception, err);
}

int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err)
{
    return occ_warehouse_post(w, sql, strlen(sql), err);
}

/* Reads `n` numbers separated by tabs, and `end`. Returns the position after them, or NULL: another text. */
static const char *read_numbers(const char *at, char end, uint64_t *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        char *after = NULL;
        if (*at < '0' || *at > '9')
            return NULL;
        numbers[i] = strtoull(at, &after, 10);
        if (*after != (i + 1 < n ? '\t' : end))
            return NULL;
        at = after + 1;
    }
    return at;
}

int occ_warehouse_ask_numbers(struct occ_warehouse *w, const char *sql, uint64_t *ret_numbers, int n,
                              struct occ_error *err)
{
    int rc = occ_warehouse_ask(w, sql, err);
    if (rc != 0)
        return rc;
    const char *end = read_numbers(w->answer.text, '\n', ret_numbers, n);
    w->has_no_answer = !end || *end;
    return w->has_no_answer ? occ_fail(err, OCC_E_IO, "%s: the answer is not whole, or none of ClickHouse's",
                                       w->options.http.url)
                            : 0;
}

void occ_warehouse_quote(const char *text, char *out, size_t size)
{
    enum { END_BYTES = 2 }; /* quote and NUL */
    size_t n = 0;
    out[n++] = '\'';
    for (; *text; text++) {
        bool is_escaped = *text == '\'' || *text == '\\';
        if (n + (is_escaped ? 2 : 1) + END_BYTES > size)
            break;
        if (is_escaped)
            out[n++] = '\\';
        out[n++] = *text;
    }
    out[n++] = '\'';
    out[n] = '\0';
}

/* ---- the server ---- */

/* Returns true if the password's file has another password than the one that was refused. */
static bool renew_password(struct occ_warehouse *w)
{
    char password[OCC_WAREHOUSE_PASSWORD_BYTES];
    if (!w->options.password_file ||
        occ_warehouse_read_secret(w->options.password_file, password, sizeof password, NULL) != 0 ||
        strcmp(password, w->password) == 0 || occ_http_set_password(w->http, password, NULL) != 0)
        return false;
    memcpy(w->password, password, sizeof password);
    return true;
}

int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err)
{
    static const char sql[] = "SELECT toUnixTimestamp(now()), version()";
    int64_t began_ns = occ_now_ns();
    w->version[0] = '\0';
    int rc = occ_warehouse_ask(w, sql, err);
    if (rc == OCC_E_DENIED && renew_password(w)) {
        began_ns = occ_now_ns();
        rc = occ_warehouse_ask(w, sql, err);
    }
    int64_t middle_ms = (began_ns / 2 + occ_now_ns() / 2) / 1000000;
    if (rc != 0)
        return rc;
    uint64_t server_s = 0;
    const char *version = read_numbers(w->answer.text, '\t', &server_s, 1);
    unsigned int major = 0, minor = 0;
    if (version && strchr(version, '\n'))
        (void)snprintf(w->version, sizeof w->version, "%.*s", (int)strcspn(version, "\r\n"), version);
    if (server_s == 0 || server_s > UINT32_MAX || sscanf(w->version, "%u.%u", &major, &minor) != 2)
        return occ_fail(err, OCC_E_VERSION, "%s: does not answer as ClickHouse does", w->options.http.url);
    occ_text_sanitise(w->version);
    if (major < 18 || (major == 18 && minor < 16))
        return occ_fail(err, OCC_E_VERSION, "%s: ClickHouse %s is too old; 18.16 or later is needed",
                        w->options.http.url, w->version);
    /* 21.11 introduced async_insert */
    w->dialect = major > 21 || (major == 21 && minor >= 11) ? OCC_DIALECT_NEW : OCC_DIALECT_OLD;
    w->clock_offset_ms = middle_ms - (int64_t)server_s * 1000 - 500;
    return 0;
}

/* ---- the password ---- */

int occ_warehouse_read_private(const char *path, const char *content, char *text, size_t size, size_t *ret_n,
                               struct occ_error *err)
{
    struct stat status;
    _cleanup_(occ_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return occ_fail_errno(err, errno, "cannot read the %s in %s", content, path);
    if (status.st_mode & S_IRWXO)
        return occ_fail(err, OCC_E_INVALID, "%s: a %s that every user may read is not used: chmod o= it",
                        path, content);
    ssize_t n = read(fd, text, size - 1);
    if (n < 0)
        return occ_fail_errno(err, errno, "cannot read the %s in %s", content, path);
    text[n] = '\0';
    *ret_n = (size_t)n;
    return 0;
}

int occ_warehouse_read_secret(const char *path, char *secret, size_t size, struct occ_error *err)
{
    size_t n = 0;
    int rc = occ_warehouse_read_private(path, "password", secret, size, &n, err);
    if (rc == 0)
        secret[strcspn(secret, "\r\n")] = '\0';
    return rc;
}
