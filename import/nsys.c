/*
 * Reads the SQLite export of Nsight Systems: table CUPTI_ACTIVITY_KIND_KERNEL with names in StringIds
 * (nsys_names.c), devices in TARGET_INFO_GPU (nsys_devices.c), NVTX ranges (nsys_ranges.c), and small tables
 * about host, process and clock (nsys_facts.c). Tables and columns differ between versions (2019 ... 2026); a
 * missing column means unknown values.
 *
 * The file is untrusted: it is opened read-only and immutable (no journal is read, no file is created beside
 * it), and read through nsys_db.c. One thread.
 */

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nsys_parts.h"
#include "readers.h"
#include "spool.h"
#include "support/cleanup.h"
#include "support/text.h"

#define PROGRESS_ROWS 8192u

/* Columns of a launch. X(NAME, column, its name among the missing fields; NULL: not listed) */
#define COLUMNS(X)                                                                                           \
    X(START, "start", NULL)                                                                                  \
    X(END, "end", NULL)                                                                                      \
    X(DEVICE_ID, "deviceId", "device")                                                                       \
    X(CONTEXT_ID, "contextId", "context")                                                                    \
    X(STREAM_ID, "streamId", "stream")                                                                       \
    X(CORRELATION_ID, "correlationId", "correlation id")                                                     \
    X(GLOBAL_PID, "globalPid", "process")                                                                    \
    X(MANGLED, "mangledName", "mangled name")                                                                \
    X(DEMANGLED, "demangledName", NULL)                                                                      \
    X(SHORT, "shortName", NULL)                                                                              \
    X(LAUNCH_TYPE, "launchType", "launch type")                                                              \
    X(CACHE_CONFIG, "cacheConfig", "cache preference")                                                       \
    X(REGISTERS, "registersPerThread", NULL)                                                                 \
    X(GRID_X, "gridX", NULL)                                                                                 \
    X(GRID_Y, "gridY", NULL)                                                                                 \
    X(GRID_Z, "gridZ", NULL)                                                                                 \
    X(BLOCK_X, "blockX", NULL)                                                                               \
    X(BLOCK_Y, "blockY", NULL)                                                                               \
    X(BLOCK_Z, "blockZ", NULL)                                                                               \
    X(CLUSTER_X, "clusterX", "cluster size")                                                                 \
    X(CLUSTER_Y, "clusterY", NULL)                                                                           \
    X(CLUSTER_Z, "clusterZ", NULL)                                                                           \
    X(MAX_CLUSTER, "maxPotentialClusterSize", NULL)                                                          \
    X(ACTIVE_CLUSTERS, "maxActiveClusters", "active clusters")                                               \
    X(STATIC_SMEM, "staticSharedMemory", "static shared memory")                                             \
    X(DYNAMIC_SMEM, "dynamicSharedMemory", "dynamic shared memory")                                          \
    X(SMEM_EXECUTED, "sharedMemoryExecuted", "the driver's shared-memory carve-out")                         \
    X(SMEM_PERCENT, "sharedMemoryRequestedPercentage", "the requested carve-out")                            \
    X(SMEM_LIMIT, "sharedMemoryLimitConfig", "opt-in to large shared memory")                                \
    X(LOCAL, "localMemoryPerThread", "local memory")                                                         \
    X(GRAPH_NODE, "graphNodeId", "graph node")

#define ENUMERATOR(name, column, text) name,
#define COLUMN(name, column, text)     column,
#define TEXT(name, column, text)       text,
enum column { COLUMNS(ENUMERATOR) COLUMN_COUNT };
static const char *const columns[COLUMN_COUNT] = {COLUMNS(COLUMN)};
static const char *const missing_texts[COLUMN_COUNT] = {COLUMNS(TEXT)};

#define LAUNCHES_TABLE "CUPTI_ACTIVITY_KIND_KERNEL"

struct nsys {
    struct occ_nsys_db d;
    struct occ_import_sink *sink;
    struct occ_error *err;
    struct occ_nsys_names *names;
    struct occ_nsys_devices *devices;
    struct occ_nsys_ranges *ranges;
    struct occ_nsys_rows launches;
    int64_t rows_read, rows_expected;
    int64_t process;   /* globalPid of the kernels; 0: unknown */
    bool any, several; /* launches were read; from several processes */
};

/* ---- launches ---- */

