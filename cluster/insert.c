/* See insert.h. */
#include "insert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/clock.h"
#include "support/gpu_jobs.h"
#include "support/text.h"

/* larger inserts make a part of their own anyway; smaller ones are batched by the server */
#define SYNC_INSERT_ROWS 10000
#define SQL_BYTES        1024
#define GPUS_MAX         32
#define FIRST_S          1000000000                    /* 2001-09-09: since then seconds have ten digits */
#define LAST_VERSION     (UINT32_MAX * UINT64_C(1000)) /* a version is a time in milliseconds since 1970 */

#define X(NAME, name, columns, added) {name, columns, added},
static const struct table {
    const char *name, *columns, *added;
} tables[OCC_SHIP_TABLE_COUNT] = {OCC_SHIP_TABLES(X)};
#undef X

static unsigned int count_added(const struct occ_warehouse *w, enum occ_ship_table table)
{
    const unsigned int n[OCC_SHIP_TABLE_COUNT] = {[OCC_SHIP_RUN] = w->added.run,
                                                  [OCC_SHIP_MINUTE] = w->added.minute,
                                                  [OCC_SHIP_LAUNCH] = w->added.launch};
    return n[table];
}

/* Writes the condition: cluster = '...' AND node = '...' */
static void write_origin(const struct occ_warehouse *w, char *out, size_t size)
{
    char cluster[2 * 256 + 4], node[2 * 256 + 4];
    occ_warehouse_quote(w->options.cluster, cluster, sizeof cluster);
    occ_warehouse_quote(w->options.node, node, sizeof node);
    (void)snprintf(out, size, "cluster = %s AND node = %s", cluster, node);
}

int occ_warehouse_insert(struct occ_warehouse *w, enum occ_ship_table table, const struct occ_body *rows,
                         uint64_t version, struct occ_error *err)
{
    char sql[2 * SQL_BYTES], token[1024];
    bool batches = w->dialect == OCC_DIALECT_NEW && rows->rows < SYNC_INSERT_ROWS;
    const char *columns =
        table == OCC_SHIP_MINUTE && !w->has_evidence ? OCC_SHIP_MINUTE_COLUMNS("") : tables[table].columns;
    const char *added = tables[table].added;
    (void)snprintf(sql, sizeof sql, "INSERT INTO %s.%s (%s%.*s) FORMAT TabSeparated", w->options.database,
                   tables[table].name, columns, (int)occ_warehouse_names_length(added, count_added(w, table)),
                   added);
    (void)snprintf(token, sizeof token, "%s:%s:%llu:%s", w->options.cluster, w->options.node,
                   (unsigned long long)version, tables[table].name);
    int rc = occ_http_add(w->http, "query", sql, err);
    if (rc == 0 && w->dialect == OCC_DIALECT_NEW)
        rc = occ_http_add(w->http, "insert_deduplication_token", token, err);
    if (rc == 0 && batches)
        rc = occ_http_add(w->http, "async_insert", "1", err);
    if (rc == 0 && batches)
        rc = occ_http_add(w->http, "wait_for_async_insert", "1", err);
    return rc == 0 ? occ_warehouse_post(w, rows->data, rows->n, err) : rc;
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
    char origin[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    write_origin(w, origin, sizeof origin);
    (void)snprintf(sql, sizeof sql,
                   "SELECT name, sum(rows) FROM %s.batch WHERE %s AND version = %llu GROUP BY name",
                   w->options.database, origin, (unsigned long long)version);
    int rc = occ_warehouse_ask(w, sql, err);
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT && rc == 0; i++) {
        uint64_t there = received(w->answer.text, tables[i].name);
        if (there < rows[i].rows)
            rc = occ_fail(err, OCC_E_BUSY, "%s: said that it has %llu rows of %s, and has %llu",
                          w->options.http.url, (unsigned long long)rows[i].rows, tables[i].name,
                          (unsigned long long)there);
    }
    return rc;
}

