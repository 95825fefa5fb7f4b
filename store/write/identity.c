/*
 * Who launched what on what: runs, devices, kernels, launch configurations, and the one place where a configuration is
 * analysed. Each put is a transaction of its own (outside occ_store_begin_bulk()): the id that it returns stays valid,
 * whatever becomes of the launches. One thread a handle.
 */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"
#include "store/config_columns.h"
#include "support/cleanup.h"
#include "support/demangle.h"
#include "support/text.h"

#define KERNEL_NAME_MAX_BYTES 16384u

#define MARK_2(a, b)    ", ?"
#define MARK_3(a, b, c) ", ?"

/* clang-format off */
static const char add_device_sql[] =
    "INSERT INTO stored_device(key, uuid, name, simulated, clock_khz, memory_bytes, driver_version"
    OCC_DEVICE_COLUMNS(OCC_COLUMN_2)
    ") VALUES(?, ?, ?, ?, ?, ?, ?"
    OCC_DEVICE_COLUMNS(MARK_2)
    ") ON CONFLICT(key) DO UPDATE SET key = excluded.key RETURNING device_id";

#define SET(column)             ", " column " = excluded." column
#define SET_2(column, field)       SET(#column)
#define SET_3(column, field, type) SET(#column)
#define SET_LIMIT(name, word, text) SET("limit_" word)
#define SET_CAUSE(name, word, text) SET("cause_" word)

/* A new configuration, or one that an older model analysed (or another process added a moment ago): keeps its id. */
static const char put_config_sql[] =
    "INSERT INTO stored_launch_config(key, kernel_id, device_id"
    OCC_LAUNCH_COLUMNS(OCC_COLUMN_2) ", shared_optin" OCC_CONFIG_COLUMNS(OCC_COLUMN_2)
    ", model_version, refused, limiters, main_cause"
    OCC_RESULT_REALS(OCC_COLUMN_2) OCC_RESULT_INTEGERS(OCC_COLUMN_3)
    OCC_LIMITS(OCC_COLUMN_LIMIT) OCC_CAUSES(OCC_COLUMN_CAUSE)
    ") VALUES(?, ?, ?"
    OCC_LAUNCH_COLUMNS(MARK_2) ", ?" OCC_CONFIG_COLUMNS(MARK_2)
    ", ?, ?, ?, ?"
    OCC_RESULT_REALS(MARK_2) OCC_RESULT_INTEGERS(MARK_3)
    OCC_LIMITS(MARK_3) OCC_CAUSES(MARK_3)
    ") ON CONFLICT(key) DO UPDATE SET model_version = excluded.model_version"
    SET("refused") SET("limiters") SET("main_cause")
    OCC_RESULT_REALS(SET_2) OCC_RESULT_INTEGERS(SET_3)
    OCC_LIMITS(SET_LIMIT) OCC_CAUSES(SET_CAUSE)
    " RETURNING config_id";

/* Texts of a run: what is unknown now does not erase what was known, but a level comes with its own reason, or none.
 * X(column of stored_run, member of struct occ_run) */
#define KEPT_TEXTS(X)                                                                                        \
    X(exe, exe) X(command_line, cmdline) X(cwd, cwd) X(user, user) X(label, label) X(session_id, session)    \
    X(slurm_job, slurm_job) X(slurm_step, slurm_step) X(k8s_pod, k8s_pod) X(k8s_namespace, k8s_namespace)    \
    X(container, container) X(source, source) X(level, level) X(source_version, source_version)              \
    X(source_file, source_file) X(source_hash, source_hash) X(missing_fields, missing_fields) X(rank, rank) \
    X(time_base, time_base)
#define RUN_TEXTS(X) KEPT_TEXTS(X) X(level_reason, level_reason)

#define KEEP_2(column, member) ", " #column " = coalesce(excluded." #column ", " #column ")"