/* A launch's integers; `known` has a bit for each that is not NULL. */
struct row {
    int64_t value[COLUMN_COUNT];
    uint64_t known;
    bool bad; /* a value has another type */
};

static void read_row(sqlite3_stmt *stmt, struct row *row)
{
    row->known = 0;
    row->bad = false;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        int type = sqlite3_column_type(stmt, i);
        row->value[i] = type == SQLITE_INTEGER ? sqlite3_column_int64(stmt, i) : 0;
        row->known |= (uint64_t)(type == SQLITE_INTEGER) << i;
        row->bad |= type != SQLITE_INTEGER && type != SQLITE_NULL;
    }
}

static bool has(const struct row *row, enum column column)
{
    return (row->known >> column & 1) != 0;
}

/* True if the values of 32-bit columns fit into 32 bits. */
static bool fits(const struct row *row)
{
    static const enum column u32s[] = {
        CONTEXT_ID,      STREAM_ID,   CORRELATION_ID, REGISTERS,     GRID_X,    GRID_Y,    GRID_Z,
        BLOCK_X,         BLOCK_Y,     BLOCK_Z,        CLUSTER_X,     CLUSTER_Y, CLUSTER_Z, MAX_CLUSTER,
        ACTIVE_CLUSTERS, STATIC_SMEM, DYNAMIC_SMEM,   SMEM_EXECUTED, LOCAL};
    for (size_t i = 0; i < sizeof u32s / sizeof *u32s; i++)
        if (row->value[u32s[i]] < 0 || row->value[u32s[i]] > UINT32_MAX)
            return false;
    return !row->bad;
}

/* The export has unknown 0, regular 1, cooperative 2, cooperative on several devices 3; CUPTI, and the
 * history, start with regular. */
static uint8_t launch_type(int64_t exported)
{
    return exported >= 1 && exported <= 3 ? (uint8_t)(exported - 1) : 0;
}

/* 0 can also mean that no carve-out was requested. */
static int32_t carveout(int64_t percent)
{
    return percent > 0 && percent <= 100 ? (int32_t)percent : -1;
}

static void fill_launch(const struct row *row, struct occ_import_launch *launch)
{
    struct occ_launch_config *config = &launch->config;
    struct occ_launch *l = &config->launch;
    launch->reported_achieved = (double)NAN;
    launch->start_ns = row->value[START];
    launch->end_ns = row->value[END];
    launch->graph_node = (uint64_t)row->value[GRAPH_NODE];
    launch->stream = (uint32_t)row->value[STREAM_ID];
    launch->context = (uint32_t)row->value[CONTEXT_ID];
    launch->correlation = (uint32_t)row->value[CORRELATION_ID];
    for (int i = 0; i < 3; i++) {
        l->grid[i] = (uint32_t)row->value[GRID_X + i];
        l->block[i] = (uint32_t)row->value[BLOCK_X + i];
        l->cluster[i] = (uint32_t)row->value[CLUSTER_X + i];
    }
    l->registers_per_thread = (uint32_t)row->value[REGISTERS];
    l->static_smem_bytes = (uint32_t)row->value[STATIC_SMEM];
    l->dynamic_smem_bytes = (uint32_t)row->value[DYNAMIC_SMEM];
    l->smem_config_bytes = (uint32_t)row->value[SMEM_EXECUTED];
    l->carveout_percent = carveout(row->value[SMEM_PERCENT]);
    l->max_active_clusters = (uint32_t)row->value[ACTIVE_CLUSTERS];
    l->smem_optin_known = has(row, SMEM_LIMIT) && row->value[SMEM_LIMIT] == 1; /* 0 also means unknown */
    l->smem_optin = l->smem_optin_known;
    config->local_bytes_per_thread = (uint32_t)row->value[LOCAL];
    config->max_cluster_size = (uint32_t)row->value[MAX_CLUSTER];
    config->launch_type = launch_type(row->value[LAUNCH_TYPE]);
    config->cache_config = row->value[CACHE_CONFIG] >= 0 && row->value[CACHE_CONFIG] <= 3
                               ? (uint8_t)row->value[CACHE_CONFIG]
                               : 0;
}

/* Takes the mangled name, or else the best other name. */
static int take_name(struct nsys *n, const struct row *row, struct occ_import_launch *launch)
{
    static const enum column choices[] = {MANGLED, DEMANGLED, SHORT};
    int status = 0;
    for (size_t i = 0; i < 3 && status == 0 && launch->name_bytes == 0; i++)
        if (has(row, choices[i]))
            status =
                occ_nsys_names_find(n->names, row->value[choices[i]], &launch->name, &launch->name_bytes);
    return status;
}

