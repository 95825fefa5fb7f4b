/*
 * The SQLite export of Nsight Systems: table CUPTI_ACTIVITY_KIND_KERNEL with names in StringIds, devices in
 * TARGET_INFO_GPU (nsys_devices.c), and small tables about host, process and clock. Tables and columns come and go
 * between versions (2019 ... 2026); what is not there is unknown.
 *
 * The file is hostile until proven otherwise: it is opened read-only and immutable (no journal is looked for, no file
 * appears beside it), and read through nsys_db.c.
 *
 * Names are looked up by id and kept in a table of bounded size. One thread.
 */
#include "nsys.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nsys_db.h"
#include "nsys_devices.h"
#include "support/cleanup.h"

#define NAMES_KEPT      8192u
#define NAMES_BYTES     (16u << 20) /* of all texts kept */
#define NAME_MOST_BYTES (1u << 20)
#define PROGRESS_ROWS   8192u

/* Columns of a launch. X(NAME, column, what it is called where it is missing; NULL: not worth saying) */
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

enum column {
#define X(name, column, text) name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
};

static const char *const columns[COLUMN_COUNT] = {
#define X(name, column, text) column,
    COLUMNS(X)
#undef X
};

static const char *const columns_said[COLUMN_COUNT] = {
#define X(name, column, text) text,
    COLUMNS(X)
#undef X
};

static const char launches_table[] = "CUPTI_ACTIVITY_KIND_KERNEL";

struct name {
    int64_t id;
    char *text; /* NULL: free */
    size_t bytes;
};

struct nsys {
    struct occ_nsys_db d;
    struct occ_import_sink *sink;
    struct occ_error *err;
    uint64_t present; /* columns of the launches */
    struct name names[NAMES_KEPT];
    size_t names_bytes;
    sqlite3_stmt *find_name;
    struct occ_nsys_devices *devices;
    int64_t rows_read, rows; /* how many, and about how many there are */
    int64_t process;         /* globalPid of the kernels; 0: unknown */
    bool any, several;       /* launches; processes */
};

/* ---- names ---- */

static void forget_names(struct nsys *n)
{
    for (size_t i = 0; i < NAMES_KEPT; i++) {
        free(n->names[i].text);
        n->names[i].text = NULL;
    }
    n->names_bytes = 0;
}

static void keep_name(struct nsys *n, struct name *slot, int64_t id, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy)
        return; /* looked up again then */
    if (n->names_bytes + bytes > NAMES_BYTES)
        forget_names(n);
    n->names_bytes += bytes - (slot->text ? slot->bytes : 0);
    free(slot->text);
    memcpy(copy, text, bytes);
    *slot = (struct name){.id = id, .text = copy, .bytes = bytes};
}

static int fail_name(struct nsys *n)
{
    n->d.table = "StringIds";
    n->d.row = 0;
    return occ_nsys_db_fail(&n->d);
}

/* The text behind an id; valid until the next call. *ret_bytes 0: there is none, SIZE_MAX: longer than a name is. */
static int find_name(struct nsys *n, int64_t id, const char **ret_text, size_t *ret_bytes)
{
    struct name *slot = &n->names[(uint64_t)id % NAMES_KEPT];
    *ret_bytes = 0;
    if (slot->text && slot->id == id) {
        *ret_text = slot->text;
        *ret_bytes = slot->bytes;
        return 0;
    }
    if (!n->find_name)
        return 0;
    (void)sqlite3_reset(n->find_name);
    (void)sqlite3_bind_int64(n->find_name, 1, id);
    int step = sqlite3_step(n->find_name);
    if (step == SQLITE_TOOBIG)
        *ret_bytes = SIZE_MAX;
    else if (step != SQLITE_ROW)
        return step == SQLITE_DONE ? 0 : fail_name(n);
    if (step != SQLITE_ROW || sqlite3_column_type(n->find_name, 0) != SQLITE_TEXT)
        return 0;
    *ret_text = (const char *)sqlite3_column_text(n->find_name, 0);
    size_t bytes = (size_t)sqlite3_column_bytes(n->find_name, 0);
    if (!*ret_text)
        return occ_fail(n->err, OCC_E_NO_MEMORY, "out of memory");
    *ret_bytes = bytes > NAME_MOST_BYTES ? SIZE_MAX : bytes;
    if (bytes > 0 && bytes <= NAME_MOST_BYTES)
        keep_name(n, slot, id, *ret_text, bytes);
    return 0;
}

