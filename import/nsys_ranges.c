/* Reads the input of ranges.h: NVTX ranges (table NVTX_EVENTS), the calls that made launches
 * (CUPTI_ACTIVITY_KIND_RUNTIME), and the nodes of CUDA graphs (CUDA_GRAPH_EVENTS, since 2024
 * CUDA_GRAPH_NODE_EVENTS). Ranges that end on another thread are left out. One thread. */
#include "nsys_parts.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/map.h"

#define DOMAINS_MAX 256u
#define CLONES_MAX  (1u << 18) /* nodes of instantiated graphs */
#define HOPS_MAX    8          /* steps from a clone to its original node */

/* Event types of push/pop and start/end ranges; the same with registered strings. */
#define IS_RANGE  " WHERE eventType IN (59, 60, 70, 71)"
#define IS_DOMAIN " WHERE eventType = 75"

#define PROCESS_OF(thread) ((thread) & ~INT64_C(0xffffff)) /* the last three bytes: the thread */

struct occ_nsys_ranges {
    struct occ_nsys_db *d;
    bool any;
    struct {
        int64_t id, process;
        char name[64];
    } domains[DOMAINS_MAX];
    uint32_t n_domains;
    struct occ_map clones; /* hash of process and node -> index of the original node */
    int64_t originals[CLONES_MAX];
    uint32_t n_clones;
    char name[1024];
};

static const char *const node_tables[] = {"CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"};

/* ---- nodes ---- */

static uint64_t node_key(int64_t process, int64_t node)
{
    return (uint64_t)process * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)node;
}

static int read_clones(struct occ_nsys_ranges *r, const char *table)
{
    static const char *const columns[] = {"graphNodeId", "originalGraphNodeId", "globalTid"};
    struct occ_nsys_rows rows = {.table = table, .columns = columns, .n = 3, .required = 7};
    int more = occ_nsys_open(r->d, &rows);
    while (more >= 0 && r->n_clones < CLONES_MAX && (more = occ_nsys_next(r->d, &rows)) == 1) {
        int64_t original = occ_nsys_integer(rows.stmt, 1, 0);
        int64_t process = PROCESS_OF(occ_nsys_integer(rows.stmt, 2, 0));
        uint64_t key = node_key(process, occ_nsys_integer(rows.stmt, 0, 0));
        if (original == 0)
            continue;
        r->originals[r->n_clones] = original;
        if (occ_map_put(&r->clones, key, r->n_clones++) == OCC_MAP_NONE)
            more = occ_no_memory(r->d->err);
    }
    return occ_nsys_close(&rows, more);
}

/* The captured or added node from which a node was cloned. */
static int64_t original_of(const struct occ_nsys_ranges *r, int64_t process, int64_t node)
{
    for (int i = 0; i < HOPS_MAX; i++) {
        uint32_t at = occ_map_get(&r->clones, node_key(process, node));
        if (at == OCC_MAP_NONE)
            return node;
        node = r->originals[at];
    }
    return 0;
}

struct occ_import_origin occ_nsys_ranges_origin(const struct occ_nsys_ranges *r, int64_t process,
                                                int64_t correlation, int64_t node)
{
    struct occ_import_origin origin;
    memset(&origin, 0, sizeof origin);
    if (!r->any)
        return origin;
    origin.process = (uint64_t)process;
    origin.is_node = node != 0;
    origin.id = (uint64_t)(node != 0 ? original_of(r, process, node) : correlation);
    return origin;
}

/* ---- calls ---- */

/* Reads rows (start, end, thread, id) of a table of calls. */
static int read_calls(struct occ_nsys_ranges *r, struct occ_import_sink *sink, const char *table,
                      const char *id, bool is_node)
{
    const char *const columns[] = {"start", "end", "globalTid", id};
    struct occ_nsys_rows rows = {.table = table, .columns = columns, .n = 4, .required = 15};
    int status = 0, more = occ_nsys_open(r->d, &rows);
    while (more >= 0 && status == 0 && (more = occ_nsys_next(r->d, &rows)) == 1) {
        int64_t thread = occ_nsys_integer(rows.stmt, 2, 0), start_ns = occ_nsys_integer(rows.stmt, 0, 0);
        int64_t number = occ_nsys_integer(rows.stmt, 3, 0), process = PROCESS_OF(thread);
        struct occ_import_call call;
        memset(&call, 0, sizeof call);
        call.process = process;
        call.thread = thread;
        call.start_ns = start_ns;
        call.end_ns = occ_nsys_integer(rows.stmt, 1, start_ns);
        call.origin = occ_nsys_ranges_origin(r, process, is_node ? 0 : number, is_node ? number : 0);
        if (!is_node || call.origin.id == (uint64_t)number) /* a clone is made in another place */
            status = occ_import_sink_call(sink, &call, r->d->err);
    }
    return occ_nsys_close(&rows, status != 0 ? status : more);
}

/* ---- ranges ---- */