/* The reason to skip a row; COUNT: the row is a launch that the sink can take. */
static enum occ_import_skip objection(const struct row *row, size_t name_bytes, bool has_device)
{
    if (!fits(row) || name_bytes == SIZE_MAX)
        return OCC_IMPORT_SKIP_BAD_VALUE;
    if (!has(row, START) || !has(row, END))
        return OCC_IMPORT_SKIP_BAD_TIMES;
    return has_device ? OCC_IMPORT_SKIP_COUNT : OCC_IMPORT_SKIP_NO_DEVICE;
}

static int take_launch(struct nsys *n, const struct row *row)
{
    struct occ_import_launch launch;
    int64_t process = row->value[GLOBAL_PID];
    memset(&launch, 0, sizeof launch);
    int status = take_name(n, row, &launch), found = 0;
    if (status == 0 && has(row, DEVICE_ID) && row->value[DEVICE_ID] >= 0)
        found = occ_nsys_devices_find(n->devices, process, row->value[DEVICE_ID], &launch.device);
    if (status != 0 || found < 0)
        return status != 0 ? status : found;
    enum occ_import_skip why = objection(row, launch.name_bytes, found == 1);
    if (why != OCC_IMPORT_SKIP_COUNT) {
        occ_import_sink_skip(n->sink, why);
        return 0;
    }
    n->several |= n->any && process != n->process;
    n->any = true;
    n->process = process;
    fill_launch(row, &launch);
    launch.origin =
        occ_nsys_ranges_origin(n->ranges, process, row->value[CORRELATION_ID], row->value[GRAPH_NODE]);
    return occ_import_sink_launch(n->sink, &launch, n->err);
}

static int fail_without_launches(struct nsys *n, const char *text)
{
    int whole_graphs = occ_nsys_has_whole_graphs(&n->d);
    if (whole_graphs < 0)
        return whole_graphs;
    return occ_fail(n->err, OCC_E_INVALID, "%s%s", text,
                    whole_graphs ? " outside of CUDA graphs, which were recorded whole "
                                   "(--cuda-graph-trace=node records their kernels)"
                                 : "");
}

static int open_launches(struct nsys *n)
{
    static const enum column required[] = {START, END, REGISTERS, GRID_X, BLOCK_X};
    n->launches = (struct occ_nsys_rows){.table = LAUNCHES_TABLE, .columns = columns, .n = COLUMN_COUNT};
    int status = occ_nsys_open(&n->d, &n->launches);
    if (status != 0)
        return status;
    if (!n->launches.stmt)
        return fail_without_launches(n,
                                     "no table " LAUNCHES_TABLE ": recorded without --trace=cuda, or not an "
                                     "export of Nsight Systems, or no kernel was launched");
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!(n->launches.present >> required[i] & 1))
            return occ_fail(n->err, OCC_E_INVALID, "table " LAUNCHES_TABLE " has no column %s",
                            columns[required[i]]);
    return 0;
}

/* The number of rows for the progress bar: the largest rowid, which SQLite finds at once. */
static int estimate_rows(struct nsys *n)
{
    struct occ_nsys_rows rows = {.table = LAUNCHES_TABLE, .end = " ORDER BY rowid DESC LIMIT 1"};
    int found = occ_nsys_first(&n->d, &rows);
    n->rows_expected = found == 1 ? n->d.row : 0;
    return occ_nsys_close(&rows, found);
}

static int read_launches(struct nsys *n)
{
    struct row row;
    int status = 0, more = 1;
    while (status == 0 && (more = occ_nsys_next(&n->d, &n->launches)) == 1) {
        read_row(n->launches.stmt, &row);
        status = take_launch(n, &row);
        if (++n->rows_read % PROGRESS_ROWS == 0)
            occ_import_sink_progress(
                n->sink, (uint64_t)n->rows_read,
                (uint64_t)(n->rows_expected > n->rows_read ? n->rows_expected : n->rows_read));
    }
    if (status != 0 || more < 0)
        return status != 0 ? status : more;
    return n->rows_read > 0
               ? 0
               : fail_without_launches(n, "table " LAUNCHES_TABLE " is empty: no kernel was recorded");
}