static int prepare_names(struct nsys *n)
{
    static const char *const value[] = {"value"};
    return occ_nsys_db_select(&n->d, "StringIds", value, 1, " WHERE id = ?", NULL, &n->find_name);
}

/* ---- launches ---- */

/* What a row holds: integers; `known` has a bit for each that is there. */
struct row {
    int64_t value[COLUMN_COUNT];
    uint64_t known;
    bool bad; /* something that is no integer */
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

/* The columns that must fit in 32 bits do. */
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

/* The export counts unknown 0, regular 1, cooperative 2, cooperative on several devices 3; CUPTI, and the history, start
 * with regular. What a newer version adds is nothing we know. */
static uint8_t launch_type(int64_t exported)
{
    return exported >= 1 && exported <= 3 ? (uint8_t)(exported - 1) : 0;
}

/* 0 stands for "none was asked for", too. */
static int32_t carveout(int64_t percent)
{
    return percent > 0 && percent <= 100 ? (int32_t)percent : -1;
}

static void fill_shape(const struct row *row, struct occ_store_shape *shape)
{
    struct occ_launch *l = &shape->launch;
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
    l->smem_optin_known =
        has(row, SMEM_LIMIT) && row->value[SMEM_LIMIT] == 1; /* 0 is also written for "not said" */
    l->smem_optin = l->smem_optin_known;
    shape->local_bytes_per_thread = (uint32_t)row->value[LOCAL];
    shape->max_cluster_size = (uint32_t)row->value[MAX_CLUSTER];
    shape->launch_type = launch_type(row->value[LAUNCH_TYPE]);
    shape->cache_config = row->value[CACHE_CONFIG] >= 0 && row->value[CACHE_CONFIG] <= 3
                              ? (uint8_t)row->value[CACHE_CONFIG]
                              : 0;
}

/* The mangled name, else the next best. */
static int take_name(struct nsys *n, const struct row *row, struct occ_import_launch *launch)
{
    static const enum column choices[] = {MANGLED, DEMANGLED, SHORT};
    int status = 0;
    for (size_t i = 0; i < 3 && status == 0 && launch->name_bytes == 0; i++)
        if (has(row, choices[i]))
            status = find_name(n, row->value[choices[i]], &launch->name, &launch->name_bytes);
    return status;
}

static int take_device(struct nsys *n, const struct row *row, int64_t process, uint64_t *ret_number,
                       bool *ret_found)
{
    *ret_found = has(row, DEVICE_ID) && row->value[DEVICE_ID] >= 0;
    if (!*ret_found)
        return 0;
    return occ_nsys_devices_find(n->devices, n->sink, process, row->value[DEVICE_ID], ret_number, ret_found,
                                 n->err);
}

/* What keeps a row from the sink; COUNT: nothing. */
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
    struct occ_import_launch launch = {.claimed_achieved = NAN,
                                       .start_ns = row->value[START],
                                       .end_ns = row->value[END],
                                       .graph_node = (uint64_t)row->value[GRAPH_NODE],
                                       .stream = (uint32_t)row->value[STREAM_ID],
                                       .context = (uint32_t)row->value[CONTEXT_ID],
                                       .correlation = (uint32_t)row->value[CORRELATION_ID]};
    int64_t process = row->value[GLOBAL_PID];
    bool has_device = false;
    int status = take_name(n, row, &launch);
    if (status == 0)
        status = take_device(n, row, process, &launch.device, &has_device);
    if (status != 0)
        return status;
    enum occ_import_skip why = objection(row, launch.name_bytes, has_device);
    if (why != OCC_IMPORT_SKIP_COUNT) {
        occ_import_sink_skip(n->sink, why);
        return 0;
    }
    n->several |= n->any && process != n->process;
    n->any = true;
    n->process = process;
    fill_shape(row, &launch.shape);
    return occ_import_sink_launch(n->sink, &launch, n->err);
}

