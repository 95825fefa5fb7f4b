/* See user_forms.h. */
#include "user_forms.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* until_minute NULL: the form of now. The state drops positions of histories that were not seen for long;
 * with a position go its forms, and the users of forms that no history has. */
static const char schema[] = "CREATE TABLE IF NOT EXISTS user_form (identity INTEGER NOT NULL, form TEXT NOT "
                             "NULL, until_minute INTEGER, "
                             "PRIMARY KEY (identity, form)) WITHOUT ROWID;"
                             "CREATE TABLE IF NOT EXISTS sent_user (user TEXT NOT NULL, form TEXT NOT NULL, "
                             "hash TEXT NOT NULL, PRIMARY "
                             "KEY (user, form)) WITHOUT ROWID;"
                             "CREATE TABLE IF NOT EXISTS users_now (form TEXT NOT NULL);"
                             "CREATE TRIGGER IF NOT EXISTS forget_forms AFTER DELETE ON position BEGIN "
                             "DELETE FROM user_form WHERE identity = old.identity; "
                             "DELETE FROM sent_user WHERE form NOT IN (SELECT form FROM user_form UNION ALL "
                             "SELECT form FROM users_now); END;";

static int fail_sql(sqlite3 *db, struct occ_error *err)
{
    int code = sqlite3_errcode(db);
    return occ_fail(err,
                    code == SQLITE_FULL    ? OCC_E_FULL
                    : code == SQLITE_NOMEM ? OCC_E_NO_MEMORY
                                           : OCC_E_IO,
                    "%s: users: %s", sqlite3_db_filename(db, "main"), sqlite3_errmsg(db));
}

int occ_user_forms_prepare(sqlite3 *db, struct occ_error *err)
{
    return sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sql(db, err);
}

int occ_user_forms_begin(sqlite3 *db, const struct occ_pseudonym *pseudonym, struct occ_error *err)
{
    char form[OCC_PSEUDONYM_FORM_MAX];
    occ_pseudonym_form(pseudonym, form);
    char *sql = sqlite3_mprintf(
        "BEGIN IMMEDIATE; DELETE FROM seen WHERE %Q <> coalesce((SELECT form FROM users_now), "
        "'name'); DELETE FROM users_now; INSERT INTO users_now VALUES(%Q); COMMIT",
        form, form);
    int rc = sql ? 0 : occ_no_memory(err);
    if (rc == 0 && sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        rc = fail_sql(db, err);
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_free(sql);
    return rc;
}

/* ---- forms ---- */

static void add_earlier(struct occ_user_forms *forms, const char *form, int64_t until_minute)
{
    size_t i = forms->n_earlier;
    if (strcmp(form, forms->now) == 0 || i == OCC_USER_FORMS_MAX)
        return;
    (void)snprintf(forms->earlier[i].form, sizeof forms->earlier[i].form, "%s", form);
    forms->earlier[i].until_minute = until_minute;
    forms->n_earlier++;
}

/* Adds the stored forms, the latest first. *ret_rows: their number. */
static int read_forms(struct occ_user_forms *forms, int64_t newest_minute, size_t *ret_rows,
                      struct occ_error *err)
{
    static const char select[] =
        "SELECT form, coalesce(until_minute, ?2), until_minute IS NULL FROM user_form WHERE "
        "identity = ?1 ORDER BY until_minute IS NULL DESC, until_minute DESC";
    sqlite3_stmt *stmt = NULL;
    bool is_now = false;
    int code = sqlite3_prepare_v2(forms->db, select, -1, &stmt, NULL);
    *ret_rows = 0;
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, forms->identity);
        (void)sqlite3_bind_int64(stmt, 2, newest_minute);
    }
    for (; code == SQLITE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW; code = SQLITE_OK, ++*ret_rows) {
        const char *form = (const char *)sqlite3_column_text(stmt, 0);
        is_now |= form && strcmp(form, forms->now) == 0 && sqlite3_column_int(stmt, 2);
        add_earlier(forms, form ? form : "", sqlite3_column_int64(stmt, 1));
    }
    (void)sqlite3_finalize(stmt);
    forms->has_changed = *ret_rows > 0 && !is_now;
    return code == SQLITE_DONE ? 0 : fail_sql(forms->db, err);
}

