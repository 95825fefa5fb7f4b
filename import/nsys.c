/*
 * The SQLite export of Nsight Systems: table CUPTI_ACTIVITY_KIND_KERNEL with names in StringIds, devices in
 * TARGET_INFO_GPU, and small tables about host, process and clock. Tables and columns come and go between versions
 * (2019 ... 2026); what is not there is unknown.
 *
 * The file is hostile until proven otherwise: it is opened read-only and immutable (no journal is looked for, no file
 * appears beside it), its schema is not trusted, an authorizer lets through nothing but reading columns, and only
 * ordinary tables are read.
 *
 * Names are looked up by id and kept in a small table of bounded size. One thread.
 */
#include "nsys.h"

#include <ctype.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/text.h"

#define NAMES_KEPT      1024u
#define NAME_KEPT_BYTES 16384 /* longer ones are looked up each time */
#define GPUS_MOST       256u
#define PROGRESS_ROWS   8192u
#define TEXT_MOST_BYTES (64 << 20)
#define GLOBAL_PID_SHIFT                                                                                     \
    24 /* of a "serialized global id": pid in bits 24 ... 47, as the export's documentation has it */
#define GLOBAL_PID_MASK 0xffffff

/* Columns of a launch. X(NAME, column, what it is called where it is missing; NULL: not worth saying) */
#define COLUMNS(X)                                                                                           \
    X(START, "start", NULL)                                                                                  \
    X(END, "end", NULL)                                                                                      \
    X(DEVICE_ID, "deviceId", NULL)                                                                           \
    X(CONTEXT_ID, "contextId", NULL)                                                                         \
    X(STREAM_ID, "streamId", NULL)                                                                           \
    X(CORRELATION_ID, "correlationId", "correlation id")                                                     \
    X(GLOBAL_PID, "globalPid", "process")                                                                    \
    X(MANGLED, "mangledName", "mangled name")                                                                \
    X(DEMANGLED, "demangledName", NULL)                                                                      \
    X(SHORT, "shortName", NULL)                                                                              \
    X(LAUNCH_TYPE, "launchType", "launch type")                                                              \
    X(CACHE_CONFIG, "cacheConfig", NULL)                                                                     \
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
    X(ACTIVE_CLUSTERS, "maxActiveClusters", NULL)                                                            \
    X(STATIC_SMEM, "staticSharedMemory", "static shared memory")                                             \
    X(DYNAMIC_SMEM, "dynamicSharedMemory", "dynamic shared memory")                                          \
    X(SMEM_EXECUTED, "sharedMemoryExecuted", "the driver's shared-memory carve-out")                         \
    X(SMEM_LIMIT, "sharedMemoryLimitConfig", "opt-in to large shared memory")                                \
    X(LOCAL, "localMemoryPerThread", "local memory")                                                         \
    X(GRAPH_NODE, "graphNodeId", "graph node")

enum column {
#define X(name, column, text) name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
};

static const struct {
    const char *name, *text;
} columns[COLUMN_COUNT] = {
#define X(name, column, text) [name] = {column, text},
    COLUMNS(X)
#undef X
};

/* Columns of a device and where they go. X(column, field of struct occ_device) */
#define GPU_LIMITS(X)                                                                                        \
    X("smCount", sm_count)                                                                                   \
    X("threadsPerWarp", warp_size)                                                                           \
    X("maxThreadsPerBlock", max_threads_per_block)                                                           \
    X("maxBlocksPerSm", max_blocks_per_sm)                                                                   \
    X("maxRegistersPerBlock", registers_per_block)                                                           \
    X("maxRegistersPerSm", registers_per_sm)                                                                 \
    X("maxShmemPerBlock", smem_per_block_bytes)                                                              \
    X("maxShmemPerBlockOptin", smem_per_block_optin_bytes)                                                   \
    X("maxShmemPerSm", smem_per_sm_bytes)

struct name {
    int64_t id;
    char *text; /* NULL: free */
    size_t bytes;
};

struct gpu_entry {
    int64_t id, cuda; /* in the file; CUDA ordinal, -1: unknown */
};

/* "In this process, CUDA device number 1 is GPU 3." */
struct cuda_entry {
    int64_t pid, ordinal, gpu;
};