/* Graphs may have been recorded as one thing each: then what they launch is nowhere. */
static int has_whole_graphs(struct nsys *n, bool *ret_has)
{
    sqlite3_stmt *stmt = NULL;
    int status =
        occ_nsys_db_select(&n->d, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", NULL, 0, " LIMIT 1", NULL, &stmt);
    int step = status == 0 && stmt ? occ_nsys_db_step(&n->d, stmt, 0) : 0;
    *ret_has = step == 1;
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : step < 0 ? step : 0;
}

static int fail_without_launches(struct nsys *n, const char *text)
{
    bool whole_graphs = false;
    int status = has_whole_graphs(n, &whole_graphs);
    return status != 0 ? status
                       : occ_fail(n->err, OCC_E_INVALID, "%s%s", text,
                                  whole_graphs ? " outside of CUDA graphs, which were recorded whole "
                                                 "(--cuda-graph-trace=node records their kernels)"
                                               : "");
}

static int open_launches(struct nsys *n, sqlite3_stmt **ret_stmt)
{
    static const enum column needed[] = {START, END, REGISTERS, GRID_X, BLOCK_X};
    int status = occ_nsys_db_select(&n->d, launches_table, columns, COLUMN_COUNT, "", &n->present, ret_stmt);
    if (status != 0)
        return status;
    if (!*ret_stmt)
        return fail_without_launches(n, "no table CUPTI_ACTIVITY_KIND_KERNEL: recorded without --trace=cuda, "
                                        "or not an export of Nsight Systems, or no kernel was launched");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(n->present >> needed[i] & 1))
            return occ_fail(n->err, OCC_E_INVALID, "table %s has no column %s", launches_table,
                            columns[needed[i]]);
    return 0;
}

/* About how many rows there are: the largest rowid, which costs nothing to find. */
static int guess_rows(struct nsys *n)
{
    sqlite3_stmt *stmt = NULL;
    int status =
        occ_nsys_db_select(&n->d, launches_table, NULL, 0, " ORDER BY rowid DESC LIMIT 1", NULL, &stmt);
    int step = status == 0 && stmt ? occ_nsys_db_step(&n->d, stmt, 0) : 0;
    n->rows = step == 1 ? n->d.row : 0;
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : step < 0 ? step : 0;
}

static int read_launches(struct nsys *n, sqlite3_stmt *stmt)
{
    struct row row;
    int status = 0, step = 0;
    n->d.table = launches_table;
    while (status == 0 && (step = occ_nsys_db_step(&n->d, stmt, COLUMN_COUNT)) == 1) {
        read_row(stmt, &row);
        status = take_launch(n, &row);
        if (++n->rows_read % PROGRESS_ROWS == 0)
            occ_import_sink_progress(n->sink, (uint64_t)n->rows_read,
                                     (uint64_t)(n->rows > n->rows_read ? n->rows : n->rows_read));
    }
    if (status != 0 || step < 0)
        return status != 0 ? status : step;
    return n->rows_read > 0 ? 0
                            : fail_without_launches(
                                  n, "table CUPTI_ACTIVITY_KIND_KERNEL is empty: no kernel was recorded");
}

/* ---- what the file says of itself ---- */

struct facts {
    char version[128], hostname[256], exe[512], lacks[1024];
    int64_t epoch_ns; /* 0: unknown */
    int64_t rank;
};

/* The first row of a small table whose `key` column has this value gives its other column: a text, cut to `size`, or a
 * number. Left alone if there is none. */
struct question {
    const char *table, *key, *value, *where; /* `where` for `key`: " WHERE name = 'Hostname'" */
    char *text;
    size_t size;
    int64_t *number;
};

