/*
 * Launch configurations. All are analysed here, so that traced and imported configurations cannot differ.
 * An answer stays: a configuration has a row for each version of the model whose programs recorded it. Rows
 * of a warehouse are identified by the answer (docs/decisions/0063-warehouse-migrations.md).
 * Outside of bulk transactions each put is a separate transaction. One thread for each handle.
 */
#include <stdio.h>

#include "occupancy/waterfall.h"
#include "names/owners.h"
#include "store/internal.h"

/* Programs of this version of the model and earlier ones replace another version's answer in the row with the
 * plain key. They cannot find a key with a version. */
#define LAST_REPLACING_MODEL 3

/* The plain key. Its values are self-delimiting, so no plain key begins another one; a new value must be
 * written before them. */
static void write_config_key(struct occ_writer *w, const struct occ_launch_config *config)
{
    const struct occ_launch *launch = &config->launch;
    occ_write_varint(w, (uint64_t)config->kernel);
    occ_write_varint(w, (uint64_t)config->device);
#define WRITE_LAUNCH(column, field) occ_write_varint(w, (uint32_t)launch->field);
    OCC_LAUNCH_COLUMNS(WRITE_LAUNCH)
    occ_write_u8(w, (uint8_t)(launch->smem_optin_known ? 1 + launch->smem_optin : 0));
#define WRITE_CONFIG(column, field) occ_write_varint(w, config->field);
    OCC_CONFIG_COLUMNS(WRITE_CONFIG)
}

static void bind_result(struct occ_binder *b, const struct occ_result *result)
{
    unsigned cause = occ_largest_part(result->cause, OCC_CAUSE_COUNT);
    char limiters[64];
    (void)sqlite3_bind_text(b->stmt, ++b->at, occ_limiters_text(result->limiters, limiters, sizeof limiters),
                            -1, SQLITE_TRANSIENT);
    occ_bind_text(b, cause < OCC_CAUSE_COUNT ? occ_cause_word((enum occ_cause)cause) : NULL);
#define BIND_REAL(column, field) occ_bind_real(b, result->field);
    OCC_RESULT_REALS(BIND_REAL)
#define BIND_INTEGER(column, field, type) occ_bind_int(b, (int64_t)result->field);
    OCC_RESULT_INTEGERS(BIND_INTEGER)
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++)
        if (result->limit[i] == OCC_NO_LIMIT)
            b->at++; /* column stays NULL */
        else
            occ_bind_int(b, result->limit[i]);
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        occ_bind_real(b, result->cause[i]);
}

/* Runs the model and stores the configuration. */
static int write_config(struct occ_store *s, const struct occ_launch_config *config,
                        const struct occ_writer *key, int64_t *ret_id, struct occ_error *err)
{
    struct occ_device limits;
    struct occ_result result;
    int rc = occ_store_device_limits(s, config->device, &limits, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = occ_store_statement(s, OCC_SQL_PUT_CONFIG);
    enum occ_status status = occ_analyse(&limits, &config->launch, &result);
    occ_bind_copy(&b, key->data, key->size); /* copied, because making room overwrites s->bytes */
    occ_bind_int(&b, config->kernel);
    occ_bind_int(&b, config->device);
#define BIND_LAUNCH(column, field) occ_bind_int(&b, config->launch.field);
    OCC_LAUNCH_COLUMNS(BIND_LAUNCH)
    if (config->launch.smem_optin_known)
        occ_bind_int(&b, config->launch.smem_optin);
    else
        b.at++; /* column stays NULL */
#define BIND_CONFIG(column, field) occ_bind_int(&b, config->field);
    OCC_CONFIG_COLUMNS(BIND_CONFIG)
    occ_bind_int(&b, OCC_MODEL_VERSION);
    occ_bind_text(&b, status == OCC_OK ? NULL : occ_status_text(status));
    if (status == OCC_OK)
        bind_result(&b, &result);
    return occ_store_insert(s, b.stmt, ret_id, err);
}

/* A row of a configuration; id 0: none. */
struct found {
    int64_t id, version;
    bool has_plain_key;
};

/* Finds the row of this version of the model; else another version's, if possible the one with the plain key.
 * The plain key is in s->bytes. */
static int find_config(struct occ_store *s, struct found *ret_found, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_FIND_CONFIG);
    int rc = 0;
    *ret_found = (struct found){0};
    occ_write_u8(&s->bytes, UINT8_MAX); /* the end of the keys that begin with the plain one */
    if (s->bytes.failed)
        return occ_no_memory(err);
    occ_bind_blob(&b, s->bytes.data, s->bytes.size - 1);
    occ_bind_blob(&b, s->bytes.data, s->bytes.size);
    occ_bind_int(&b, OCC_MODEL_VERSION);
    s->bytes.size--;
    while (occ_store_next(s, b.stmt, &rc, err))
        *ret_found = (struct found){.id = sqlite3_column_int64(b.stmt, 0),
                                    .version = sqlite3_column_int64(b.stmt, 1),
                                    .has_plain_key = sqlite3_column_int(b.stmt, 2) != 0};
    return rc;
}

