/* Tracks and statements of a timeline; see timeline_parts.h. */
#include "timeline_parts.h"

uint32_t timeline_add_track(struct timeline *t, struct export_track track)
{
    track.id = ++t->tracks;
    track.gpu = track.kind == EXPORT_GPU ? track.id : track.gpu;
    t->format->add_track(&t->writer, &track);
    return track.id;
}

int timeline_sql_failed(struct timeline *t, struct occ_error *err)
{
    return occ_fail(err, OCC_E_IO, "%s", sqlite3_errmsg(t->db));
}

int timeline_prepare(struct timeline *t, const char *sql, sqlite3_stmt **ret_statement, struct occ_error *err)
{
    return sqlite3_prepare_v2(t->db, sql, -1, ret_statement, NULL) == SQLITE_OK ? 0
                                                                                : timeline_sql_failed(t, err);
}