static int ask(struct nsys *n, const struct question *q, int64_t parameter)
{
    const char *const wanted[] = {q->value, q->key};
    uint64_t present = 0;
    sqlite3_stmt *stmt = NULL;
    int status = occ_nsys_db_has(&n->d, q->table);
    if (status <= 0)
        return status;
    status = occ_nsys_db_select(&n->d, q->table, wanted, 2, " LIMIT 0", &present, &stmt);
    (void)sqlite3_finalize(stmt);
    if (status != 0 || present != 3)
        return status; /* another version's columns: unknown */
    status = occ_nsys_db_select(&n->d, q->table, wanted, 2, q->where, NULL, &stmt);
    if (status == 0 && sqlite3_bind_parameter_count(stmt) > 0)
        (void)sqlite3_bind_int64(stmt, 1, parameter);
    int step = status == 0 ? occ_nsys_db_step(&n->d, stmt, 2) : 0;
    if (step == 1 && q->number)
        *q->number = occ_nsys_integer(stmt, 0, *q->number);
    const char *text = step == 1 && q->text ? occ_nsys_text(stmt, 0) : NULL;
    if (text)
        (void)snprintf(q->text, q->size, "%s", text);
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : step < 0 ? step : 0;
}

/* Several recordings that began at different times have no one epoch. */
static int read_epoch(struct nsys *n, struct facts *facts)
{
    static const char *const wanted[] = {"utcEpochNs"};
    sqlite3_stmt *stmt = NULL;
    int status = occ_nsys_db_select(&n->d, "TARGET_INFO_SESSION_START_TIME", wanted, 1, "", NULL, &stmt);
    int step = 0;
    bool differ = false;
    while (status == 0 && stmt && !differ && (step = occ_nsys_db_step(&n->d, stmt, 1)) == 1) {
        int64_t epoch_ns = occ_nsys_integer(stmt, 0, 0);
        differ = facts->epoch_ns != 0 && epoch_ns != facts->epoch_ns;
        facts->epoch_ns = epoch_ns;
    }
    if (differ || facts->epoch_ns < 0)
        facts->epoch_ns = 0;
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : step < 0 ? step : 0;
}

static void add_lack(struct facts *facts, const char *text)
{
    size_t used = strlen(facts->lacks);
    (void)snprintf(facts->lacks + used, sizeof facts->lacks - used, "%s%s", used ? ", " : "", text);
}

static int list_missing(struct nsys *n, struct facts *facts)
{
    bool whole_graphs = false;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (!(n->present >> i & 1) && columns_said[i])
            add_lack(facts, columns_said[i]);
    int status = has_whole_graphs(n, &whole_graphs);
    if (status == 0 && whole_graphs)
        add_lack(facts, "kernels of CUDA graphs that were recorded whole");
    return status;
}

static int read_facts(struct nsys *n, struct facts *f)
{
    const int64_t pid = occ_nsys_pid_of(n->process);
    const struct question questions[] = {
        {"EXPORT_META_DATA", "name", "value", " WHERE name = 'EXPORT_PRODUCT_VERSION'", f->version,
         sizeof f->version, NULL},
        {"META_DATA_EXPORT", "name", "value", " WHERE name = 'EXPORT_PRODUCT_VERSION'", f->version,
         sizeof f->version, NULL},
        {"TARGET_INFO_SYSTEM_ENV", "name", "value", " WHERE name = 'Hostname'", f->hostname,
         sizeof f->hostname, NULL},
        {"PROCESSES", "pid", "name", " WHERE pid = ?", f->exe, sizeof f->exe, NULL},
        {"MPI_RANKS", "globalTid", "rank", " WHERE globalTid >> 24 = ?", NULL, 0, &f->rank},
    };
    const int64_t parameters[] = {0, 0, 0, pid, n->process >> 24};
    size_t of_any = 3, all = sizeof questions / sizeof *questions;
    int status = read_epoch(n, f);
    for (size_t i = 0; i < (n->several || pid == 0 ? of_any : all) && status == 0; i++)
        status = ask(n, &questions[i], parameters[i]);
    return status == 0 ? list_missing(n, f) : status;
}

