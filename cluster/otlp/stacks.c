/* See stacks.h. */
#include "stacks.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* Stacks are folded after so many additions: a pass over many layers needs a bounded memory. */
#define ADDITIONS_MAX 20000

#define PARAMETER(NAME, id, text) ", ?"
enum statement { ADD, GET_COUNTED, PUT_COUNTED, FORGET_COUNTED, GET_REQUEST, PUT_REQUEST, N_STATEMENTS };
static const char *const statements[N_STATEMENTS] = {
    [ADD] = "INSERT INTO stack VALUES(?, ?, ?, ?, ?, ?, ?6, ?, ?, ?" OCC_CAUSES(
        PARAMETER) ") ON CONFLICT DO UPDATE SET " OCC_STACKS_MERGE,
    [GET_COUNTED] =
        "SELECT ns FROM counted_range WHERE identity=? AND minute=? AND run=? AND config=? AND range=?",
    [PUT_COUNTED] = "INSERT OR REPLACE INTO counted_range VALUES(?, ?, ?, ?, ?, ?)",
    [FORGET_COUNTED] = "DELETE FROM counted_range WHERE identity = ? AND minute < ?",
    [GET_REQUEST] = "SELECT body, gpu_ns FROM profile_request",
    [PUT_REQUEST] = "INSERT INTO profile_request SELECT 1, ?, total(ns) FROM stack",
};

struct occ_stacks {
    struct occ_sums *sums;
    sqlite3_stmt *statements[N_STATEMENTS];
    int64_t added; /* stacks added since the last folding */
};

int occ_stacks_open(struct occ_sums *sums, struct occ_stacks **ret_stacks, struct occ_error *err)
{
    struct occ_stacks *s = calloc(1, sizeof *s);
    if (!s)
        return occ_no_memory(err);
    s->sums = sums;
    int rc = 0;
    for (int i = 0; i < N_STATEMENTS && rc == 0; i++)
        if (sqlite3_prepare_v2(occ_sums_sqlite(sums), statements[i], -1, &s->statements[i], NULL) !=
            SQLITE_OK)
            rc = occ_sums_fail(sums, err);
    if (rc == 0)
        *ret_stacks = s;
    else
        occ_stacks_close(s);
    return rc;
}

