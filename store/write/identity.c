/* Runs, devices, kernels and ranges: the identity of launches. Outside of bulk transactions each put is a
 * separate transaction: the returned id stays valid even if the launches are not committed. One thread for
 * each handle. */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"
#include "support/cleanup.h"
#include "names/demangle.h"
#include "support/text.h"

#define KERNEL_NAME_MAX_BYTES 16384u

int occ_store_insert(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err)
{
    int64_t id = 0;
    int step = occ_store_step(s, stmt);
    if ((step & 0xff) == SQLITE_FULL) {
        (void)sqlite3_reset(stmt);
        if (occ_quota_make_room(s, NULL) == 0)
            step = sqlite3_step(stmt);
    }
    if (step == SQLITE_ROW) {
        id = sqlite3_column_int64(stmt, 0);
        step = sqlite3_step(stmt);
    }
    int rc = occ_store_end(s, stmt, step, "cannot write", err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* The id that a bound statement finds; 0: none. */
static int find(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_id, struct occ_error *err)
{
    int rc = occ_store_number(s, stmt, ret_id, err);
    return rc == OCC_E_NOT_FOUND ? 0 : rc;
}

/* Binds a copy that is safe to print and has a limited length; SQLite frees the copy. */
static void bind_foreign_text(struct occ_binder *b, const char *text, size_t max)
{
    char *copy = text ? strndup(text, max) : NULL;
    if (copy)
        occ_text_sanitise(copy);
    (void)sqlite3_bind_text(b->stmt, ++b->at, copy, -1, free);
}

/* ---- runs ---- */

static int put_node(struct occ_store *s, const char *hostname, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_NODE);
    int64_t none;
    bind_foreign_text(&b, hostname, OCC_STORE_TEXT_BYTES);
    return occ_store_insert(s, b.stmt, &none, err);
}

static void bind_run(struct occ_binder *b, const struct occ_run *run)
{
    occ_bind_blob(b, run->uuid, sizeof run->uuid);
    bind_foreign_text(b, run->hostname, OCC_STORE_TEXT_BYTES);
    occ_bind_known(b, run->pid);
    if (run->uid_unknown)
        b->at++; /* column stays NULL */
    else
        occ_bind_int(b, run->uid);
    occ_bind_int(b, run->start_ns);
    occ_bind_known(b, run->cupti.version);
    occ_bind_int(b, run->simulated);
    struct occ_run texts = *run;
    if (!texts.source.tool)
        texts.source.tool = "trace";
#define BIND_RUN_TEXT(column, member) bind_foreign_text(b, texts.member, OCC_STORE_TEXT_BYTES);
    OCC_SQL_RUN_TEXTS(BIND_RUN_TEXT)
}

int occ_store_put_run(struct occ_store *s, const struct occ_run *run, int64_t *ret_id, struct occ_error *err)
{
    int64_t id = 0;
    struct occ_run_state *state = NULL;
    int rc = occ_store_check_writable(s, err);
    if (rc == 0 && run->hostname)
        rc = put_node(s, run->hostname, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = occ_store_statement(s, OCC_SQL_PUT_RUN);
    bind_run(&b, run);
    rc = occ_store_insert(s, b.stmt, &id, err);
    if (rc == 0) /* drops the period of level unknown, which began when the run's last daemon ended */
        rc = occ_store_execute(s, OCC_SQL_DROP_UNKNOWN, OCC_INTS(id), err);
    if (rc == 0)
        rc = occ_store_run_state(s, id, &state, err);
    if (rc == 0 && run->end_ns > 0) {
        state->end_ns = run->end_ns;
        state->dirty = true;
    }
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* ---- devices ---- */

static void write_device_key(struct occ_writer *w, const struct occ_store_device *device)
{
    occ_write_bytes(w, device->uuid, sizeof device->uuid);
    if (memcmp(device->uuid, (uint8_t[16]){0}, sizeof device->uuid) == 0)
        occ_write_varint(w, device->number);
#define WRITE_LIMIT(column, field) occ_write_varint(w, device->limits.field);
    OCC_DEVICE_COLUMNS(WRITE_LIMIT)
    occ_write_bytes(w, device->name ? device->name : "", device->name ? strlen(device->name) : 0);
}

static int add_device(struct occ_store *s, const struct occ_store_device *device,
                      const struct occ_writer *key, int64_t *ret_id, struct occ_error *err)
{
    static const uint8_t unknown[16];
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_DEVICE);
    struct occ_device limits = device->limits;
    (void)occ_device_complete(&limits);      /* the model rejects configurations if a limit stays unknown */
    occ_bind_copy(&b, key->data, key->size); /* copied, because making room overwrites s->bytes */
    bool known = memcmp(device->uuid, unknown, sizeof unknown) != 0;
    occ_bind_blob(&b, known ? device->uuid : NULL, known ? sizeof device->uuid : 0);
    bind_foreign_text(&b, device->name ? device->name : "unknown device", 256);
    occ_bind_int(&b, device->simulated);
    occ_bind_known(&b, device->clock_khz);
    occ_bind_known(&b, device->memory_bytes > INT64_MAX ? 0 : (int64_t)device->memory_bytes);
    occ_bind_known(&b, device->driver_version);
#define BIND_LIMIT(column, field) occ_bind_int(&b, limits.field);
    OCC_DEVICE_COLUMNS(BIND_LIMIT)
    return occ_store_insert(s, b.stmt, ret_id, err);
}

int occ_store_put_device(struct occ_store *s, const struct occ_store_device *device, int64_t *ret_id,
                         struct occ_error *err)
{
    int64_t id = 0;
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    occ_writer_restart(&s->bytes);
    write_device_key(&s->bytes, device);
    if (s->bytes.failed)
        return occ_no_memory(err);
    struct occ_binder b = occ_store_statement(s, OCC_SQL_FIND_DEVICE);
    occ_bind_blob(&b, s->bytes.data, s->bytes.size);
    rc = find(s, b.stmt, &id, err);
    if (rc == 0 && id == 0)
        rc = add_device(s, device, &s->bytes, &id, err);
    else if (rc == 0 && device->driver_version != 0)
        rc = occ_store_execute(s, OCC_SQL_TOUCH_DEVICE, OCC_INTS(id, device->driver_version), err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

int occ_store_device_limits(struct occ_store *s, int64_t device, struct occ_device *ret_limits,
                            struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_DEVICE_LIMITS, OCC_INTS(device));
    int at = 0, rc = 0;
    *ret_limits = (struct occ_device){0};
    while (occ_store_next(s, stmt, &rc, err)) {
#define READ_LIMIT(column, field) ret_limits->field = (uint32_t)occ_column_clamped(stmt, ++at, 0, UINT32_MAX);
        OCC_DEVICE_COLUMNS(READ_LIMIT)
    }
    return rc != 0 || at > 0
               ? rc
               : occ_fail(err, OCC_E_NOT_FOUND, "%s: no device %lld", s->path, (long long)device);
}

/* ---- periods ---- */

int occ_store_put_period(struct occ_store *s, int64_t run, const struct occ_period *period,
                         struct occ_error *err)
{
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    if (period->until_ns == period->from_ns)
        return occ_store_execute(s, OCC_SQL_DROP_PERIOD, OCC_INTS(run, period->from_ns), err);
    struct occ_binder b = occ_store_statement(s, OCC_SQL_SET_PERIOD);
    occ_bind_int(&b, run);
    occ_bind_int(&b, period->from_ns);
    occ_bind_int(&b, period->until_ns);
    occ_bind_text(&b, period->level);
    occ_bind_text(&b, period->reason);
    return occ_store_run(s, b.stmt, err);
}

/* ---- kernels ---- */

static int find_kernel(struct occ_store *s, const char *mangled, int64_t hash, int64_t *ret_id,
                       struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_FIND_KERNEL);
    occ_bind_int(&b, hash);
    occ_bind_text(&b, mangled);
    return find(s, b.stmt, ret_id, err);
}

static int add_kernel(struct occ_store *s, const char *mangled, int64_t hash, int64_t *ret_id,
                      struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_KERNEL);
    _cleanup_(occ_freep) char *demangled = NULL, *shorter = NULL;
    if (occ_demangle(mangled, &demangled, &shorter) != 0)
        return occ_no_memory(err);
    occ_bind_int(&b, hash);
    occ_bind_text(&b, mangled);
    occ_bind_text(&b, demangled);
    occ_bind_text(&b, shorter);
    return occ_store_insert(s, b.stmt, ret_id, err);
}

int occ_store_put_kernel(struct occ_store *s, const char *mangled, uint64_t name_hash, int64_t *ret_id,
                         struct occ_error *err)
{
    int64_t id = 0, hash = 0;
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    memcpy(&hash, &name_hash, sizeof hash);
    _cleanup_(occ_freep) char *name = strndup(mangled, KERNEL_NAME_MAX_BYTES);
    if (!name)
        return occ_no_memory(err);
    occ_text_sanitise(name);
    rc = find_kernel(s, name, hash, &id, err);
    if (rc == 0 && id == 0)
        rc = occ_names_check(s, err);
    if (rc == 0 && id == 0)
        rc = add_kernel(s, name, hash, &id, err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* ---- ranges ---- */

int occ_store_put_range(struct occ_store *s, int64_t run, const char *path, const char *phase,
                        uint32_t *ret_range, struct occ_error *err)
{
    static const enum occ_sql statements[] = {OCC_SQL_FIND_RANGE, OCC_SQL_ADD_RANGE};
    size_t bytes = strlen(path);
    int64_t id = 0;
    int rc = occ_store_check_writable(s, err);
    path += bytes > OCC_STORE_RANGE_BYTES ? bytes - OCC_STORE_RANGE_BYTES : 0;
    for (size_t i = 0; i < 2 && rc == 0 && id == 0; i++) {
        struct occ_binder b = occ_store_statement(s, statements[i]);
        occ_bind_int(&b, run);
        bind_foreign_text(&b, path, OCC_STORE_RANGE_BYTES);
        occ_bind_text(&b, phase ? phase : "");
        if (statements[i] == OCC_SQL_FIND_RANGE) {
            rc = find(s, b.stmt, &id, err);
        } else {
            occ_bind_int(&b, occ_names_check(s, NULL) == 0 ? OCC_STORE_RANGES_MAX : 0);
            rc = occ_store_insert(s, b.stmt, &id, err);
        }
    }
    if (rc == 0)
        *ret_range = (uint32_t)id;
    return rc;
}