static int read_domains(struct occ_nsys_ranges *r)
{
    static const char *const columns[] = {"domainId", "globalTid", "text"};
    struct occ_nsys_rows rows = {
        .table = "NVTX_EVENTS", .columns = columns, .n = 3, .end = IS_DOMAIN, .required = 7};
    int more = occ_nsys_open(r->d, &rows);
    while (more >= 0 && r->n_domains < DOMAINS_MAX && (more = occ_nsys_next(r->d, &rows)) == 1) {
        const char *name = occ_nsys_text(rows.stmt, 2);
        if (!name)
            continue;
        r->domains[r->n_domains].id = occ_nsys_integer(rows.stmt, 0, 0);
        r->domains[r->n_domains].process = PROCESS_OF(occ_nsys_integer(rows.stmt, 1, 0));
        (void)snprintf(r->domains[r->n_domains++].name, sizeof r->domains->name, "%s", name);
    }
    return occ_nsys_close(&rows, more);
}

/* Writes "domain:text" to r->name. */
static void make_name(struct occ_nsys_ranges *r, int64_t process, int64_t domain, const char *text, size_t n)
{
    const char *name = "";
    for (uint32_t i = 0; i < r->n_domains; i++)
        if (r->domains[i].id == domain && r->domains[i].process == process)
            name = r->domains[i].name;
    n = n < sizeof r->name ? n : sizeof r->name - 1;
    (void)snprintf(r->name, sizeof r->name, "%s%s%.*s", name, name[0] ? ":" : "", (int)n, text);
}

enum { START, END, THREAD, END_THREAD, TEXT, TEXT_ID, DOMAIN_ID, COLUMN_COUNT };
static const char *const range_columns[] = {"start", "end",    "globalTid", "endGlobalTid",
                                            "text",  "textId", "domainId"};

static int take_range(struct occ_nsys_ranges *r, struct occ_nsys_names *names, struct occ_import_sink *sink,
                      sqlite3_stmt *stmt)
{
    const char *text = occ_nsys_text(stmt, TEXT);
    size_t n = text ? strlen(text) : 0;
    int64_t thread = occ_nsys_integer(stmt, THREAD, 0), start_ns = occ_nsys_integer(stmt, START, -1);
    int status = 0;
    if (start_ns < 0 || occ_nsys_integer(stmt, END_THREAD, thread) != thread)
        return 0;
    if (!text && sqlite3_column_type(stmt, TEXT_ID) == SQLITE_INTEGER)
        status = occ_nsys_names_find(names, sqlite3_column_int64(stmt, TEXT_ID), &text, &n);
    if (status != 0 || n == 0 || n == SIZE_MAX)
        return status;
    make_name(r, PROCESS_OF(thread), occ_nsys_integer(stmt, DOMAIN_ID, 0), text, n);
    const struct occ_import_range range = {.process = PROCESS_OF(thread),
                                           .thread = thread,
                                           .start_ns = start_ns,
                                           /* a range without an end was open when the recording ended */
                                           .end_ns = occ_nsys_integer(stmt, END, INT64_MAX),
                                           .name = r->name,
                                           .name_bytes = strlen(r->name),
                                           .sequence = -1};
    return occ_import_sink_range(sink, &range, r->d->err);
}

static int read_ranges(struct occ_nsys_ranges *r, struct occ_nsys_names *names, struct occ_import_sink *sink)
{
    struct occ_nsys_rows rows = {
        .table = "NVTX_EVENTS", .columns = range_columns, .n = COLUMN_COUNT, .end = IS_RANGE};
    int status = 0, more = occ_nsys_open(r->d, &rows);
    while (more >= 0 && status == 0 && (more = occ_nsys_next(r->d, &rows)) == 1)
        status = take_range(r, names, sink, rows.stmt);
    return occ_nsys_close(&rows, status != 0 ? status : more);
}

/* ---- all ---- */

int occ_nsys_ranges_new(struct occ_nsys_db *d, struct occ_nsys_ranges **ret_ranges)
{
    static const char *const columns[] = {"start", "globalTid", "eventType"};
    struct occ_nsys_rows rows = {
        .table = "NVTX_EVENTS", .columns = columns, .n = 3, .end = IS_RANGE " LIMIT 1", .required = 7};
    struct occ_nsys_ranges *r = calloc(1, sizeof *r);
    if (!r)
        return occ_no_memory(d->err);
    r->d = d;
    *ret_ranges = r;
    int found = occ_nsys_first(d, &rows);
    (void)occ_nsys_close(&rows, 0);
    r->any = found == 1;
    for (size_t i = 0; i < 2 && r->any && found >= 0; i++)
        found = read_clones(r, node_tables[i]);
    return found < 0 ? found : 0;
}

void occ_nsys_ranges_free(struct occ_nsys_ranges *r)
{
    if (!r)
        return;
    occ_map_free(&r->clones);
    free(r);
}

int occ_nsys_ranges_read(struct occ_nsys_ranges *r, struct occ_nsys_names *names,
                         struct occ_import_sink *sink)
{
    int status = r->any ? read_domains(r) : 0;
    if (status == 0 && r->any)
        status = read_ranges(r, names, sink);
    if (status == 0 && r->any)
        status = read_calls(r, sink, "CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId", false);
    for (size_t i = 0; i < 2 && status == 0 && r->any; i++)
        status = read_calls(r, sink, node_tables[i], "graphNodeId", true);
    return status;
}