static const char put_run_sql[] =
    "INSERT INTO stored_run(uuid, node_id, pid, uid, start_ns, end_ns, cupti_version, simulated"
    RUN_TEXTS(OCC_COLUMN_2)
    ") VALUES(?, ?, ?, ?, ?, ?, ?, ?"
    RUN_TEXTS(MARK_2)
    ") ON CONFLICT(uuid) DO UPDATE SET node_id = coalesce(excluded.node_id, node_id), pid = excluded.pid,"
    " uid = excluded.uid, start_ns = excluded.start_ns, end_ns = coalesce(excluded.end_ns, end_ns),"
    " cupti_version = coalesce(excluded.cupti_version, cupti_version), simulated = excluded.simulated"
    KEPT_TEXTS(KEEP_2)
    ", level_reason = CASE WHEN excluded.level IS NULL THEN level_reason ELSE excluded.level_reason END RETURNING run_id";
/* clang-format on */

/* A statement that is needed rarely. */
static int prepare(struct occ_store *s, const char *sql, sqlite3_stmt **ret, struct occ_error *err)
{
    int rc = sqlite3_prepare_v2(s->db, sql, -1, ret, NULL);
    return rc == SQLITE_OK ? 0 : occ_sql_fail(s->db, s->path, rc, err, "cannot prepare a statement");
}

/* After the first step, which gave `rc`: runs a statement to its end. *ret_id is its first number, 0 without a row. */
static int finish_id(struct occ_store *s, sqlite3_stmt *stmt, int rc, int64_t *ret_id, struct occ_error *err,
                     const char *what)
{
    int64_t id = 0;
    if (rc == SQLITE_ROW) {
        id = sqlite3_column_int64(stmt, 0);
        rc = sqlite3_step(stmt);
    }
    int failed = rc == SQLITE_DONE ? 0 : occ_sql_fail(s->db, s->path, rc, err, what);
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    if (failed == 0)
        *ret_id = id;
    return failed;
}

static int step_id(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err,
                   const char *what)
{
    return finish_id(s, stmt, sqlite3_step(stmt), ret_id, err, what);
}

/* A statement that is needed for each of thousands of configurations: kept with the handle. */
static int prepare_kept(struct occ_store *s, sqlite3_stmt **slot, const char *sql, struct occ_error *err)
{
    if (*slot)
        return 0;
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
    return rc == SQLITE_OK ? 0 : occ_sql_fail(s->db, s->path, rc, err, "cannot prepare a statement");
}

/* step_id(), and once more with room made when the file is full. */
static int insert(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err,
                  const char *what)
{
    int rc = sqlite3_step(stmt);
    if ((rc & 0xff) == SQLITE_FULL) {
        (void)sqlite3_reset(stmt);
        if (occ_quota_make_room(s, NULL) == 0)
            rc = sqlite3_step(stmt);
    }
    return finish_id(s, stmt, rc, ret_id, err, what);
}

/* A copy that is safe to print and not too long; SQLite frees it. */
static void bind_foreign_text(struct occ_binder *b, const char *text, size_t most)
{
    char *copy = text ? strndup(text, most) : NULL;
    if (copy)
        occ_text_sanitise(copy);
    (void)sqlite3_bind_text(b->stmt, ++b->at, copy, -1, free);
}

static int must_write(const struct occ_store *s, struct occ_error *err)
{
    if (s->options.mode == OCC_STORE_WRITE)
        return 0;
    return occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
}

/* ---- runs ---- */

static int put_node(struct occ_store *s, const char *hostname, int64_t *ret_id, struct occ_error *err)
{
    if (!hostname)
        return 0;
    const enum occ_sql steps[] = {OCC_SQL_FIND_NODE, OCC_SQL_ADD_NODE, OCC_SQL_FIND_NODE};
    int rc = 0;
    for (size_t i = 0; i < 3 && rc == 0 && *ret_id == 0; i++) {
        sqlite3_stmt *stmt = NULL;
        rc = occ_store_statement(s, steps[i], &stmt, err);
        if (rc != 0)
            return rc;
        struct occ_binder b = {.stmt = stmt};
        bind_foreign_text(&b, hostname, OCC_STORE_TEXT_BYTES);
        rc = step_id(s, stmt, ret_id, err, "cannot add a node");
    }
    return rc;
}