/* Adds this version's row. Without room for another name the launches keep the answer that is there. */
static int add_config(struct occ_store *s, const struct occ_launch_config *config, const struct found *other,
                      int64_t *ret_id, struct occ_error *err)
{
    int rc = occ_names_check(s, other->id == 0 ? err : NULL);
    *ret_id = other->id;
    if (rc == OCC_E_DENIED && other->id != 0)
        return 0;
    if (OCC_MODEL_VERSION > LAST_REPLACING_MODEL || other->has_plain_key)
        occ_write_varint(&s->bytes, OCC_MODEL_VERSION);
    if (rc == 0 && s->bytes.failed)
        rc = occ_no_memory(err);
    return rc == 0 ? write_config(s, config, &s->bytes, ret_id, err) : rc;
}

int occ_store_put_config(struct occ_store *s, const struct occ_launch_config *config, int64_t *ret_id,
                         struct occ_error *err)
{
    struct found found;
    int rc = occ_store_check_writable(s, err);
    if (rc != 0)
        return rc;
    occ_writer_restart(&s->bytes);
    write_config_key(&s->bytes, config);
    rc = find_config(s, &found, err);
    int64_t id = found.id;
    if (rc == 0 && (found.id == 0 || found.version != OCC_MODEL_VERSION))
        rc = add_config(s, config, &found, &id, err);
    if (rc == 0 && (id <= 0 || id > UINT32_MAX))
        rc = occ_fail(err, OCC_E_FULL, "%s: too many launch configurations", s->path);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

int occ_store_config_model(struct occ_store *s, int64_t config, struct occ_result *ret_result,
                           struct occ_error *err)
{
    bool found = false;
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_CONFIG_MODEL, OCC_INTS(config));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        found = true;
        *ret_result = (struct occ_result){.theoretical = sqlite3_column_double(stmt, 0),
                                          .grid_blocks = (uint64_t)sqlite3_column_int64(stmt, 1),
                                          .wave_blocks = (uint64_t)sqlite3_column_int64(stmt, 2),
                                          .warps_per_block = (uint32_t)sqlite3_column_int64(stmt, 3),
                                          .blocks_per_sm = (uint32_t)sqlite3_column_int64(stmt, 4)};
    }
    return rc != 0 || found ? rc
                            : occ_fail(err, OCC_E_NOT_FOUND, "%s: no analysis of launch configuration %lld",
                                       s->path, (long long)config);
}

static bool is_communication(const char *demangled)
{
    struct occ_kernel_owner owner;
    occ_kernel_owner(demangled ? demangled : "", &owner);
    return owner.owner == OCC_OWNER_COMMUNICATION;
}

int occ_store_summarize_config(struct occ_store *s, int64_t config, struct occ_config_summary *ret_summary,
                               struct occ_error *err)
{
    bool found = false;
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_CONFIG_SUMMARY, OCC_INTS(config));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        struct occ_config_summary *r = ret_summary;
        found = true;
        *r = (struct occ_config_summary){.warps = sqlite3_column_double(stmt, 2),
                                         .theoretical = sqlite3_column_double(stmt, 3),
                                         .expected_elapsed_low = sqlite3_column_double(stmt, 4),
                                         .expected_elapsed_high = sqlite3_column_double(stmt, 5)};
        (void)snprintf(r->kernel, sizeof r->kernel, "%s", (const char *)sqlite3_column_text(stmt, 0));
        (void)snprintf(r->device, sizeof r->device, "%s", (const char *)sqlite3_column_text(stmt, 1));
        for (int i = 0; i < OCC_CAUSE_COUNT; i++)
            r->cause[i] = sqlite3_column_double(stmt, 6 + i);
        r->is_refused = sqlite3_column_int(stmt, 6 + OCC_CAUSE_COUNT) != 0;
        r->is_communication = is_communication((const char *)sqlite3_column_text(stmt, 7 + OCC_CAUSE_COUNT));
    }
    return rc != 0 || found ? rc
                            : occ_fail(err, OCC_E_NOT_FOUND, "%s: no launch configuration %lld", s->path,
                                       (long long)config);
}

int occ_store_put_reported(struct occ_store *s, int64_t run, int64_t config,
                           const struct occ_reported_occupancy *reported, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_REPORTED);
    occ_bind_int(&b, run);
    occ_bind_int(&b, config);
    occ_bind_int(&b, (int64_t)reported->launches);
    occ_bind_real(&b, reported->mean);
    occ_bind_real(&b, reported->min);
    occ_bind_real(&b, reported->max);
    return occ_store_run(s, b.stmt, err);
}

int occ_store_add_ncu_metric(struct occ_store *s, const struct occ_ncu_metric *metric, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_ADD_NCU_METRIC);
    occ_bind_int(&b, metric->hour);
    occ_bind_int(&b, metric->run);
    occ_bind_int(&b, metric->config);
    occ_bind_int(&b, metric->correlation);
    occ_bind_text(&b, metric->name);
    occ_bind_text(&b, metric->unit);
    occ_bind_real(&b, metric->value);
    return occ_store_run(s, b.stmt, err);
}