static int describe_recording(struct nsys *n)
{
    struct occ_import_recording recording = {.rank = -1};
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (!(n->launches.present >> i & 1) && missing_texts[i])
            occ_text_append(recording.missing_fields, sizeof recording.missing_fields, ", ", "%s",
                            missing_texts[i]);
    int status = occ_nsys_facts_read(&n->d, n->several ? 0 : n->process, &recording);
    if (status == 0)
        occ_import_sink_recording(n->sink, &recording);
    return status;
}

static int read_all(struct nsys *n)
{
    int status = open_launches(n); /* opened first, because its errors explain the most */
    if (status == 0)
        status = estimate_rows(n);
    if (status == 0)
        status = occ_nsys_names_new(&n->d, &n->names);
    if (status == 0)
        status = occ_nsys_devices_read(&n->d, n->sink, &n->devices);
    if (status == 0)
        status = occ_nsys_ranges_new(&n->d, &n->ranges);
    if (status == 0)
        status = read_launches(n);
    if (status == 0)
        status = occ_nsys_ranges_read(n->ranges, n->names, n->sink);
    return status == 0 ? describe_recording(n) : status;
}

int occ_nsys_read(sqlite3 *db, struct occ_import_sink *sink, struct occ_error *err)
{
    struct nsys n = {.sink = sink, .err = err};
    int status = occ_nsys_restrict(db, &n.d, err);
    if (status == 0)
        status = read_all(&n);
    (void)occ_nsys_close(&n.launches, 0);
    occ_nsys_names_free(n.names);
    occ_nsys_devices_free(n.devices);
    occ_nsys_ranges_free(n.ranges);
    occ_nsys_release(&n.d);
    return status;
}

/* ---- files ---- */

/* "file://" and the escaped path, malloc'ed. */
static char *make_uri(const char *path)
{
    static const char head[] = "file://", tail[] = "?mode=ro&immutable=1";
    char *uri = malloc(sizeof head + 3 * strlen(path) + sizeof tail), *to = uri;
    if (!uri)
        return NULL;
    to += sprintf(to, "%s", head);
    for (; *path; path++)
        to += isalnum((unsigned char)*path) || strchr("/._-", *path)
                  ? sprintf(to, "%c", *path)
                  : sprintf(to, "%%%02X", (unsigned)(unsigned char)*path);
    memcpy(to, tail, sizeof tail);
    return uri;
}

/* Journals of an immutable file are not read: refuse a file with any. */
static int refuse_journals(const char *path, struct occ_error *err)
{
    static const char *const tails[] = {"-wal", "-journal"};
    for (size_t i = 0; i < 2; i++) {
        struct stat status;
        _cleanup_(occ_freep) char *beside = malloc(strlen(path) + 16);
        if (!beside)
            return occ_no_memory(err);
        (void)sprintf(beside, "%s%s", path, tails[i]);
        if (stat(beside, &status) == 0 && status.st_size > 0)
            return occ_fail(
                err, OCC_E_INVALID,
                "%s is beside it: the file is being written, or was not closed; export it again, or "
                "close it with: sqlite3 FILE .tables",
                beside);
    }
    return 0;
}

/* `is_temporary`: unlink the file once it is open. */
static int read_file(const char *path, bool is_temporary, struct occ_import_sink *sink, struct occ_error *err)
{
    sqlite3 *db = NULL;
    int status = refuse_journals(path, err);
    if (status != 0)
        return status;
    _cleanup_(occ_freep) char *uri = make_uri(path);
    if (!uri)
        return occ_no_memory(err);
    int code = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (is_temporary)
        (void)unlink(path);
    status = code == SQLITE_OK
                 ? occ_nsys_read(db, sink, err)
                 : occ_fail(err, OCC_E_IO, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    (void)sqlite3_close(db);
    return status;
}

int occ_import_read_nsys(const char *path, struct occ_import_sink *sink, struct occ_error *err)
{
    char name[OCC_SPOOL_PATH_BYTES];
    bool is_named = strncmp(path, OCC_SPOOL_UNNAMED, strlen(OCC_SPOOL_UNNAMED)) == 0 &&
                    occ_spool_link(path, name, NULL) == 0;
    /* journals are beside the target of a symbolic link */
    _cleanup_(occ_freep) char *real = is_named ? strdup(name) : realpath(path, NULL);
    if (!real)
        return occ_fail_errno(err, errno, "%s", path);
    int status = read_file(real, is_named, sink, err);
    return status == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