int occ_store_put_run(struct occ_store *s, const struct occ_run *run, int64_t *ret_id, struct occ_error *err)
{
    int64_t node = 0, id = 0;
    sqlite3_stmt *stmt = NULL;
    int rc = must_write(s, err);
    if (rc == 0)
        rc = put_node(s, run->hostname, &node, err);
    if (rc == 0)
        rc = prepare(s, put_run_sql, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, run->uuid, sizeof run->uuid);
    occ_bind_known(&b, node);
    occ_bind_known(&b, run->pid);
    if (run->uid_unknown)
        (void)sqlite3_bind_null(stmt, ++b.at);
    else
        occ_bind_int(&b, run->uid);
    occ_bind_int(&b, run->start_ns);
    occ_bind_known(&b, run->end_ns);
    occ_bind_known(&b, run->cupti_version);
    occ_bind_int(&b, run->simulated);
    struct occ_run texts = *run;
    if (!texts.source)
        texts.source = "trace";
#define X(column, member) bind_foreign_text(&b, texts.member, OCC_STORE_TEXT_BYTES);
    RUN_TEXTS(X)
#undef X
    rc = insert(s, stmt, &id, err, "cannot add a run");
    (void)sqlite3_finalize(stmt);
    struct occ_run_state *state = NULL;
    if (rc == 0)
        rc = occ_store_run_state(s, id, &state, err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

int occ_store_run_user(struct occ_store *s, const uint8_t uuid[16], uint32_t *ret_uid, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_RUN_USER, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, uuid, 16);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        *ret_uid = (uint32_t)sqlite3_column_int64(stmt, 0);
    else
        rc = step == SQLITE_DONE ? occ_fail(err, OCC_E_NOT_FOUND, "%s: no such run", s->path)
                                 : occ_sql_fail(s->db, s->path, step, err, "cannot read a run");
    (void)sqlite3_reset(stmt);
    return rc;
}

/* ---- devices ---- */

static void write_device_key(struct occ_writer *w, const struct occ_store_device *device)
{
    occ_write_bytes(w, device->uuid, sizeof device->uuid);
#define X(column, field) occ_write_varint(w, device->limits.field);
    OCC_DEVICE_COLUMNS(X)
#undef X
    occ_write_bytes(w, device->name ? device->name : "", device->name ? strlen(device->name) : 0);
}

static int find_by_key(struct occ_store *s, enum occ_sql which, const struct occ_writer *key, int64_t *ret_id,
                       struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, key->data, key->size);
    return step_id(s, stmt, ret_id, err, "cannot read");
}