int occ_user_forms_read(struct occ_user_forms *r, bool is_known, int64_t newest_minute, struct occ_error *err)
{
    size_t rows = 0;
    r->n_earlier = 0;
    occ_pseudonym_form(r->pseudonym, r->now);
    int rc = read_forms(r, newest_minute, &rows, err);
    if (rc == 0 && rows == 0 && is_known) {
        add_earlier(r, "name", newest_minute);
        r->has_changed = r->n_earlier > 0;
    }
    if (rc == 0 && rows == 0 && !r->has_changed)
        rc = occ_user_forms_store(r, err);
    return rc;
}

static int put_form(const struct occ_user_forms *forms, const char *form, const int64_t *until_minute,
                    struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code =
        sqlite3_prepare_v2(forms->db, "INSERT OR REPLACE INTO user_form VALUES(?, ?, ?)", -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, forms->identity);
        (void)sqlite3_bind_text(stmt, 2, form, -1, SQLITE_STATIC);
        if (until_minute)
            (void)sqlite3_bind_int64(stmt, 3, *until_minute);
        code = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? 0 : fail_sql(forms->db, err);
}

int occ_user_forms_store(struct occ_user_forms *forms, struct occ_error *err)
{
    int rc = sqlite3_exec(forms->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK
                 ? 0
                 : fail_sql(forms->db, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < forms->n_earlier; i++)
        rc = put_form(forms, forms->earlier[i].form, &forms->earlier[i].until_minute, err);
    if (rc == 0)
        rc = put_form(forms, forms->now, NULL, err);
    if (rc == 0 && sqlite3_exec(forms->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        rc = fail_sql(forms->db, err);
    if (rc != 0)
        (void)sqlite3_exec(forms->db, "ROLLBACK", NULL, NULL, NULL);
    else
        forms->has_changed = false;
    return rc;
}

/* ---- texts ---- */

static int keep_hash(const struct occ_user_forms *forms, const char *user, const char *hash,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code =
        sqlite3_prepare_v2(forms->db, "INSERT OR IGNORE INTO sent_user VALUES(?, ?, ?)", -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, user, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(stmt, 2, forms->now, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(stmt, 3, hash, -1, SQLITE_STATIC);
        code = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? 0 : fail_sql(forms->db, err);
}

/* *ret_text NULL: never sent so. */
static int find_hash(const struct occ_user_forms *forms, const char *user, const char *form, char **ret_text,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(forms->db, "SELECT hash FROM sent_user WHERE user = ? AND form = ?", -1,
                                  &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, user, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(stmt, 2, form, -1, SQLITE_STATIC);
        code = sqlite3_step(stmt);
    }
    const char *hash = code == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    *ret_text = hash ? strdup(hash) : NULL;
    bool has_memory = !hash || *ret_text;
    (void)sqlite3_finalize(stmt);
    if (!has_memory)
        return occ_no_memory(err);
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : fail_sql(forms->db, err);
}

static int make_earlier(const struct occ_user_forms *forms, const char *user, size_t i, char **ret_text,
                        struct occ_error *err)
{
    const char *form = forms->earlier[i].form;
    bool is_name = strcmp(form, "name") == 0;
    if (!is_name && strcmp(form, "none") != 0)
        return find_hash(forms, user, form, ret_text, err);
    *ret_text = strdup(is_name ? user : "");
    return *ret_text ? 0 : occ_no_memory(err);
}

int occ_user_texts_make(const struct occ_user_forms *forms, const char *user, struct occ_user_texts *r,
                        struct occ_error *err)
{
    char hash[OCC_PSEUDONYM_BYTES];
    const char *now = forms ? occ_pseudonym_of(forms->pseudonym, user, hash) : user;
    *r = (struct occ_user_texts){.now = strdup(now)};
    int rc = r->now ? 0 : occ_no_memory(err);
    if (rc == 0 && now == hash)
        rc = keep_hash(forms, user, hash, err);
    for (size_t i = 0; forms && rc == 0 && i < forms->n_earlier; i++) {
        rc = make_earlier(forms, user, i, &r->earlier[i], err);
        if (rc == 0 && r->earlier[i] && strcmp(r->earlier[i], r->now) == 0) {
            free(r->earlier[i]);
            r->earlier[i] = NULL;
        }
    }
    return rc;
}

void occ_user_texts_free(struct occ_user_texts *texts)
{
    free(texts->now);
    for (size_t i = 0; i < OCC_USER_FORMS_MAX; i++)
        free(texts->earlier[i]);
    *texts = (struct occ_user_texts){0};
}
