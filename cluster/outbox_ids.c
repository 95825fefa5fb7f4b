/* Rows of kernels, launch configurations and runs that minutes refer to. See outbox.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "occupancy/occupancy.h"
#include "forget.h"
#include "outbox.h"
#include "support/array.h"

#define OTHER        "(other)"
#define SECOND_NS    INT64_C(1000000000)
#define ITEMS_MAX    (1u << 22)
#define N_CONFIG_COL (0 OCC_SHIP_LAUNCH_CONFIG_COLUMNS(OCC_SHIP_COUNT))
#define N_KERNEL_COL (0 OCC_SHIP_KERNEL_COLUMNS(OCC_SHIP_COUNT))

static const char read_config[] = "SELECT " OCC_SHIP_UUID(
    "d.uuid") ", coalesce(d.sm_count * c.max_warps_per_sm, 0), c.expected_elapsed_low, "
              "c.main_cause" OCC_SHIP_KERNEL_COLUMNS(OCC_SHIP_EXPRESSION) OCC_SHIP_LAUNCH_CONFIG_COLUMNS(
                  OCC_SHIP_EXPRESSION) " FROM stored_launch_config c JOIN stored_kernel k "
                                       "USING(kernel_id) JOIN stored_device d USING(device_id) "
                                       "WHERE c.config_id = ?";
enum { CONFIG_GPU, CONFIG_WARPS, CONFIG_EXPECTED, CONFIG_CAUSE, CONFIG_KERNEL };

/* Includes removed runs. */
#define READ_RUN(table, last, added)                                                                         \
    "SELECT r.run_id, " OCC_SHIP_JOB ", " OCC_SHIP_USER                                                      \
    ", " OCC_SHIP_UUID("r.uuid") ", " last added " FROM " table " r WHERE r.run_id = ?1"
static const char read_run[] = READ_RUN(
    "stored_run", "coalesce(r.last_start_ns, r.start_ns)",
    OCC_SHIP_JOB_ADDED_COLUMNS(
        OCC_SHIP_EXPRESSION)) " UNION ALL " READ_RUN("stored_removed_run", "r.start_ns",
                                                     OCC_SHIP_JOB_ADDED_COLUMNS(OCC_SHIP_REMOVED_EXPRESSION));
enum { RUN_ID, RUN_JOB, RUN_USER, RUN_UUID, RUN_LAST, RUN_ADDED };
#define READ_RUN_ROW(table, X)                                                                               \
    "SELECT " OCC_SHIP_UUID("r.uuid") OCC_SHIP_RUN_COLUMNS(X)                                                \
        OCC_SHIP_RUN_ADDED_COLUMNS(X) " FROM " table " r WHERE r.run_id = ?1"
static const char read_run_row[] = READ_RUN_ROW("stored_run", OCC_SHIP_EXPRESSION) " UNION ALL " READ_RUN_ROW(
    "stored_removed_run", OCC_SHIP_REMOVED_EXPRESSION);
#define N_RUN_COL (0 OCC_SHIP_RUN_COLUMNS(OCC_SHIP_COUNT)) /* UUID and added columns not counted */

int occ_outbox_fail(const struct occ_outbox *r, struct occ_error *err)
{
    int code = sqlite3_errcode(r->db) == SQLITE_NOMEM ? OCC_E_NO_MEMORY : OCC_E_CORRUPT;
    return occ_fail(err, code, "%s: %s", sqlite3_db_filename(r->db, "main"), sqlite3_errmsg(r->db));
}