struct nsys {
    sqlite3 *db;
    struct occ_import_sink *sink;
    struct occ_error *err;
    int index[COLUMN_COUNT]; /* of each column in the row; -1: not there */
    struct name names[NAMES_KEPT];
    sqlite3_stmt *find_name;
    struct gpu_entry gpus[GPUS_MOST];
    size_t n_gpus;
    struct cuda_entry cudas[GPUS_MOST];
    size_t n_cudas;
    const struct occ_device *gpu;
    const char *gpu_name;
    int64_t row, rows; /* at hand, and about how many there are */
    int64_t pid;       /* of the kernels; 0: none yet */
    bool several_pids;
};

static int fail_sql(struct nsys *n, const char *table)
{
    int code = sqlite3_errcode(n->db);
    const char *said = sqlite3_errmsg(n->db);
    if (code == SQLITE_NOTADB)
        return occ_fail(n->err, OCC_E_CORRUPT, "not a sound SQLite file (encrypted or damaged?): %s", said);
    if (n->row > 0)
        return occ_fail(n->err, OCC_E_CORRUPT, "table %s, row %lld: %s", table, (long long)n->row, said);
    return occ_fail(n->err, OCC_E_CORRUPT, "table %s: %s", table, said);
}

/* ---- harmless ---- */

static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)context;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static void make_harmless(sqlite3 *db)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_MOST_BYTES);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096", NULL,
                       NULL, NULL);
    (void)sqlite3_set_authorizer(db, authorize, NULL);
}

