/* Facts about a recording from the small tables of the export; each may be missing. One thread. */
#include "nsys_parts.h"

#include <sqlite3.h>
#include <stdio.h>

#include "support/text.h"

int occ_nsys_has_whole_graphs(struct occ_nsys_db *d)
{
    struct occ_nsys_rows rows = {.table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", .end = " LIMIT 1"};
    int found = occ_nsys_first(d, &rows);
    (void)occ_nsys_close(&rows, 0);
    return found;
}

/* A query: the first row of a small table whose column `key` has a value gives a text, truncated to `size`,
 * or a number. */
struct question {
    const char *table, *key, *value;
    const char *where; /* " WHERE name = 'Hostname'" */
    int64_t parameter; /* parameter in `where` */
    char *text;
    size_t size;
    int32_t *number; /* 0 ... 2^31-1 */
};

static int ask(struct occ_nsys_db *d, const struct question *q)
{
    const char *const columns[] = {q->value, q->key};
    struct occ_nsys_rows rows = {
        .table = q->table, .columns = columns, .n = 2, .end = q->where, .required = 3};
    int more = occ_nsys_open(d, &rows);
    if (more == 0 && rows.stmt && sqlite3_bind_parameter_count(rows.stmt) > 0)
        (void)sqlite3_bind_int64(rows.stmt, 1, q->parameter);
    if (more == 0)
        more = occ_nsys_next(d, &rows);
    const char *text = more == 1 && q->text ? occ_nsys_text(rows.stmt, 0) : NULL;
    int64_t number = more == 1 && q->number ? occ_nsys_integer(rows.stmt, 0, -1) : -1;
    if (text)
        (void)snprintf(q->text, q->size, "%s", text);
    if (number >= 0 && number <= INT32_MAX)
        *q->number = (int32_t)number;
    return occ_nsys_close(&rows, more);
}

/* Recordings that began at different times have no common epoch. */
static int read_epoch(struct occ_nsys_db *d, struct occ_import_recording *r)
{
    static const char *const columns[] = {"utcEpochNs"};
    struct occ_nsys_rows rows = {.table = "TARGET_INFO_SESSION_START_TIME", .columns = columns, .n = 1};
    int more = occ_nsys_open(d, &rows);
    bool differ = false;
    while (more >= 0 && !differ && (more = occ_nsys_next(d, &rows)) == 1) {
        int64_t epoch_ns = occ_nsys_integer(rows.stmt, 0, 0);
        differ = r->shift_ns != 0 && epoch_ns != r->shift_ns;
        r->shift_ns = epoch_ns;
    }
    if (differ || r->shift_ns < 0)
        r->shift_ns = 0;
    r->time_base_unknown = r->shift_ns == 0;
    return occ_nsys_close(&rows, more);
}

int occ_nsys_facts_read(struct occ_nsys_db *d, int64_t process, struct occ_import_recording *r)
{
    const int64_t pid = occ_nsys_pid_of(process);
    const struct question questions[] = {
        {"EXPORT_META_DATA", "name", "value", " WHERE name = 'EXPORT_PRODUCT_VERSION'", 0, r->tool_version,
         sizeof r->tool_version, NULL},
        {"META_DATA_EXPORT", "name", "value", " WHERE name = 'EXPORT_PRODUCT_VERSION'", 0, r->tool_version,
         sizeof r->tool_version, NULL},
        {"TARGET_INFO_SYSTEM_ENV", "name", "value", " WHERE name = 'Hostname'", 0, r->hostname,
         sizeof r->hostname, NULL},
        {"PROCESSES", "pid", "name", " WHERE pid = ?", pid, r->exe, sizeof r->exe, NULL},
        {"MPI_RANKS", "globalTid", "rank", " WHERE globalTid >> 24 = ?", process >> 24, NULL, 0, &r->rank},
    };
    size_t of_any_process = 3, n = pid == 0 ? of_any_process : sizeof questions / sizeof *questions;
    int status = read_epoch(d, r);
    r->pid = (int32_t)pid;
    for (size_t i = 0; i < n && status == 0; i++)
        status = ask(d, &questions[i]);
    int whole_graphs = status == 0 ? occ_nsys_has_whole_graphs(d) : status;
    if (whole_graphs == 1)
        occ_text_append(r->missing_fields, sizeof r->missing_fields, ", ",
                        "kernels of CUDA graphs that were recorded whole");
    return whole_graphs < 0 ? whole_graphs : 0;
}
