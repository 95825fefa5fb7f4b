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
    size_t n = 0;
    out[n++] = '\'';
    for (; *text && n + 4 < size; text++) {
        if (*text == '\'' || *text == '\\')
            out[n++] = '\\';
        out[n++] = *text;
    }
    out[n++] = '\'';
    out[n] = '\0';
}

/* ---- the server ---- */

int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err)
{
    int64_t began_ns = occ_now_ns();
    w->version[0] = '\0';
    int rc = occ_warehouse_ask(w, "SELECT toUnixTimestamp(now()), version()", err);
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

/* ---- existing tables ---- */

#define ALL     (OCC_FOR_QUESTIONS | OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE)
#define WRITERS (OCC_FOR_SHIPPING | OCC_FOR_MAINTENANCE)

/* Tables and views, and the purposes that need them; the first is schema_version. */
static const struct {
    const char *name;
    unsigned int needed;
} tables[] = {{"schema_version", ALL},
              {"kernel", ALL},
              {"launch_config", ALL},
              {"run", ALL},
              {"minute", ALL},
              {"rank_minute", ALL},
              {"launch", ALL},
              {"allocation", ALL},
              {"watermark", ALL},
              {"batch", OCC_FOR_SHIPPING},
              {"batch_of_kernel", OCC_FOR_SHIPPING},
              {"batch_of_launch_config", OCC_FOR_SHIPPING},
              {"batch_of_run", OCC_FOR_SHIPPING},
              {"batch_of_minute", OCC_FOR_SHIPPING},
              {"batch_of_rank_minute", OCC_FOR_SHIPPING},
              {"batch_of_launch", OCC_FOR_SHIPPING},
              {"hour", OCC_FOR_MAINTENANCE},
              {"hour_change", WRITERS},
              {"hour_change_of_minute", WRITERS},
              {"hour_done", OCC_FOR_MAINTENANCE},
              {"reader", OCC_FOR_MAINTENANCE}};
#define TABLES (sizeof tables / sizeof *tables)

int occ_warehouse_find_tables(struct occ_warehouse *w, uint64_t *ret_there, uint64_t *ret_others,
                              struct occ_error *err)
{
    char sql[3 * SQL_BYTES], names[SQL_BYTES] = "";
    uint64_t masks[3] = {0};
    for (size_t i = 0; i < TABLES; i++)
        occ_text_append(names, sizeof names, ", ", "'%s'", tables[i].name);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT groupBitOr(bit), groupBitOrIf(bit, NOT ours), countIf(engine = 'Distributed') FROM (SELECT "
        "toUInt64(bitShiftLeft(toUInt64(1), "
        "toUInt8(indexOf([%s], name) - 1))) AS bit, engine, engine = 'Distributed' OR multiIf(name = "
        "'batch', "
        "engine LIKE '%%MergeTree', position(name, '_of_') > 0, engine = 'MaterializedView', engine LIKE "
        "'%%ReplacingMergeTree') AS ours FROM system.tables WHERE database = '%s' AND indexOf([%s], name) > "
        "0)",
        names, w->options.database, names);
    int rc = occ_warehouse_ask_numbers(w, sql, masks, 3, err);
    for (size_t i = 0; i < TABLES && masks[2] > 0; i++) /* views stand for the tables of the shards */
        masks[0] |= (uint64_t)(strstr(tables[i].name, "_of_") != NULL) << i;
    *ret_there = masks[0];
    *ret_others = masks[1];
    return rc;
}

bool occ_warehouse_has_all(uint64_t there)
{
    return there == (UINT64_C(1) << TABLES) - 1;
}

void occ_warehouse_name_missing(uint64_t there, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < TABLES; i++)
        if (!(there >> i & 1))
            occ_text_append(out, size, ", ", "%s", tables[i].name);
}

int occ_warehouse_fail_others(const struct occ_warehouse *w, uint64_t others, struct occ_error *err)
{
    char names[SQL_BYTES] = "";
    for (size_t i = 0; i < TABLES; i++)
        if (others >> i & 1)
            occ_text_append(names, sizeof names, ", ", "%s", tables[i].name);
    return occ_fail(err, OCC_E_INVALID,
                    "%s: in database %s these are not occtrace's: %s; %s.database names another database",
                    w->options.http.url, w->options.database, names, w->options.section);
}

/* Checks a name that the server does not list: the table is missing, or the account may not see it. */
static int ask_table(struct occ_warehouse *w, const char *name, bool *ret_missing, struct occ_error *err)
{
    char sql[SQL_BYTES];
    uint64_t is_there = 0;
    (void)snprintf(sql, sizeof sql, "EXISTS TABLE %s.%s", w->options.database, name);
    int rc = occ_warehouse_ask_numbers(w, sql, &is_there, 1, err);
    *ret_missing = rc == 0 && !is_there;
    return rc == OCC_E_DENIED ? 0 : rc;
}

static int check_tables(struct occ_warehouse *w, unsigned int needs, struct occ_error *err)
{
    char missing[SQL_BYTES] = "";
    uint64_t there = 0, other = 0, others = 0;
    int rc = occ_warehouse_find_tables(w, &there, &other, err);
    w->unseen[0] = '\0';
    for (size_t i = 0; i < TABLES && rc == 0; i++) {
        bool is_there = there >> i & 1, is_missing = false;
        if (!(tables[i].needed & needs))
            continue;
        others |= is_there ? other & UINT64_C(1) << i : 0;
        if (is_there)
            continue;
        rc = ask_table(w, tables[i].name, &is_missing, err);
        occ_text_append(is_missing ? missing : w->unseen, is_missing ? sizeof missing : sizeof w->unseen,
                        ", ", "%s", tables[i].name);
    }
    if (rc == 0 && others)
        return occ_warehouse_fail_others(w, others, err);
    if (rc == 0 && missing[0])
        return occ_fail(err, OCC_E_INVALID,
                        "%s: database %s lacks %s: occtrace-ship --init makes what is missing",
                        w->options.http.url, w->options.database, missing);
    return rc;
}

int occ_warehouse_schema_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof sql, "SELECT max(version) FROM %s.schema_version", w->options.database);
    return occ_warehouse_ask_numbers(w, sql, ret_version, 1, err);
}

int occ_warehouse_check(struct occ_warehouse *w, unsigned int needs, struct occ_error *err)
{
    uint64_t version = 0;
    int rc = occ_warehouse_schema_version(w, &version, err);
    if (rc != 0)
        return rc;
    if (version > OCC_WAREHOUSE_SCHEMA)
        return occ_fail(err, OCC_E_VERSION,
                        "%s: the tables of database %s are of a newer occtrace (version %llu, known is %d): "
                        "update this one",
                        w->options.http.url, w->options.database, (unsigned long long)version,
                        OCC_WAREHOUSE_SCHEMA);
    if (version < OCC_WAREHOUSE_SCHEMA)
        return occ_fail(
            err, OCC_E_VERSION,
            "%s: the tables of database %s are of an older occtrace (version %llu, needed is %d): update "
            "them with occtrace-ship --init",
            w->options.http.url, w->options.database, (unsigned long long)version, OCC_WAREHOUSE_SCHEMA);
    int found = check_tables(w, needs, err);
    return found == 0 ? occ_warehouse_find_columns(w, err) : found;
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