/* 1: an ordinary table; 0: there is none of this name; negative: something else, or the file is broken. */
static int has_table(struct nsys *n, const char *table)
{
    static const char sql[] = "SELECT type, sql FROM sqlite_master WHERE name = ?";
    sqlite3_stmt *stmt = NULL;
    int result = 0;
    if (sqlite3_prepare_v2(n->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return fail_sql(n, "sqlite_master");
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(stmt, 0);
        const char *text = (const char *)sqlite3_column_text(stmt, 1);
        bool ordinary =
            type && text && strcmp(type, "table") == 0 && strncasecmp(text, "CREATE TABLE", 12) == 0;
        result = ordinary ? 1 : occ_fail(n->err, OCC_E_INVALID, "%s is not an ordinary table", table);
    } else if (step != SQLITE_DONE) {
        result = fail_sql(n, "sqlite_master");
    }
    (void)sqlite3_finalize(stmt);
    return result;
}

/* SELECT * of a table that may be missing: *ret_stmt is NULL then. */
static int open_table(struct nsys *n, const char *table, sqlite3_stmt **ret_stmt)
{
    char sql[128];
    *ret_stmt = NULL;
    n->row = 0;
    int found = has_table(n, table);
    if (found <= 0)
        return found;
    (void)snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
    return sqlite3_prepare_v2(n->db, sql, -1, ret_stmt, NULL) == SQLITE_OK ? 0 : fail_sql(n, table);
}

static int column_of(sqlite3_stmt *stmt, const char *name)
{
    for (int i = sqlite3_column_count(stmt) - 1; i >= 0; i--)
        if (sqlite3_stricmp(sqlite3_column_name(stmt, i), name) == 0)
            return i;
    return -1;
}

/* The integer of a column that may be missing or NULL: then `otherwise`. */
static int64_t integer_at(sqlite3_stmt *stmt, const char *name, int64_t otherwise)
{
    int at = column_of(stmt, name);
    return at >= 0 && sqlite3_column_type(stmt, at) == SQLITE_INTEGER ? sqlite3_column_int64(stmt, at)
                                                                      : otherwise;
}

static const char *text_at(sqlite3_stmt *stmt, const char *name)
{
    int at = column_of(stmt, name);
    return at >= 0 && sqlite3_column_type(stmt, at) == SQLITE_TEXT
               ? (const char *)sqlite3_column_text(stmt, at)
               : NULL;
}

static uint32_t u32_at(sqlite3_stmt *stmt, const char *name)
{
    int64_t value = integer_at(stmt, name, 0);
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* ---- devices ---- */

/* "74e128b2-90b6-b409-...", with or without "GPU-". Anything else stays unknown. */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
    char digits[33];
    size_t n = 0;
    if (!text)
        return;
    text += strncmp(text, "GPU-", 4) == 0 ? 4 : 0;
    for (; *text && n < 32; text++)
        if (isxdigit((unsigned char)*text))
            digits[n++] = *text;
    digits[n] = '\0';
    if (n == 32 && !*text)
        (void)occ_hex_decode(digits, uuid, 16);
}

static int add_gpu(struct nsys *n, sqlite3_stmt *stmt)
{
    struct occ_store_device device = {.name = text_at(stmt, "name")};
    uint32_t major = u32_at(stmt, "computeMajor"), minor = u32_at(stmt, "computeMinor");
    int64_t memory = integer_at(stmt, "totalMemory", 0), hertz = integer_at(stmt, "clockRate", 0);
    if (n->n_gpus == GPUS_MOST)
        return occ_fail(n->err, OCC_E_INVALID, "more than %u GPUs", GPUS_MOST);
    device.limits.cc = major < 100 && minor < 10 ? major * 10 + minor : 0;
    device.limits.max_threads_per_sm = u32_at(stmt, "maxWarpsPerSm") <= 1024
                                           ? u32_at(stmt, "maxWarpsPerSm") * u32_at(stmt, "threadsPerWarp")
                                           : 0;
#define X(column, field) device.limits.field = u32_at(stmt, column);
    GPU_LIMITS(X)
#undef X
    device.memory_bytes = memory > 0 ? (uint64_t)memory : 0;
    device.clock_khz = hertz > 0 && hertz / 1000 <= UINT32_MAX ? (uint32_t)(hertz / 1000) : 0;
    parse_uuid(text_at(stmt, "uuid"), device.uuid);
    struct gpu_entry *gpu = &n->gpus[n->n_gpus++];
    *gpu = (struct gpu_entry){.id = integer_at(stmt, "id", (int64_t)n->n_gpus - 1),
                              .cuda = integer_at(stmt, "cuDevice", -1)};
    return occ_import_sink_device(n->sink, (uint64_t)gpu->id, &device, n->err);
}

static int add_cuda(struct nsys *n, sqlite3_stmt *stmt)
{
    const struct cuda_entry entry = {.pid = integer_at(stmt, "pid", -1),
                                     .ordinal = integer_at(stmt, "cudaId", -1),
                                     .gpu = integer_at(stmt, "gpuId", -1)};
    if (n->n_cudas < GPUS_MOST && entry.ordinal >= 0 && entry.gpu >= 0)
        n->cudas[n->n_cudas++] = entry;
    return 0;
}

/* Every row of a table that may be missing. */
static int each_row(struct nsys *n, const char *table, int (*take)(struct nsys *, sqlite3_stmt *))
{
    sqlite3_stmt *stmt = NULL;
    int status = open_table(n, table, &stmt), step = SQLITE_DONE;
    while (status == 0 && stmt && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        n->row++;
        status = take(n, stmt);
    }
    if (status == 0 && step != SQLITE_DONE)
        status = fail_sql(n, table);
    (void)sqlite3_finalize(stmt);
    return status;
}

/* The sink's number for a launch's device. */
static uint64_t device_of(const struct nsys *n, int64_t pid, int64_t ordinal)
{
    for (size_t i = 0; i < n->n_cudas; i++)
        if (n->cudas[i].ordinal == ordinal && (n->cudas[i].pid == pid || n->cudas[i].pid == -1))
            return (uint64_t)n->cudas[i].gpu;
    for (size_t i = 0; i < n->n_gpus; i++)
        if (n->gpus[i].cuda == ordinal)
            return (uint64_t)n->gpus[i].id;
    return (uint64_t)ordinal;
}

static int read_devices(struct nsys *n)
{
    int status = each_row(n, "TARGET_INFO_GPU", add_gpu);
    if (status == 0)
        status = each_row(n, "TARGET_INFO_CUDA_DEVICE", add_cuda);
    if (status == 0 && n->n_gpus == 0 && !n->gpu)
        return occ_fail(
            n->err, OCC_E_INVALID,
            "the file does not describe its GPUs (no TARGET_INFO_GPU); say which it was: --gpu NAME");
    return status;
}

static int use_named_gpu(struct nsys *n, uint64_t number)
{
    const struct occ_store_device device = {.name = n->gpu_name, .limits = *n->gpu};
    if (occ_import_sink_has_device(n->sink, number))
        return 0;
    return occ_import_sink_device(n->sink, number, &device, n->err);
}

/* ---- names ---- */

/* The text behind an id; valid until the next call. NULL text: there is none. */
static int find_name(struct nsys *n, int64_t id, const char **ret_text, size_t *ret_bytes)
{
    struct name *kept = &n->names[(uint64_t)id % NAMES_KEPT];
    *ret_text = NULL;
    *ret_bytes = 0;
    if (kept->text && kept->id == id) {
        *ret_text = kept->text;
        *ret_bytes = kept->bytes;
        return 0;
    }
    if (!n->find_name)
        return 0;
    (void)sqlite3_reset(n->find_name);
    (void)sqlite3_bind_int64(n->find_name, 1, id);
    int step = sqlite3_step(n->find_name);
    if (step != SQLITE_ROW)
        return step == SQLITE_DONE ? 0 : fail_sql(n, "StringIds");
    if (sqlite3_column_type(n->find_name, 0) != SQLITE_TEXT)
        return 0;
    *ret_text = (const char *)sqlite3_column_text(n->find_name, 0);
    *ret_bytes = (size_t)sqlite3_column_bytes(n->find_name, 0);
    char *copy = *ret_text && *ret_bytes <= NAME_KEPT_BYTES ? malloc(*ret_bytes + 1) : NULL;
    if (copy) {
        memcpy(copy, *ret_text, *ret_bytes);
        free(kept->text);
        *kept = (struct name){.id = id, .text = copy, .bytes = *ret_bytes};
    }
    return 0;
}

static int prepare_names(struct nsys *n)
{
    int found = has_table(n, "StringIds");
    if (found <= 0)
        return found;
    return sqlite3_prepare_v2(n->db, "SELECT value FROM StringIds WHERE id = ?", -1, &n->find_name, NULL) ==
                   SQLITE_OK
               ? 0
               : fail_sql(n, "StringIds");
}

/* ---- launches ---- */

/* What a row holds: integers; `known` has a bit for each that is there. */
struct row {
    int64_t value[COLUMN_COUNT];
    uint64_t known;
    bool bad; /* something that is no integer */
};

static void read_row(const struct nsys *n, sqlite3_stmt *stmt, struct row *row)
{
    row->known = 0;
    row->bad = false;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        row->value[i] = 0;
        int type = n->index[i] >= 0 ? sqlite3_column_type(stmt, n->index[i]) : SQLITE_NULL;
        if (type == SQLITE_INTEGER) {
            row->value[i] = sqlite3_column_int64(stmt, n->index[i]);
            row->known |= UINT64_C(1) << i;
        } else if (type != SQLITE_NULL) {
            row->bad = true;
        }
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
    return !row->bad && row->value[LAUNCH_TYPE] >= 0 && row->value[LAUNCH_TYPE] <= UINT8_MAX &&
           row->value[CACHE_CONFIG] >= 0 && row->value[CACHE_CONFIG] <= UINT8_MAX;
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
    l->carveout_percent = -1;
    l->max_active_clusters = (uint32_t)row->value[ACTIVE_CLUSTERS];
    l->smem_optin_known =
        has(row, SMEM_LIMIT) && row->value[SMEM_LIMIT] == 1; /* 0 is also written for "not said" */
    l->smem_optin = l->smem_optin_known;
    shape->local_bytes_per_thread = (uint32_t)row->value[LOCAL];
    shape->max_cluster_size = (uint32_t)row->value[MAX_CLUSTER];
    shape->launch_type = (uint8_t)row->value[LAUNCH_TYPE];
    shape->cache_config = (uint8_t)row->value[CACHE_CONFIG];
}

static int take_name(struct nsys *n, const struct row *row, struct occ_import_launch *launch)
{
    static const enum column choices[] = {MANGLED, DEMANGLED, SHORT};
    int status = 0;
    for (size_t i = 0; i < 3 && status == 0 && launch->name_bytes == 0; i++)
        if (has(row, choices[i]))
            status = find_name(n, row->value[choices[i]], &launch->name, &launch->name_bytes);
    return status;
}

static int take_launch(struct nsys *n, const struct row *row)
{
    struct occ_import_launch launch = {.claimed_achieved = NAN};
    if (!fits(row)) {
        occ_import_sink_skip(n->sink, OCC_IMPORT_SKIP_BAD_VALUE);
        return 0;
    }
    if (!has(row, START) || !has(row, END)) {
        occ_import_sink_skip(n->sink, OCC_IMPORT_SKIP_BAD_TIMES);
        return 0;
    }
    int64_t pid = has(row, GLOBAL_PID) ? row->value[GLOBAL_PID] >> GLOBAL_PID_SHIFT & GLOBAL_PID_MASK : 0;
    n->several_pids |= n->pid != 0 && pid != n->pid;
    n->pid = pid;
    launch.start_ns = row->value[START];
    launch.end_ns = row->value[END];
    launch.device = device_of(n, pid, row->value[DEVICE_ID]);
    launch.context = (uint32_t)row->value[CONTEXT_ID];
    launch.stream = (uint32_t)row->value[STREAM_ID];
    launch.correlation = (uint32_t)row->value[CORRELATION_ID];
    launch.graph_node = (uint64_t)row->value[GRAPH_NODE];
    fill_shape(row, &launch.shape);
    int status = take_name(n, row, &launch);
    if (status == 0 && n->n_gpus == 0)
        status = use_named_gpu(n, launch.device);
    return status == 0 ? occ_import_sink_launch(n->sink, &launch, n->err) : status;
}

static int open_launches(struct nsys *n, sqlite3_stmt **ret_stmt)
{
    int status = open_table(n, "CUPTI_ACTIVITY_KIND_KERNEL", ret_stmt);
    if (status != 0)
        return status;
    if (!*ret_stmt)
        return occ_fail(
            n->err, OCC_E_INVALID,
            "no table CUPTI_ACTIVITY_KIND_KERNEL: recorded without --trace=cuda, or not an export of Nsight "
            "Systems");
    for (int i = 0; i < COLUMN_COUNT; i++)
        n->index[i] = column_of(*ret_stmt, columns[i].name);
    static const enum column needed[] = {START, END, REGISTERS, GRID_X, BLOCK_X};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (n->index[needed[i]] < 0)
            return occ_fail(n->err, OCC_E_INVALID, "table CUPTI_ACTIVITY_KIND_KERNEL has no column %s",
                            columns[needed[i]].name);
    return 0;
}

static int read_launches(struct nsys *n)
{
    sqlite3_stmt *stmt = NULL;
    struct row row;
    int status = open_launches(n, &stmt), step = SQLITE_DONE;
    if (status == 0 && stmt)
        while (status == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
            n->row++;
            read_row(n, stmt, &row);
            status = take_launch(n, &row);
            if (n->row % PROGRESS_ROWS == 0)
                occ_import_sink_progress(n->sink, (uint64_t)n->row, (uint64_t)n->rows);
        }
    if (status == 0 && step != SQLITE_DONE)
        status = fail_sql(n, "CUPTI_ACTIVITY_KIND_KERNEL");
    if (status == 0 && n->row == 0)
        status = occ_fail(n->err, OCC_E_INVALID,
                          "table CUPTI_ACTIVITY_KIND_KERNEL is empty: no kernel was recorded");
    (void)sqlite3_finalize(stmt);
    return status;
}

/* About how many rows there are: the largest rowid, which costs nothing to find. */
static void guess_rows(struct nsys *n)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(n->db, "SELECT rowid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY rowid DESC LIMIT 1",
                           -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        n->rows = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
}

/* ---- what the file says of itself ---- */

/* A text that a small table gives for a key, cut to `size`; "" if there is none. */
static int find_text(struct nsys *n, const char *table, const char *sql, int64_t number, char *text,
                     size_t size)
{
    sqlite3_stmt *stmt = NULL;
    int found = text[0] ? 0 : has_table(n, table);
    if (found <= 0)
        return found;
    /* another version's columns are no failure: then the text stays unknown */
    if (sqlite3_prepare_v2(n->db, sql, -1, &stmt, NULL) == SQLITE_OK) {
        if (sqlite3_bind_parameter_count(stmt) > 0)
            (void)sqlite3_bind_int64(stmt, 1, number);
        if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_TEXT)
            (void)snprintf(text, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    (void)sqlite3_finalize(stmt);
    return 0;
}

struct facts {
    char version[128], hostname[256], exe[512], lacks[512];
    int64_t epoch_ns; /* 0: unknown */
};

static int take_epoch(struct nsys *n, sqlite3_stmt *stmt, struct facts *facts)
{
    (void)n;
    facts->epoch_ns = integer_at(stmt, "utcEpochNs", 0);
    return 0;
}

static int read_epoch(struct nsys *n, struct facts *facts)
{
    sqlite3_stmt *stmt = NULL;
    int status = open_table(n, "TARGET_INFO_SESSION_START_TIME", &stmt);
    if (status == 0 && stmt && sqlite3_step(stmt) == SQLITE_ROW)
        status = take_epoch(n, stmt, facts);
    (void)sqlite3_finalize(stmt);
    if (facts->epoch_ns < 0)
        facts->epoch_ns = 0;
    return status;
}

static void list_missing(const struct nsys *n, struct facts *facts)
{
    size_t used = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (n->index[i] < 0 && columns[i].text && used < sizeof facts->lacks)
            used += (size_t)snprintf(facts->lacks + used, sizeof facts->lacks - used, "%s%s",
                                     used ? ", " : "", columns[i].text);
}

static int read_facts(struct nsys *n, struct facts *facts)
{
    static const char version[] = "value FROM %s WHERE name = 'EXPORT_PRODUCT_VERSION'";
    static const char *const version_tables[] = {"META_DATA_EXPORT", "EXPORT_META_DATA"};
    int status = read_epoch(n, facts);
    for (size_t i = 0; i < 2 && status == 0; i++) {
        char sql[128] = "SELECT ";
        (void)snprintf(sql + 7, sizeof sql - 7, version, version_tables[i]);
        status = find_text(n, version_tables[i], sql, 0, facts->version, sizeof facts->version);
    }
    if (status == 0)
        status = find_text(n, "TARGET_INFO_SYSTEM_ENV",
                           "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'", 0,
                           facts->hostname, sizeof facts->hostname);
    if (status == 0 && n->pid != 0 && !n->several_pids)
        status = find_text(n, "PROCESSES", "SELECT name FROM PROCESSES WHERE pid = ?", n->pid, facts->exe,
                           sizeof facts->exe);
    list_missing(n, facts);
    return status;
}

static int say_recording(struct nsys *n)
{
    struct facts facts = {0};
    int status = read_facts(n, &facts);
    const struct occ_import_recording recording = {
        .tool = "nsys",
        .tool_version = facts.version[0] ? facts.version : NULL,
        .hostname = facts.hostname[0] ? facts.hostname : NULL,
        .exe = facts.exe[0] ? facts.exe : NULL,
        .pid = n->several_pids ? 0 : (int32_t)n->pid,
        .rank = -1,
        .time_base = facts.epoch_ns ? OCC_IMPORT_TIME_EPOCH : OCC_IMPORT_TIME_UNKNOWN,
        .shift_ns = facts.epoch_ns,
        .lacks = facts.lacks[0] ? facts.lacks : NULL,
    };
    return status == 0 ? occ_import_sink_recording(n->sink, &recording, n->err) : status;
}

/* ---- all of it ---- */

int occ_nsys_read(sqlite3 *db, const struct occ_device *gpu, const char *gpu_name,
                  struct occ_import_sink *sink, struct occ_error *err)
{
    struct nsys *n = calloc(1, sizeof *n);
    if (!n)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    *n = (struct nsys){.db = db, .sink = sink, .err = err, .gpu = gpu, .gpu_name = gpu_name};
    make_harmless(db);
    int status = has_table(n, "CUPTI_ACTIVITY_KIND_KERNEL");
    status = status < 0 ? status : 0;
    if (status == 0) {
        guess_rows(n);
        status = prepare_names(n);
    }
    sqlite3_stmt *probe = NULL;
    if (status == 0)
        status = open_launches(n, &probe); /* says first what is wrong with the table that matters */
    (void)sqlite3_finalize(probe);
    if (status == 0)
        status = read_devices(n);
    if (status == 0)
        status = read_launches(n);
    if (status == 0)
        status = say_recording(n);
    (void)sqlite3_finalize(n->find_name);
    for (size_t i = 0; i < NAMES_KEPT; i++)
        free(n->names[i].text);
    free(n);
    return status;
}

/* ---- files ---- */

/* "file:" and the path with everything but letters, digits and a few signs escaped. malloc'ed. */
static char *make_uri(const char *path)
{
    static const char tail[] = "?mode=ro&immutable=1";
    char *uri = malloc(5 + 3 * strlen(path) + sizeof tail), *to = uri;
    if (!uri)
        return NULL;
    to += sprintf(to, "file:");
    for (; *path; path++)
        to += isalnum((unsigned char)*path) || strchr("/._-", *path)
                  ? sprintf(to, "%c", *path)
                  : sprintf(to, "%%%02X", (unsigned)(unsigned char)*path);
    memcpy(to, tail, sizeof tail);
    return uri;
}

int occ_import_read_nsys(const char *path, const struct occ_device *gpu, const char *gpu_name,
                         struct occ_import_sink *sink, struct occ_error *err)
{
    sqlite3 *db = NULL;
    char *uri = make_uri(path);
    if (!uri)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    int code = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    int status = code == SQLITE_OK
                     ? occ_nsys_read(db, gpu, gpu_name, sink, err)
                     : occ_fail(err, OCC_E_IO, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    (void)sqlite3_close(db);
    free(uri);
    return status == 0 ? 0 : occ_error_prefix(err, "%s", path);
}