static int say_recording(struct nsys *n)
{
    struct facts facts = {.rank = -1};
    int status = read_facts(n, &facts);
    const struct occ_import_recording recording = {
        .tool = "nsys",
        .tool_version = facts.version[0] ? facts.version : NULL,
        .hostname = facts.hostname[0] ? facts.hostname : NULL,
        .exe = facts.exe[0] ? facts.exe : NULL,
        .pid = n->several ? 0 : (int32_t)occ_nsys_pid_of(n->process),
        .rank = facts.rank >= 0 && facts.rank <= INT32_MAX ? (int32_t)facts.rank : -1,
        .time_base = facts.epoch_ns ? OCC_IMPORT_TIME_EPOCH : OCC_IMPORT_TIME_UNKNOWN,
        .shift_ns = facts.epoch_ns,
        .lacks = facts.lacks[0] ? facts.lacks : NULL,
    };
    return status == 0 ? occ_import_sink_recording(n->sink, &recording, n->err) : status;
}

/* ---- all of it ---- */

static int read_all(struct nsys *n, const struct occ_device *gpu, const char *gpu_name)
{
    sqlite3_stmt *launches = NULL;
    int status = open_launches(n, &launches); /* says first what is wrong with the table that matters */
    if (status == 0)
        status = guess_rows(n);
    if (status == 0)
        status = prepare_names(n);
    if (status == 0)
        status = occ_nsys_devices_read(&n->d, gpu, gpu_name, &n->devices);
    if (status == 0)
        status = read_launches(n, launches);
    (void)sqlite3_finalize(launches);
    return status == 0 ? say_recording(n) : status;
}

int occ_nsys_read(sqlite3 *db, const struct occ_device *gpu, const char *gpu_name,
                  struct occ_import_sink *sink, struct occ_error *err)
{
    struct nsys *n = calloc(1, sizeof *n);
    if (!n)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    n->sink = sink;
    n->err = err;
    int status = occ_nsys_db_make_harmless(db, &n->d, err);
    if (status == 0)
        status = read_all(n, gpu, gpu_name);
    (void)sqlite3_finalize(n->find_name);
    occ_nsys_devices_free(n->devices);
    occ_nsys_db_finish(&n->d);
    forget_names(n);
    free(n);
    return status;
}

/* ---- files ---- */

/* "file://" and the path with everything but letters, digits and a few signs escaped. malloc'ed. */
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

/* What is not in the file yet would be missed: an immutable file's journals are not read. */
static int refuse_journals(const char *path, struct occ_error *err)
{
    static const char *const tails[] = {"-wal", "-journal"};
    for (size_t i = 0; i < 2; i++) {
        struct stat status;
        _cleanup_(occ_freep) char *beside = malloc(strlen(path) + 16);
        if (!beside)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
        (void)sprintf(beside, "%s%s", path, tails[i]);
        if (stat(beside, &status) == 0 && status.st_size > 0)
            return occ_fail(err, OCC_E_INVALID,
                            "%s lies beside it: it is being written, or was not closed; export it again, or "
                            "close it with: sqlite3 FILE .tables",
                            beside);
    }
    return 0;
}

static int read_file(const char *path, const struct occ_device *gpu, const char *gpu_name,
                     struct occ_import_sink *sink, struct occ_error *err)
{
    sqlite3 *db = NULL;
    int status = refuse_journals(path, err);
    if (status != 0)
        return status;
    _cleanup_(occ_freep) char *uri = make_uri(path);
    if (!uri)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    int code = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    status = code == SQLITE_OK
                 ? occ_nsys_read(db, gpu, gpu_name, sink, err)
                 : occ_fail(err, OCC_E_IO, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    (void)sqlite3_close(db);
    return status;
}

int occ_import_read_nsys(const char *path, const struct occ_device *gpu, const char *gpu_name,
                         struct occ_import_sink *sink, struct occ_error *err)
{
    _cleanup_(occ_freep) char *real = realpath(path, NULL); /* journals lie beside what a link points to */
    if (!real)
        return occ_fail_errno(err, errno, "%s", path);
    int status = read_file(real, gpu, gpu_name, sink, err);
    return status == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
