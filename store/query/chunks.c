/* See store/chunks.h. */
#include "store/chunks.h"

#include <sqlite3.h>

static const char *const texts[OCC_CHUNKS_KINDS] = {
    [OCC_CHUNKS_OF_DEVICE] =
        "SELECT d.data FROM stored_chunk c LEFT JOIN stored_chunk_data d USING(chunk_id) JOIN stored_run r "
        "USING(run_id) WHERE c.device_id = ? AND c.last_end_ns > ? AND c.first_start_ns < ? AND "
        "r.source_hash IS NULL AND r.time_base IS NOT 'unknown'",
    [OCC_CHUNKS_OF_RUN] =
        "SELECT d.data FROM stored_chunk c LEFT JOIN stored_chunk_data d USING(chunk_id) WHERE c.run_id = ? "
        "AND c.last_start_ns >= ? AND c.first_start_ns < ?"};

static int fail_sql(sqlite3 *db, int code, struct occ_error *err)
{
    return code == SQLITE_NOMEM ? occ_no_memory(err) : occ_fail(err, OCC_E_CORRUPT, "%s", sqlite3_errmsg(db));
}

static int visit_chunk(sqlite3_stmt *stmt, struct occ_columns_decoder *decoder, uint32_t columns,
                       occ_chunk_visitor *visit, void *context, struct occ_error *err)
{
    struct occ_columns chunk;
    const void *data = sqlite3_column_blob(stmt, 0);
    int rc = data ? occ_columns_decode(decoder, data, (size_t)sqlite3_column_bytes(stmt, 0), columns, &chunk)
                  : OCC_E_CORRUPT;
    if (rc == OCC_E_NO_MEMORY)
        return occ_no_memory(err);
    if (rc != 0)
        return occ_fail(err, OCC_E_CORRUPT, "a chunk of launches is damaged");
    return visit(context, &chunk) ? 0 : occ_fail(err, OCC_E_FULL, "more launches than are wanted");
}

int occ_chunks_visit(sqlite3 *db, struct occ_columns_decoder *decoder,
                     const struct occ_chunks_question *question, occ_chunk_visitor *visit, void *context,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0, code = sqlite3_prepare_v2(db, texts[question->kind], -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return fail_sql(db, code, err);
    (void)sqlite3_bind_int64(stmt, 1, question->id);
    (void)sqlite3_bind_int64(stmt, 2, question->from_ns);
    (void)sqlite3_bind_int64(stmt, 3, question->until_ns);
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = visit_chunk(stmt, decoder, question->columns, visit, context, err);
    if (rc == 0 && code != SQLITE_DONE)
        rc = fail_sql(db, code, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}