void occ_stacks_close(struct occ_stacks *s)
{
    for (int i = 0; s && i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(s->statements[i]);
    free(s);
}

int occ_stacks_clear(struct occ_sums *sums, struct occ_error *err)
{
    return occ_sums_run(sums, "DELETE FROM stack; DELETE FROM counted_range; DELETE FROM profile_request",
                        err);
}

/* ---- statements ---- */

static void bind_integers(sqlite3_stmt *stmt, int first, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        (void)sqlite3_bind_int64(stmt, first + i, values[i]);
}

/* Ends a statement without rows. */
static int finish(struct occ_stacks *s, enum statement i, struct occ_error *err)
{
    int rc = sqlite3_step(s->statements[i]) == SQLITE_DONE ? 0 : occ_sums_fail(s->sums, err);
    (void)sqlite3_reset(s->statements[i]);
    return rc;
}

static int run_with_limit(struct occ_stacks *s, const char *sql, int64_t limit, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool done = sqlite3_prepare_v2(occ_sums_sqlite(s->sums), sql, -1, &stmt, NULL) == SQLITE_OK;
    if (done && sqlite3_bind_parameter_count(stmt) > 0)
        (void)sqlite3_bind_int64(stmt, 1, limit);
    done = done && sqlite3_step(stmt) == SQLITE_DONE;
    int rc = done ? 0 : occ_sums_fail(s->sums, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- stacks ---- */

/* Leaves `limit` stacks with most GPU time and the sum of the others of each job and GPU. */
static int fold(struct occ_stacks *s, int64_t limit, struct occ_error *err)
{
    static const char *const steps[] = {
        "CREATE TEMP TABLE small AS SELECT rowid AS id FROM stack ORDER BY ns DESC, rowid LIMIT -1 OFFSET ?1",
        "CREATE TEMP TABLE folded AS SELECT job, gpu, '' AS path, '" OCC_SUMS_OTHER
        "' AS kernel, " OCC_STACKS_SUMS " FROM stack WHERE rowid IN (SELECT id FROM small) GROUP BY job, gpu",
        "DELETE FROM stack WHERE rowid IN (SELECT id FROM small)",
        "INSERT INTO stack SELECT * FROM folded WHERE true ON CONFLICT DO UPDATE SET " OCC_STACKS_MERGE,
        "DROP TABLE small",
        "DROP TABLE folded",
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && rc == 0; i++)
        rc = run_with_limit(s, steps[i], limit, err);
    s->added = 0;
    return rc;
}

/* Splits GPU time into whole nanoseconds that add up to it: the used part gets the rest of each division. */
static void bind_parts(sqlite3_stmt *stmt, int first, const struct occ_stack *stack)
{
    int64_t rest_ns = stack->ns;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        double part = stack->causes && i != OCC_CAUSE_PARTIAL_WARP ? stack->causes[i] : 0;
        double lost_ns = part > 0 ? floor(fmin(part, 1) * (double)stack->ns) : 0;
        lost_ns = fmin(lost_ns, (double)rest_ns);
        rest_ns -= (int64_t)lost_ns < rest_ns ? (int64_t)lost_ns : rest_ns;
        (void)sqlite3_bind_double(stmt, first + 2 + i, lost_ns);
    }
    (void)sqlite3_bind_double(stmt, first, stack->causes ? (double)rest_ns : 0);
    (void)sqlite3_bind_double(stmt, first + 1, stack->causes ? 0 : (double)stack->ns);
}

int occ_stacks_add(struct occ_stacks *s, const struct occ_stack *stack, struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[ADD];
    const char *const texts[] = {stack->job, stack->gpu, stack->path, stack->kernel};
    for (int i = 0; i < 4; i++)
        (void)sqlite3_bind_text(stmt, i + 1, texts[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(stmt, 5, stack->is_simulated);
    (void)sqlite3_bind_int64(stmt, 6, stack->minute);
    (void)sqlite3_bind_double(stmt, 7, (double)stack->ns);
    bind_parts(stmt, 8, stack);
    int rc = finish(s, ADD, err);
    return rc == 0 && ++s->added > ADDITIONS_MAX ? fold(s, OCC_STACKS_MAX, err) : rc;
}

int occ_stacks_count(struct occ_stacks *s, const struct occ_stacks_key *key, int64_t ns, int64_t most_ns,
                     int64_t *ret_new_ns, struct occ_error *err)
{
    const int64_t columns[] = {key->identity, key->minute, key->run, key->config, key->range};
    sqlite3_stmt *get = s->statements[GET_COUNTED], *put = s->statements[PUT_COUNTED];
    bind_integers(get, 1, columns, 5);
    int code = sqlite3_step(get);
    int64_t before_ns = code == SQLITE_ROW ? sqlite3_column_int64(get, 0) : 0;
    (void)sqlite3_reset(get);
    *ret_new_ns = 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return occ_sums_fail(s->sums, err);
    if (before_ns < 0 || ns <= before_ns || most_ns <= 0)
        return 0;
    *ret_new_ns = ns - before_ns < most_ns ? ns - before_ns : most_ns;
    bind_integers(put, 1, columns, 5);
    (void)sqlite3_bind_int64(put, 6, before_ns + *ret_new_ns);
    return finish(s, PUT_COUNTED, err);
}

int occ_stacks_forget(struct occ_stacks *s, int64_t identity, int64_t minute, struct occ_error *err)
{
    bind_integers(s->statements[FORGET_COUNTED], 1, (const int64_t[]){identity, minute}, 2);
    return finish(s, FORGET_COUNTED, err);
}

/* ---- requests ---- */

int occ_stacks_load_request(struct occ_stacks *s, struct occ_stacks_request *ret_request,
                            struct occ_error *err)
{
    sqlite3_stmt *stmt = s->statements[GET_REQUEST];
    *ret_request = (struct occ_stacks_request){0};
    int code = sqlite3_step(stmt), rc = 0;
    if (code == SQLITE_ROW) {
        const char *body = (const char *)sqlite3_column_text(stmt, 0);
        size_t n = (size_t)sqlite3_column_bytes(stmt, 0);
        char *copy = body ? malloc(n + 1) : NULL;
        if (copy)
            memcpy(copy, body, n + 1);
        rc = copy ? 0 : occ_no_memory(err);
        *ret_request = (struct occ_stacks_request){copy, n, sqlite3_column_double(stmt, 1)};
    } else if (code != SQLITE_DONE) {
        rc = occ_sums_fail(s->sums, err);
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

static int has_stacks(struct occ_stacks *s, bool *ret_some, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool read =
        sqlite3_prepare_v2(occ_sums_sqlite(s->sums), "SELECT EXISTS(SELECT 1 FROM stack WHERE ns > 0)", -1,
                           &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW;
    *ret_some = read && sqlite3_column_int(stmt, 0) != 0;
    int rc = read ? 0 : occ_sums_fail(s->sums, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* Writes the document with as many stacks as it has room for. */
static int write_fitting(struct occ_stacks *s, occ_stacks_write *write, const void *origin, char **ret_text,
                         size_t *ret_n, struct occ_error *err)
{
    int rc = 0;
    for (int64_t limit = OCC_STACKS_MAX; limit > 0; limit /= 2) {
        rc = fold(s, limit, err);
        if (rc != 0)
            return rc;
        rc = write(s->sums, origin, ret_text, ret_n, err);
        if (rc != OCC_E_FULL)
            return rc;
    }
    return rc;
}

static int put_request(struct occ_stacks *s, const char *body, size_t n, struct occ_error *err)
{
    (void)sqlite3_bind_text64(s->statements[PUT_REQUEST], 1, body, n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = finish(s, PUT_REQUEST, err);
    return rc == 0 ? occ_sums_run(s->sums, "DELETE FROM stack; COMMIT", err) : rc;
}

int occ_stacks_make_request(struct occ_stacks *s, occ_stacks_write *write, const void *origin,
                            struct occ_error *err)
{
    bool some = false;
    char *body = NULL;
    size_t n = 0;
    int rc = has_stacks(s, &some, err);
    if (rc != 0 || !some)
        return rc;
    rc = occ_sums_run(s->sums, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = write_fitting(s, write, origin, &body, &n, err);
    if (rc == 0)
        rc = put_request(s, body, n, err);
    if (rc != 0)
        (void)occ_sums_run(s->sums, "ROLLBACK", NULL);
    free(body);
    return rc;
}

int occ_stacks_drop_request(struct occ_stacks *s, struct occ_error *err)
{
    return occ_sums_run(s->sums, "DELETE FROM profile_request", err);
}
