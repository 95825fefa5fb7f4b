/* See known.h. */
#include "known.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"

enum { LABELS_MAX = 32, LISTED_MAX = 6, LABEL_BYTES = 32 };

bool history_has_label(struct occ_store *store, const char *label)
{
    static const char statement[] = "SELECT 1 FROM run WHERE label GLOB replace(?1, '[', '[[]') LIMIT 1";
    sqlite3_stmt *stmt = NULL;
    bool has = sqlite3_prepare_v2(occ_store_sqlite(store), statement, -1, &stmt, NULL) == SQLITE_OK &&
               sqlite3_bind_text(stmt, 1, label, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_step(stmt) == SQLITE_ROW;
    (void)sqlite3_finalize(stmt);
    return has;
}

/* The newest labels of a history; their number may be larger. */
struct labels {
    char *list[LABELS_MAX + 1]; /* malloc'ed; NULL ends them */
    size_t n;
};

static void free_labels(struct labels *labels)
{
    for (size_t i = 0; i < labels->n; i++)
        free(labels->list[i]);
}

static void find_labels(sqlite3 *db, struct labels *labels)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db,
                           "SELECT label FROM run WHERE label <> '' GROUP BY label ORDER BY max(run_id) DESC",
                           -1, &stmt, NULL) == SQLITE_OK)
        while (labels->n < LABELS_MAX && sqlite3_step(stmt) == SQLITE_ROW) {
            char *label = strdup((const char *)sqlite3_column_text(stmt, 0));
            if (!label)
                break;
            labels->list[labels->n++] = label;
        }
    (void)sqlite3_finalize(stmt);
}

static void append_labels(char text[HISTORY_KNOWN_BYTES], const struct labels *labels)
{
    for (size_t i = 0; i < labels->n && i < LISTED_MAX; i++)
        occ_text_append(text, HISTORY_KNOWN_BYTES, "", "%s%.*s", i ? ", " : "; labels: ", LABEL_BYTES,
                        labels->list[i]);
    if (labels->n > LISTED_MAX)
        occ_text_append(text, HISTORY_KNOWN_BYTES, "", ", ...");
}

static void append_runs(char text[HISTORY_KNOWN_BYTES], sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, "SELECT min(run_id), max(run_id), count(*) FROM run", -1, &stmt, NULL) ==
            SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int64(stmt, 2) > 0) {
        int64_t first = sqlite3_column_int64(stmt, 0), last = sqlite3_column_int64(stmt, 1);
        if (first == last)
            occ_text_append(text, HISTORY_KNOWN_BYTES, "", "; run: %" PRId64, first);
        else
            occ_text_append(text, HISTORY_KNOWN_BYTES, "", "; runs: %" PRId64 " to %" PRId64 " (occq runs)",
                            first, last);
    }
    (void)sqlite3_finalize(stmt);
}

const char *history_known_text(struct occ_store *store, const char *word, char text[HISTORY_KNOWN_BYTES])
{
    _cleanup_(free_labels) struct labels labels = {.n = 0};
    sqlite3 *db = occ_store_sqlite(store);
    const char *key = strchr(word, ':');
    text[0] = '\0';
    find_labels(db, &labels);
    const char *similar = occ_text_nearest(key ? key + 1 : word, (const char *const *)labels.list);
    if (similar)
        occ_text_append(text, HISTORY_KNOWN_BYTES, "", "; did you mean '%.64s'?", similar);
    append_labels(text, &labels);
    append_runs(text, db);
    occ_text_sanitise(text);
    return text;
}