static int add_device(struct occ_store *s, const struct occ_store_device *device,
                      const struct occ_writer *key, int64_t *ret_id, struct occ_error *err)
{
    static const uint8_t unknown[16];
    sqlite3_stmt *stmt = NULL;
    struct occ_device limits = device->limits;
    (void)occ_device_complete(&limits); /* the model refuses configurations for what stays unknown */
    int rc = prepare(s, add_device_sql, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, key->data, key->size);
    bool known = memcmp(device->uuid, unknown, sizeof unknown) != 0;
    occ_bind_blob(&b, known ? device->uuid : NULL, known ? sizeof device->uuid : 0);
    bind_foreign_text(&b, device->name ? device->name : "unknown device", 256);
    occ_bind_int(&b, device->simulated);
    occ_bind_known(&b, device->clock_khz);
    occ_bind_known(&b, device->memory_bytes > INT64_MAX ? 0 : (int64_t)device->memory_bytes);
    occ_bind_known(&b, device->driver_version);
#define X(column, field) occ_bind_int(&b, limits.field);
    OCC_DEVICE_COLUMNS(X)
#undef X
    rc = insert(s, stmt, ret_id, err, "cannot add a device");
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int touch_device(struct occ_store *s, int64_t id, uint32_t driver_version, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (driver_version == 0)
        return 0;
    int rc = occ_store_statement(s, OCC_SQL_TOUCH_DEVICE, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, id);
    occ_bind_int(&b, driver_version);
    return occ_store_run(s, stmt, err, "cannot update a device");
}

int occ_store_put_device(struct occ_store *s, const struct occ_store_device *device, int64_t *ret_id,
                         struct occ_error *err)
{
    int64_t id = 0;
    int rc = must_write(s, err);
    if (rc != 0)
        return rc;
    s->bytes.size = 0;
    write_device_key(&s->bytes, device);
    if (s->bytes.failed)
        return occ_store_no_memory(err);
    rc = find_by_key(s, OCC_SQL_FIND_DEVICE, &s->bytes, &id, err);
    if (rc == 0)
        rc = id != 0 ? touch_device(s, id, device->driver_version, err)
                     : add_device(s, device, &s->bytes, &id, err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

static int load_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                       struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = prepare(s, "SELECT 1" OCC_DEVICE_COLUMNS(OCC_COLUMN_2) " FROM stored_device WHERE device_id = ?",
                     &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, device);
    int step = sqlite3_step(stmt), at = 1;
    if (step == SQLITE_ROW) {
#define X(column, field) ret_limits->field = (uint32_t)sqlite3_column_int64(stmt, at++);
        OCC_DEVICE_COLUMNS(X)
#undef X
    } else {
        rc = step == SQLITE_DONE
                 ? occ_fail(err, OCC_E_NOT_FOUND, "%s: no device %lld", s->path, (long long)device)
                 : occ_sql_fail(s->db, s->path, step, err, "cannot read a device");
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_store_device_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                            struct occ_error *err)
{
    for (uint32_t i = 0; i < s->n_devices && i < OCC_DEVICES_KEPT; i++)
        if (s->devices[i].id == device) {
            *ret_limits = s->devices[i].limits;
            return 0;
        }
    struct occ_device_entry entry = {.id = device};
    int rc = load_limits(s, device, &entry.limits, err);
    if (rc != 0)
        return rc;
    s->devices[s->n_devices++ % OCC_DEVICES_KEPT] = entry;
    *ret_limits = entry.limits;
    return 0;
}

/* ---- kernels ---- */

static int find_kernel(struct occ_store *s, const char *mangled, int64_t hash, int64_t *ret_id,
                       struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_FIND_KERNEL, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, hash);
    occ_bind_text(&b, mangled);
    return step_id(s, stmt, ret_id, err, "cannot read");
}

static const char add_kernel_sql[] =
    "INSERT INTO stored_kernel(hash, mangled, demangled, short) VALUES(?, ?, ?, ?) "
    "ON CONFLICT(hash, mangled) DO UPDATE SET hash = excluded.hash RETURNING kernel_id";

static int add_kernel(struct occ_store *s, const char *mangled, int64_t hash, int64_t *ret_id,
                      struct occ_error *err)
{
    _cleanup_(occ_freep) char *demangled = NULL, *shorter = NULL;
    if (occ_demangle(mangled, &demangled, &shorter) != 0)
        return occ_store_no_memory(err);
    int rc = prepare_kept(s, &s->add_kernel, add_kernel_sql, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = s->add_kernel};
    occ_bind_int(&b, hash);
    occ_bind_text(&b, mangled);
    occ_bind_text(&b, demangled);
    occ_bind_text(&b, shorter);
    return insert(s, s->add_kernel, ret_id, err, "cannot add a kernel");
}

int occ_store_put_kernel(struct occ_store *s, const char *mangled, uint64_t name_hash, int64_t *ret_id,
                         struct occ_error *err)
{
    int64_t id = 0, hash = 0;
    int rc = must_write(s, err);
    if (rc != 0)
        return rc;
    memcpy(&hash, &name_hash, sizeof hash);
    _cleanup_(occ_freep) char *name = strndup(mangled, KERNEL_NAME_MAX_BYTES);
    if (!name)
        return occ_store_no_memory(err);
    occ_text_sanitise(name);
    rc = find_kernel(s, name, hash, &id, err);
    if (rc == 0 && id == 0)
        rc = add_kernel(s, name, hash, &id, err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* ---- launch configurations ---- */

static void write_config_key(struct occ_writer *w, const struct occ_launch_config *config)
{
    const struct occ_launch *launch = &config->launch;
    occ_write_varint(w, (uint64_t)config->kernel);
    occ_write_varint(w, (uint64_t)config->device);
#define X(column, field) occ_write_varint(w, (uint32_t)launch->field);
    OCC_LAUNCH_COLUMNS(X)
#undef X
    occ_write_u8(w, (uint8_t)(launch->smem_optin_known ? 1 + launch->smem_optin : 0));
#define X(column, field) occ_write_varint(w, config->field);
    OCC_CONFIG_COLUMNS(X)
#undef X
}

static void bind_nulls(struct occ_binder *b, int n)
{
    for (int i = 0; i < n; i++)
        (void)sqlite3_bind_null(b->stmt, ++b->at);
}

static void bind_result(struct occ_binder *b, const struct occ_result *result)
{
    unsigned cause = occ_largest_cause(result->cause);
    char limiters[64];
    (void)sqlite3_bind_text(b->stmt, ++b->at, occ_limiters_text(result->limiters, limiters, sizeof limiters),
                            -1, SQLITE_TRANSIENT);
    occ_bind_text(b, cause < OCC_CAUSE_COUNT ? occ_cause_word((enum occ_cause)cause) : NULL);
#define X(column, field) occ_bind_real(b, result->field);
    OCC_RESULT_REALS(X)
#undef X
#define X(column, field, type) occ_bind_int(b, (int64_t)result->field);
    OCC_RESULT_INTEGERS(X)
#undef X
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++)
        if (result->limit[i] == OCC_NO_LIMIT)
            bind_nulls(b, 1);
        else
            occ_bind_int(b, result->limit[i]);
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        occ_bind_real(b, result->cause[i]);
}

/* Asks the model and stores the configuration. */
static int write_config(struct occ_store *s, const struct occ_launch_config *config,
                        const struct occ_writer *key, int64_t *ret_id, struct occ_error *err)
{
    struct occ_device limits;
    struct occ_result result;
    int rc = occ_store_device_limits(s, config->device, &limits, err);
    if (rc == 0)
        rc = prepare_kept(s, &s->put_config, put_config_sql, err);
    if (rc != 0)
        return rc;
    enum occ_status status = occ_analyse(&limits, &config->launch, &result);
    struct occ_binder b = {.stmt = s->put_config};
    occ_bind_blob(&b, key->data, key->size);
    occ_bind_int(&b, config->kernel);
    occ_bind_int(&b, config->device);
#define X(column, field) occ_bind_int(&b, config->launch.field);
    OCC_LAUNCH_COLUMNS(X)
#undef X
    if (config->launch.smem_optin_known)
        occ_bind_int(&b, config->launch.smem_optin);
    else
        bind_nulls(&b, 1);
#define X(column, field) occ_bind_int(&b, config->field);
    OCC_CONFIG_COLUMNS(X)
#undef X
    occ_bind_int(&b, OCC_MODEL_VERSION);
    occ_bind_text(&b, status == OCC_OK ? NULL : occ_status_text(status));
    if (status == OCC_OK)
        bind_result(&b, &result);
    return insert(s, s->put_config, ret_id, err, "cannot add a launch configuration");
}

static int find_config(struct occ_store *s, const struct occ_writer *key, int64_t *ret_id,
                       int64_t *ret_version, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_FIND_CONFIG, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_blob(&b, key->data, key->size);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(stmt, 0);
        *ret_version = sqlite3_column_int64(stmt, 1);
        step = SQLITE_DONE;
    }
    rc = step == SQLITE_DONE ? 0
                             : occ_sql_fail(s->db, s->path, step, err, "cannot read a launch configuration");
    (void)sqlite3_reset(stmt);
    return rc;
}

int occ_store_put_config(struct occ_store *s, const struct occ_launch_config *config, int64_t *ret_id,
                         struct occ_error *err)
{
    int64_t id = 0, version = 0;
    int rc = must_write(s, err);
    if (rc != 0)
        return rc;
    s->bytes.size = 0;
    write_config_key(&s->bytes, config);
    if (s->bytes.failed)
        return occ_store_no_memory(err);
    rc = find_config(s, &s->bytes, &id, &version, err);
    if (rc == 0 && (id == 0 || version != OCC_MODEL_VERSION))
        rc = write_config(s, config, &s->bytes, &id, err);
    if (rc == 0 && (id <= 0 || id > UINT32_MAX))
        rc = occ_fail(err, OCC_E_FULL, "%s: too many launch configurations", s->path);
    if (rc == 0)
        *ret_id = id;
    return rc;
}