int occ_warehouse_last_version(struct occ_warehouse *w, uint64_t *ret_version, struct occ_error *err)
{
    char origin[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    write_origin(w, origin, sizeof origin);
    (void)snprintf(sql, sizeof sql, "SELECT max(version) FROM %s.batch WHERE %s", w->options.database,
                   origin);
    int rc = occ_warehouse_ask_numbers(w, sql, ret_version, 1, err);
    if (rc == 0 && *ret_version > LAST_VERSION)
        rc = occ_fail(err, OCC_E_INVALID,
                      "%s: table batch of database %s has rows of this node that no shipper sent (version "
                      "%llu, which is no time): delete them",
                      w->options.http.url, w->options.database, (unsigned long long)*ret_version);
    return rc;
}

int occ_warehouse_try_sending(struct occ_warehouse *w, struct occ_error *err)
{
    char cluster[2 * 256 + 4], node[2 * 256 + 4], origin[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    uint64_t mark = (uint64_t)occ_now_ns(), n = 0;
    occ_warehouse_quote(w->options.cluster, cluster, sizeof cluster);
    occ_warehouse_quote(w->options.node, node, sizeof node);
    write_origin(w, origin, sizeof origin);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.batch (name, cluster, node, version, rows, day) SELECT 'check', %s, %s, "
                   "toUInt64(0), toUInt64(%llu), today()",
                   w->options.database, cluster, node, (unsigned long long)mark);
    int rc = occ_warehouse_ask(w, sql, err);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count() FROM %s.batch WHERE %s AND version = 0 AND name = 'check' AND rows = %llu",
                   w->options.database, origin, (unsigned long long)mark);
    if (rc == 0)
        rc = occ_warehouse_ask_numbers(w, sql, &n, 1, err);
    if (rc == 0 && n == 0)
        rc = occ_fail(err, OCC_E_DENIED,
                      "%s: %s.user may not read what it has sent as node %s: the account occ_node_NAME sends "
                      "as node NAME, others as any; run the SQL of --accounts again",
                      w->options.http.url, w->options.section, w->options.node);
    return rc;
}

int occ_warehouse_knows(struct occ_warehouse *w, int64_t history, bool *ret_knows, struct occ_error *err)
{
    char origin[2 * SQL_BYTES], sql[3 * SQL_BYTES];
    write_origin(w, origin, sizeof origin);
    (void)snprintf(sql, sizeof sql, "SELECT count() FROM %s.run WHERE %s AND history = %llu",
                   w->options.database, origin, (unsigned long long)history);
    uint64_t n = 0;
    int rc = occ_warehouse_ask_numbers(w, sql, &n, 1, err);
    *ret_knows = n > 0;
    return rc;
}

/* Inserts rows that every pass sends again, without confirmation, and frees them. */
static int insert_state(struct occ_warehouse *w, const char *table, struct occ_body *rows,
                        struct occ_error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof sql, "INSERT INTO %s.%s FORMAT TabSeparated", w->options.database, table);
    int rc = rows->failed ? occ_no_memory(err) : occ_http_add(w->http, "query", sql, err);
    if (rc == 0 && w->dialect == OCC_DIALECT_NEW)
        rc = occ_http_add(w->http, "async_insert", "1", err);
    if (rc == 0)
        rc = occ_warehouse_post(w, rows->data, rows->n, err);
    occ_body_free(rows);
    return rc;
}

static void put_origin(const struct occ_warehouse *w, struct occ_body *row)
{
    occ_body_put_text(row, w->options.cluster, strlen(w->options.cluster));
    occ_body_put_text(row, w->options.node, strlen(w->options.node));
}

int occ_warehouse_put_allocations(struct occ_warehouse *w, const char *directory, uint64_t version,
                                  struct occ_error *err)
{
    struct occ_gpu_jobs gpus[GPUS_MAX];
    size_t n = occ_jobs_read("", directory, gpus, GPUS_MAX);
    char uuid[OCC_GPU_UUID_BYTES], job[OCC_JOB_BYTES + 8];
    struct occ_body rows = {0};
    int64_t now_s = occ_now_ns() / 1000000000;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < gpus[i].n; k++) {
            int64_t since_s = gpus[i].since_s;
            occ_gpu_uuid_format(gpus[i].gpu, uuid);
            (void)snprintf(job, sizeof job, "slurm:%s", gpus[i].names[k]);
            put_origin(w, &rows);
            occ_body_put_text(&rows, uuid + strlen("GPU-"), strlen(uuid) - strlen("GPU-"));
            occ_body_put_text(&rows, job, strlen(job));
            occ_body_put_u64(&rows, (uint64_t)(since_s >= FIRST_S && since_s <= now_s ? since_s : now_s));
            occ_body_put_u64(&rows, version);
            occ_body_end_row(&rows);
        }
    return rows.n > 0 ? insert_state(w, "allocation (cluster, node, gpu, job, since, version)", &rows, err)
                      : 0;
}

int occ_warehouse_put_watermark(struct occ_warehouse *w, int64_t complete_until_s, uint64_t lost,
                                uint64_t version, struct occ_error *err)
{
    char numbers[128];
    struct occ_body row = {0};
    complete_until_s = complete_until_s < FIRST_S ? FIRST_S : complete_until_s;
    put_origin(w, &row);
    (void)snprintf(numbers, sizeof numbers, "\t%lld\t%lld\t%llu\t%llu", (long long)complete_until_s,
                   (long long)w->clock_offset_ms, (unsigned long long)lost, (unsigned long long)version);
    occ_body_put_raw(&row, numbers, strlen(numbers));
    occ_body_end_row(&row);
    return insert_state(w, "watermark (cluster, node, complete_until, clock_offset_ms, lost, version)", &row,
                        err);
}
