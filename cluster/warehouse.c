/* The warehouse's answers: see warehouse.h. */
#include "warehouse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

#define SYNC_INSERT_ROWS 10000 /* from here on a part of its own is right */
#define SQL_BYTES        1024

#define X(NAME, name, columns) {name, columns},
static const struct table {
    const char *name, *columns;
} tables[OCC_SHIP_TABLE_COUNT] = {OCC_SHIP_TABLES(X)};
#undef X

int occ_warehouse_open(const struct occ_warehouse_options *options, struct occ_warehouse **ret_warehouse,
                       struct occ_error *err)
{
    struct occ_warehouse *w = calloc(1, sizeof *w);
    if (!w)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    w->options = *options;
    int rc = occ_http_open(&w->options.http, &w->http, err);
    if (rc != 0) {
        free(w);
        return rc;
    }
    *ret_warehouse = w;
    return 0;
}

void occ_warehouse_close(struct occ_warehouse *w)
{
    if (!w)
        return;
    occ_http_close(w->http);
    free(w);
}

bool occ_warehouse_needs_help(int code)
{
    return code != OCC_E_IO && code != OCC_E_BUSY && code != OCC_E_NO_MEMORY && code != OCC_E_FULL;
}

/* ---- answers ---- */

/* ClickHouse's exceptions that mean more than "later". */
static const struct {
    int exception, code;
    const char *advice;
} exceptions[] = {
    {81, OCC_E_NOT_FOUND, "there is no such database: make it with occtrace-ship --init"},
    {60, OCC_E_NOT_FOUND, "there is no such table: make it with occtrace-ship --init"},
    {16, OCC_E_INVALID, "a table of that name is not occtrace's"},
    {47, OCC_E_INVALID, "a table of that name is not occtrace's"},
    {53, OCC_E_INVALID, "a table of that name is not occtrace's"},
    {27, OCC_E_INVALID, "a table of that name has columns of other types"},
    {497, OCC_E_DENIED, "ship.user lacks a right"},
    {164, OCC_E_DENIED, "ship.user may only read"},
    {192, OCC_E_DENIED, "ship.user is unknown there"},
    {193, OCC_E_DENIED, "ship.user or its password is wrong"},
    {194, OCC_E_DENIED, "ship.user needs a password: ship.password_file"},
    {516, OCC_E_DENIED, "ship.user or its password is wrong"},
};

/* "Code: 60, e.displayText() = ..." or "Code: 60. DB::Exception: ..."; 0: none. */
static int exception_of(const char *text)
{
    const char *at = strstr(text, "Code: ");
    return at ? atoi(at + strlen("Code: ")) : 0;
}

static int fail_status(const struct occ_warehouse *w, int exception, struct occ_error *err)
{
    char reason[160];
    long status = w->answer.status;
    (void)snprintf(reason, sizeof reason, "%s", w->answer.text);
    reason[strcspn(reason, "\r\n")] = '\0';
    occ_text_sanitise(reason);
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (exceptions[i].exception == exception)
            return occ_fail(err, exceptions[i].code, "%s: %s (%s)", w->options.http.url, exceptions[i].advice,
                            reason);
    if (status == 401 || status == 403)
        return occ_fail(err, OCC_E_DENIED, "%s: ship.user or its password is wrong (HTTP %ld)",
                        w->options.http.url, status);
    if (status >= 300 && status < 400)
        return occ_fail(err, OCC_E_INVALID,
                        "%s: redirects elsewhere, which is not followed: name the server itself",
                        w->options.http.url);
    return occ_fail(err, OCC_E_IO, "%s: HTTP %ld: %s", w->options.http.url, status, reason);
}

/* Posts the request whose query was added. */
static int post(struct occ_warehouse *w, const char *data, size_t n, struct occ_error *err)
{
    int rc = occ_http_post(w->http, data, n, &w->answer, err);
    if (rc != 0)
        return rc;
    int exception = exception_of(w->answer.text);
    return w->answer.status == 200 && exception == 0 ? 0 : fail_status(w, exception, err);
}

int occ_warehouse_ask(struct occ_warehouse *w, const char *sql, struct occ_error *err)
{
    return post(w, sql, strlen(sql), err);
}

uint64_t occ_warehouse_next_number(char **at)
{
    char *end = *at;
    uint64_t number = strtoull(*at, &end, 10);
    *at = *end == '\t' ? end + 1 : end;
    return number;
}

/* 'text', quoted for SQL. */
static void quote(const char *text, char *out, size_t size)
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

/* cluster = '...' AND node = '...' */
static void say_whose(const struct occ_warehouse *w, char *out, size_t size)
{
    char cluster[2 * 256 + 4], node[2 * 256 + 4];
    quote(w->options.cluster, cluster, sizeof cluster);
    quote(w->options.node, node, sizeof node);
    (void)snprintf(out, size, "cluster = %s AND node = %s", cluster, node);
}

/* ---- the server ---- */