int occ_outbox_number(struct occ_outbox *r, const char *sql, const int64_t *values, int n,
                      int64_t *ret_number, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->db, sql, -1, &stmt, NULL) == SQLITE_OK ? 0 : occ_outbox_fail(r, err);
    for (int i = 0; i < n && rc == 0; i++)
        (void)sqlite3_bind_int64(stmt, i + 1, values[i]);
    if (rc == 0 && sqlite3_step(stmt) == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(stmt, 0);
    else if (rc == 0)
        rc = occ_outbox_fail(r, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_outbox_no_memory(struct occ_error *err)
{
    return occ_no_memory(err);
}

static bool has_names(const struct occ_outbox *r)
{
    return !r->users || r->users->pseudonym->users == OCC_USERS_NAME;
}

static void shipped_user(sqlite3_context *context, int argc, sqlite3_value **values)
{
    const struct occ_outbox *r = sqlite3_user_data(context);
    const char *user = (const char *)sqlite3_value_text(values[0]);
    char hash[OCC_PSEUDONYM_BYTES];
    (void)argc;
    if (has_names(r)) /* all bytes of the name, also bytes after a NUL */
        sqlite3_result_value(context, values[0]);
    else
        sqlite3_result_text(context, occ_pseudonym_of(r->users->pseudonym, user ? user : "", hash), -1,
                            SQLITE_TRANSIENT);
}

static void shipped_uid(sqlite3_context *context, int argc, sqlite3_value **values)
{
    const struct occ_outbox *r = sqlite3_user_data(context);
    (void)argc;
    if (has_names(r))
        sqlite3_result_value(context, values[0]);
    else
        sqlite3_result_null(context);
}

int occ_outbox_make_functions(struct occ_outbox *r, struct occ_error *err)
{
    bool done = sqlite3_create_function(r->db, "shipped_user", 1, SQLITE_UTF8, r, shipped_user, NULL, NULL) ==
                    SQLITE_OK &&
                sqlite3_create_function(r->db, "shipped_uid", 1, SQLITE_UTF8, r, shipped_uid, NULL, NULL) ==
                    SQLITE_OK;
    return done ? 0 : occ_outbox_fail(r, err);
}

int occ_outbox_prepare_ids(struct occ_outbox *r, struct occ_error *err)
{
    if (sqlite3_prepare_v2(r->db, read_config, -1, &r->read_config, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(r->db, read_run, -1, &r->read_run, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(r->db, read_run_row, -1, &r->read_run_row, NULL) != SQLITE_OK)
        return occ_outbox_fail(r, err);
    return 0;
}

/* Steps to the row with this id. OCC_E_CORRUPT: it is missing. */
static int find(const struct occ_outbox *r, sqlite3_stmt *stmt, int64_t id, struct occ_error *err)
{
    (void)sqlite3_reset(stmt);
    (void)sqlite3_bind_int64(stmt, 1, id);
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        return 0;
    return code == SQLITE_DONE ? occ_fail(err, OCC_E_CORRUPT, "%s: a row that others refer to is missing",
                                          sqlite3_db_filename(r->db, "main"))
                               : occ_outbox_fail(r, err);
}

/* ---- kernels and launch configurations ---- */

/* True if the id's row must be added to the batch; notes the id, so that the next call is false. */
static bool is_new(struct occ_batch *batch, uint64_t id)
{
    if (occ_map_get(&batch->options.sent->ids, id) != OCC_MAP_NONE ||
        occ_map_get(&batch->ids, id) != OCC_MAP_NONE)
        return false;
    if (occ_map_put(&batch->ids, id, 0) == OCC_MAP_NONE)
        batch->rows[OCC_SHIP_KERNEL].failed = true;
    return true;
}

static void end_dimension(const struct occ_batch *batch, struct occ_body *rows)
{
    occ_body_put_text(rows, batch->options.cluster, strlen(batch->options.cluster));
    occ_body_put_text(rows, batch->options.node, strlen(batch->options.node));
    occ_body_put_u64(rows, batch->options.version);
    occ_body_end_row(rows);
}

/* Completes `row` and adds it to the batch. Returns its id, the hash of its content. */
static uint64_t add_config(struct occ_batch *batch, struct occ_body *row)
{
    struct occ_body *rows = &batch->rows[OCC_SHIP_LAUNCH_CONFIG];
    uint64_t id = row->failed ? 0 : occ_body_id(row->data, row->n);
    rows->failed |= row->failed;
    if (!row->failed && is_new(batch, id)) {
        occ_body_put_u64(rows, id);
        occ_body_put_raw(rows, "\t", 1);
        occ_body_put_raw(rows, row->data, row->n);
        end_dimension(batch, rows);
    }
    occ_body_free(row);
    return id;
}

static uint64_t add_kernel(struct occ_batch *batch, sqlite3_stmt *stmt)
{
    struct occ_body *rows = &batch->rows[OCC_SHIP_KERNEL];
    int mangled = CONFIG_KERNEL + N_KERNEL_COL - 1;
    const char *name = (const char *)sqlite3_column_text(stmt, mangled);
    uint64_t id = occ_body_id(name ? name : "", (size_t)sqlite3_column_bytes(stmt, mangled));
    if (is_new(batch, id)) {
        occ_body_put_u64(rows, id);
        occ_body_put_columns(rows, stmt, CONFIG_KERNEL, N_KERNEL_COL);
        end_dimension(batch, rows);
    }
    return id;
}

static int cause_of(const char *word)
{
#define WORD(name, id, text) id,
    static const char *const words[] = {OCC_CAUSES(WORD)};
#undef WORD
    int cause = 0;
    while (cause < OCC_CAUSE_COUNT && (!word || strcmp(word, words[cause]) != 0))
        cause++;
    return cause;
}

static void fill_config(struct occ_batch *batch, sqlite3_stmt *stmt, struct occ_outbox_config *config)
{
    struct occ_body row = {0};
    const char *gpu = (const char *)sqlite3_column_text(stmt, CONFIG_GPU);
    occ_body_put_u64(&row, add_kernel(batch, stmt));
    occ_body_put_columns(&row, stmt, CONFIG_KERNEL + N_KERNEL_COL, N_CONFIG_COL);
    *config =
        (struct occ_outbox_config){.id = add_config(batch, &row),
                                   .warps = sqlite3_column_double(stmt, CONFIG_WARPS),
                                   .expected_elapsed = sqlite3_column_double(stmt, CONFIG_EXPECTED),
                                   .cause = cause_of((const char *)sqlite3_column_text(stmt, CONFIG_CAUSE))};
    (void)snprintf(config->gpu, sizeof config->gpu, "%s",
                   gpu && strlen(gpu) == 36 ? gpu : "00000000-0000-0000-0000-000000000000");
}

int occ_outbox_config(struct occ_outbox *r, struct occ_batch *batch, int64_t id,
                      const struct occ_outbox_config **ret_config, struct occ_error *err)
{
    uint32_t at = occ_map_get(&r->config_index, (uint64_t)id);
    if (at == OCC_MAP_NONE) {
        int rc = find(r, r->read_config, id, err);
        if (rc != 0)
            return rc;
        at = (uint32_t)r->n_configs;
        if (!occ_grow((void **)&r->configs, &r->allocated_configs, r->n_configs, ITEMS_MAX,
                      sizeof *r->configs) ||
            occ_map_put(&r->config_index, (uint64_t)id, at) == OCC_MAP_NONE)
            return occ_outbox_no_memory(err);
        fill_config(batch, r->read_config, &r->configs[r->n_configs++]);
        (void)sqlite3_reset(r->read_config);
    }
    *ret_config = &r->configs[at];
    return 0;
}

static void put_other_column(struct occ_body *row, const char *text, const char *cause)
{
    text = text ? text : cause;
    occ_body_put_raw(row, "\t", 1);
    occ_body_put_raw(row, text, strlen(text));
}

uint64_t occ_batch_add_other(struct occ_batch *batch, int cause)
{
#define WORD(name, id, text) id,
    static const char *const words[] = {OCC_CAUSES(WORD) ""};
#undef WORD
    struct occ_body row = {0}, *kernels = &batch->rows[OCC_SHIP_KERNEL];
    uint64_t kernel = occ_body_id(OTHER, strlen(OTHER));
    if (is_new(batch, kernel)) {
        occ_body_put_u64(kernels, kernel);
        for (int i = 0; i < N_KERNEL_COL; i++)
            occ_body_put_text(kernels, OTHER, strlen(OTHER));
        end_dimension(batch, kernels);
    }
    occ_body_put_u64(&row, kernel);
#define X(column, expression, other) put_other_column(&row, other, words[cause]);
    OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)
#undef X
    return add_config(batch, &row);
}

/* ---- runs ---- */

/* Hash of job and user: rows with the same hash are merged. */
static bool hash_group(const char *job, const char *user, uint64_t *ret_group)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return false;
    (void)XXH3_64bits_reset(state);
    (void)XXH3_64bits_update(state, job, strlen(job) + 1);
    (void)XXH3_64bits_update(state, user, strlen(user));
    *ret_group = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    return true;
}

static bool hash_groups(struct occ_outbox_run *run)
{
    bool done = hash_group(run->job, run->users.now, &run->group);
    for (size_t i = 0; done && i < OCC_USER_FORMS_MAX; i++)
        if (run->users.earlier[i])
            done = hash_group(run->job, run->users.earlier[i], &run->earlier_groups[i]);
    return done;
}

/* A user is erased under the name and under each text that was sent. */
static int64_t find_erased_s(const struct occ_erased *erased, const char *user,
                             const struct occ_user_texts *texts)
{
    int64_t plain_s = occ_erased_before_s(erased, user), latest_s = occ_erased_before_s(erased, texts->now);
    latest_s = plain_s > latest_s ? plain_s : latest_s;
    for (size_t i = 0; i < OCC_USER_FORMS_MAX; i++) {
        int64_t earlier_s = texts->earlier[i] ? occ_erased_before_s(erased, texts->earlier[i]) : 0;
        latest_s = earlier_s > latest_s ? earlier_s : latest_s;
    }
    return latest_s;
}

static int fill_run(sqlite3_stmt *stmt, const struct occ_batch_options *options, struct occ_outbox_run *run,
                    struct occ_error *err)
{
    const char *job = (const char *)sqlite3_column_text(stmt, RUN_JOB),
               *user = (const char *)sqlite3_column_text(stmt, RUN_USER);
    *run = (struct occ_outbox_run){.id = sqlite3_column_int64(stmt, RUN_ID),
                                   .job = strdup(job ? job : ""),
                                   .last_s = sqlite3_column_int64(stmt, RUN_LAST) / SECOND_NS};
    int rc = occ_user_texts_make(options->users, user ? user : "", &run->users, err);
    if (rc != 0)
        return rc;
    run->erased_before_s = find_erased_s(options->erased, user ? user : "", &run->users);
    (void)snprintf(run->uuid, sizeof run->uuid, "%s", (const char *)sqlite3_column_text(stmt, RUN_UUID));
    occ_body_put_columns(&run->added, stmt, RUN_ADDED, sqlite3_column_count(stmt) - RUN_ADDED);
    return !run->job || run->added.failed || !hash_groups(run) ? occ_outbox_no_memory(err) : 0;
}

bool occ_outbox_is_earlier(const struct occ_outbox *r, const struct occ_outbox_run *run, size_t form,
                           int64_t minute)
{
    return r->users && run->users.earlier[form] && minute <= r->users->earlier[form].until_minute;
}

bool occ_outbox_is_erased(const struct occ_outbox_run *run, int64_t minute)
{
    return minute < run->erased_before_s / 60;
}

void occ_outbox_put_added(struct occ_body *rows, const struct occ_outbox_run *run, unsigned int n)
{
    const char *at = run->added.data, *end = at + run->added.n;
    for (unsigned int i = 0; i < n; i++) {
        const char *tab = at < end ? memchr(at, '\t', (size_t)(end - at)) : NULL;
        size_t length = (size_t)((tab ? tab : end) - at);
        occ_body_put_raw(rows, "\t", 1);
        occ_body_put_raw(rows, at, length);
        at = tab ? tab + 1 : end;
    }
}

/* Adds the run's row, once per batch. */
static int add_run_row(struct occ_outbox *r, struct occ_batch *batch, int64_t id, struct occ_error *err)
{
    struct occ_body *rows = &batch->rows[OCC_SHIP_RUN];
    if (occ_map_get(&batch->runs, (uint64_t)id) != OCC_MAP_NONE)
        return 0;
    if (occ_map_put(&batch->runs, (uint64_t)id, 0) == OCC_MAP_NONE)
        return occ_outbox_no_memory(err);
    int rc = find(r, r->read_run_row, id, err);
    if (rc != 0)
        return rc;
    occ_body_put_columns(rows, r->read_run_row, 0, 1);
    occ_body_put_text(rows, batch->options.cluster, strlen(batch->options.cluster));
    occ_body_put_text(rows, batch->options.node, strlen(batch->options.node));
    occ_body_put_u64(rows, (uint64_t)r->identity);
    occ_body_put_columns(rows, r->read_run_row, 1, N_RUN_COL);
    occ_body_put_u64(rows, batch->options.version);
    occ_body_put_columns(rows, r->read_run_row, 1 + N_RUN_COL, (int)batch->options.added.run);
    occ_body_end_row(rows);
    (void)sqlite3_reset(r->read_run_row);
    return 0;
}

int occ_outbox_run(struct occ_outbox *r, struct occ_batch *batch, int64_t id,
                   const struct occ_outbox_run **ret_run, struct occ_error *err)
{
    uint32_t at = occ_map_get(&r->run_index, (uint64_t)id);
    int rc = 0;
    if (at == OCC_MAP_NONE) {
        at = (uint32_t)r->n_runs;
        rc = find(r, r->read_run, id, err);
        if (rc == 0 &&
            !occ_grow((void **)&r->runs, &r->allocated_runs, r->n_runs, ITEMS_MAX, sizeof *r->runs))
            rc = occ_outbox_no_memory(err);
        if (rc == 0)
            rc = fill_run(r->read_run, &batch->options, &r->runs[r->n_runs++], err);
        if (rc == 0 && occ_map_put(&r->run_index, (uint64_t)id, at) == OCC_MAP_NONE)
            rc = occ_outbox_no_memory(err);
        (void)sqlite3_reset(r->read_run);
    }
    if (rc == 0 && r->runs[at].last_s >= r->runs[at].erased_before_s)
        rc = add_run_row(r, batch, id, err);
    if (rc == 0)
        *ret_run = &r->runs[at];
    return rc;
}
