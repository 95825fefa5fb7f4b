/* See load.h. */
#include "load.h"

#define TEXT_BYTES (2 * OCC_REMOTE_TEXT_MAX + 3) /* a quoted text; each byte may be escaped */
#define MOMENT_MAX UINT32_MAX                    /* maximum of a DateTime, in seconds */
#define SECOND_NS  INT64_C(1000000000)

int occ_load_fetch(const struct occ_load *l, const char *table, const char *names, char *sql)
{
    int rc = sql ? occ_remote_fetch(l->w, l->db, table, names, sql, l->err) : occ_no_memory(l->err);
    sqlite3_free(sql);
    return rc;
}

int occ_load_run(const struct occ_load *l, char *sql)
{
    if (!sql)
        return occ_no_memory(l->err);
    int code = sqlite3_exec(l->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? 0
                             : occ_fail(l->err, code == SQLITE_NOMEM ? OCC_E_NO_MEMORY : OCC_E_CORRUPT,
                                        "%s: the answer has a value that cannot be: %s",
                                        l->w->options.http.url, sqlite3_errmsg(l->db));
}

int occ_load_leave_out(const struct occ_load *l, char *select)
{
    int rc = select ? occ_load_run(l, sqlite3_mprintf("INSERT INTO temp.left_out(node, n) %s", select))
                    : occ_no_memory(l->err);
    sqlite3_free(select);
    return rc;
}

int64_t occ_load_number(const struct occ_load *l, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(l->db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return n;
}

void occ_load_append_text(sqlite3_str *sql, const char *before, const char *text, const char *after)
{
    char quoted[TEXT_BYTES];
    if (text) {
        occ_warehouse_quote(text, quoted, sizeof quoted);
        sqlite3_str_appendf(sql, "%s%s%s", before, quoted, after);
    }
}

void occ_load_append_cluster(const struct occ_load *l, sqlite3_str *sql)
{
    occ_load_append_text(sql, " AND cluster = ", l->question->cluster, "");
}

void occ_load_append_job(sqlite3_str *sql, const char *job)
{
    occ_load_append_text(sql, "(job = ", job, "");
    occ_load_append_text(sql, " OR slurm_job = ", job, "");
    occ_load_append_text(sql, " OR pod = ", job, ")");
}

/* Whole seconds for a DateTime, rounded up. */
static long long seconds(int64_t ns)
{
    int64_t s = ns / SECOND_NS + (ns % SECOND_NS > 0);
    return s > MOMENT_MAX ? MOMENT_MAX : s;
}

void occ_load_append_period(const struct occ_load *l, sqlite3_str *sql)
{
    const struct occ_remote_question *q = l->question;
    if (q->since_ns > 0)
        sqlite3_str_appendf(sql, " AND bucket >= toDateTime(%lld)", seconds(q->since_ns));
    if (q->until_ns > 0)
        sqlite3_str_appendf(sql, " AND bucket < toDateTime(%lld)", seconds(q->until_ns));
}