int occ_warehouse_meet(struct occ_warehouse *w, struct occ_error *err)
{
    int64_t began_ns = occ_now_ns();
    int rc = occ_warehouse_ask(w, "SELECT toUnixTimestamp(now()), version()", err);
    int64_t middle_ms = (began_ns / 2 + occ_now_ns() / 2) / 1000000;
    if (rc != 0)
        return rc;
    char *at = w->answer.text;
    uint64_t server_s = occ_warehouse_next_number(&at);
    (void)snprintf(w->version, sizeof w->version, "%.*s", (int)strcspn(at, "\r\n"), at);
    unsigned int major = 0, minor = 0;
    if (server_s == 0 || sscanf(w->version, "%u.%u", &major, &minor) != 2) {
        w->version[0] = '\0';
        return occ_fail(err, OCC_E_VERSION, "%s: does not answer as ClickHouse does", w->options.http.url);
    }
    occ_text_sanitise(w->version);
    if (major < 18 || (major == 18 && minor < 16))
        return occ_fail(err, OCC_E_VERSION, "%s: ClickHouse %s is too old; 18.16 or later is needed",
                        w->options.http.url, w->version);
    /* which has async_insert */
    w->dialect = major > 21 || (major == 21 && minor >= 11) ? OCC_DIALECT_NEW : OCC_DIALECT_OLD;
    w->clock_offset_ms = middle_ms - (int64_t)server_s * 1000 - 500;
    return 0;
}

/* ---- rows ---- */

int occ_warehouse_insert(struct occ_warehouse *w, enum occ_ship_table table, const struct occ_body *rows,
                         uint64_t version, struct occ_error *err)
{
    char sql[2 * SQL_BYTES], token[512];
    bool batches = w->dialect == OCC_DIALECT_NEW && rows->rows < SYNC_INSERT_ROWS;
    (void)snprintf(sql, sizeof sql, "INSERT INTO %s.%s (%s) FORMAT TabSeparated", w->options.database,
                   tables[table].name, tables[table].columns);
    (void)snprintf(token, sizeof token, "%s:%llu:%s", w->options.node, (unsigned long long)version,
                   tables[table].name);
    int rc = occ_http_add(w->http, "query", sql, err);
    if (rc == 0 && w->dialect == OCC_DIALECT_NEW)
        rc = occ_http_add(w->http, "insert_deduplication_token", token, err);
    if (rc == 0 && batches)
        rc = occ_http_add(w->http, "async_insert", "1", err);
    if (rc == 0 && batches)
        rc = occ_http_add(w->http, "wait_for_async_insert", "1", err);
    return rc == 0 ? post(w, rows->data, rows->n, err) : rc;
}

static uint64_t received(const char *text, const char *table)
{
    size_t n = strlen(table);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, table, n) == 0 && line[n] == '\t')
            return strtoull(line + n + 1, NULL, 10);
    return 0;
}

int occ_warehouse_confirm(struct occ_warehouse *w, const struct occ_body rows[OCC_SHIP_TABLE_COUNT],
                          uint64_t version, struct occ_error *err)
{
    char whose[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    say_whose(w, whose, sizeof whose);
    (void)snprintf(sql, sizeof sql,
                   "SELECT name, sum(rows) FROM %s.batch WHERE %s AND version = %llu GROUP BY name",
                   w->options.database, whose, (unsigned long long)version);
    int rc = occ_warehouse_ask(w, sql, err);
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT && rc == 0; i++) {
        uint64_t there = received(w->answer.text, tables[i].name);
        if (there < rows[i].rows)
            rc = occ_fail(err, OCC_E_IO, "%s: said that it has %llu rows of %s, and has %llu",
                          w->options.http.url, (unsigned long long)rows[i].rows, tables[i].name,
                          (unsigned long long)there);
    }
    return rc;
}

int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err)
{
    char whose[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    say_whose(w, whose, sizeof whose);
    (void)snprintf(sql, sizeof sql, "SELECT max(version) FROM %s.batch WHERE %s", w->options.database, whose);
    int rc = occ_warehouse_ask(w, sql, err);
    char *at = w->answer.text;
    *ret_version = occ_warehouse_next_number(&at);
    return rc;
}

int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err)
{
    char sql[SQL_BYTES];
    struct occ_body row = {0};
    occ_body_put_text(&row, w->options.cluster, strlen(w->options.cluster));
    occ_body_put_text(&row, w->options.node, strlen(w->options.node));
    (void)snprintf(sql, sizeof sql, "\t%lld\t%lld\t%llu\t%llu", (long long)complete_until_s,
                   (long long)w->clock_offset_ms, (unsigned long long)lost, (unsigned long long)version);
    occ_body_put_raw(&row, sql, strlen(sql));
    occ_body_end_row(&row);
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO %s.watermark (cluster, node, complete_until, clock_offset_ms, lost, version) FORMAT "
        "TabSeparated",
        w->options.database);
    int rc = row.failed ? occ_fail(err, OCC_E_NO_MEMORY, "out of memory")
                        : occ_http_add(w->http, "query", sql, err);
    if (rc == 0 && w->dialect == OCC_DIALECT_NEW)
        rc = occ_http_add(w->http, "async_insert", "1", err);
    if (rc == 0)
        rc = post(w, row.data, row.n, err);
    occ_body_free(&row);
    return rc;
}
