/* GPUs and their ordinals in processes. One thread. */
#include "nsys_parts.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/map.h"
#include "support/text.h"

#define GPUS_MAX                  256u
#define LINKS_MAX                 (1u << 17)
#define UNKNOWN                   INT64_MIN
#define ORDINAL_MAX               0xffffff
#define PROCESS_KEY(pid, ordinal) ((uint64_t)(pid) << 24 | (uint64_t)(ordinal))

/* Numbers for the sink: GPUs by index, then links to a part of a GPU's SMs, then the user's GPU. */
#define NUMBER_OF_LINK(i) (GPUS_MAX + (uint64_t)(i))
#define NUMBER_OF_NAMED   UINT64_MAX

/* Columns of TARGET_INFO_GPU that are limits of the model. X(NAME, column, field of struct occ_device) */
#define LIMITS(X)                                                                                            \
    X(SM_COUNT, "smCount", sm_count)                                                                         \
    X(THREADS_PER_WARP, "threadsPerWarp", warp_size)                                                         \
    X(THREADS_PER_BLOCK, "maxThreadsPerBlock", max_threads_per_block)                                        \
    X(BLOCKS_PER_SM, "maxBlocksPerSm", max_blocks_per_sm)                                                    \
    X(REGISTERS_PER_BLOCK, "maxRegistersPerBlock", registers_per_block)                                      \
    X(REGISTERS_PER_SM, "maxRegistersPerSm", registers_per_sm)                                               \
    X(SMEM_PER_BLOCK, "maxShmemPerBlock", smem_per_block_bytes)                                              \
    X(SMEM_OPTIN, "maxShmemPerBlockOptin", smem_per_block_optin_bytes)                                       \
    X(SMEM_PER_SM, "maxShmemPerSm", smem_per_sm_bytes)

/* The other columns that are read. X(NAME, column, unused) */
#define FACTS(X)                                                                                             \
    X(VM_ID, "vmId", )                                                                                       \
    X(ID, "id", )                                                                                            \
    X(NAME, "name", )                                                                                        \
    X(CHIP, "chipName", )                                                                                    \
    X(UUID, "uuid", )                                                                                        \
    X(CU_DEVICE, "cuDevice", )                                                                               \
    X(MEMORY, "totalMemory", )                                                                               \
    X(CLOCK, "clockRate", )                                                                                  \
    X(MAJOR, "computeMajor", )                                                                               \
    X(MINOR, "computeMinor", )                                                                               \
    X(WARPS_PER_SM, "maxWarpsPerSm", )

#define ENUMERATOR(name, column, field) name,
#define COLUMN(name, column, field)     column,
enum gpu_column { LIMITS(ENUMERATOR) FACTS(ENUMERATOR) GPU_COLUMNS };
static const char *const gpu_columns[GPU_COLUMNS] = {LIMITS(COLUMN) FACTS(COLUMN)};

struct gpu {
    int64_t machine, id, ordinal; /* UNKNOWN */
    struct occ_store_device device;
    char name[256];
};

/* In process `pid`, CUDA device `ordinal` is `gpu`. */
struct link {
    int64_t pid, ordinal, gpu; /* pid: or UNKNOWN */
    uint8_t uuid[16];
    uint32_t sm_count; /* 0: unknown */
    bool agreed;       /* of the first link of an ordinal: it is the same GPU in all processes */
};

struct occ_nsys_devices {
    struct occ_nsys_db *d;
    struct occ_import_sink *sink;
    struct gpu gpus[GPUS_MAX];
    size_t n_gpus;
    bool several_machines, ordinals_known;
    struct link *links;
    struct occ_map by_process,
        by_ordinal; /* -> link: of a process and its ordinal; the first of an ordinal */
    size_t n_links, links_allocated;
};

/* ---- reading ---- */

/* "74e128b2-90b6-b409-...", with or without "GPU-" or "MIG-". Anything else is unknown. */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
    char digits[33];
    size_t n = 0;
    if (!text)
        return;
    text += strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0 ? 4 : 0;
    for (; *text && n < 32; text++)
        if (*text != '-')
            digits[n++] = *text;
    digits[n] = '\0';
    if (n == 32 && !*text)
        (void)occ_hex_decode(digits, uuid, 16);
}

static void fill_device(sqlite3_stmt *stmt, struct occ_store_device *device)
{
    struct occ_device *limits = &device->limits;
    uint32_t major = occ_nsys_u32(stmt, MAJOR), minor = occ_nsys_u32(stmt, MINOR);
    uint32_t warps = occ_nsys_u32(stmt, WARPS_PER_SM);
    int64_t memory = occ_nsys_integer(stmt, MEMORY, 0), hertz = occ_nsys_integer(stmt, CLOCK, 0);
#define FILL(name, column, field) limits->field = occ_nsys_u32(stmt, name);
    LIMITS(FILL)
    limits->cc = major < 100 && minor < 10 ? major * 10 + minor : 0;
    if (warps <= 1024 && limits->warp_size <= 1024)
        limits->max_threads_per_sm = warps * limits->warp_size;
    device->memory_bytes = memory > 0 ? (uint64_t)memory : 0;
    device->clock_khz = hertz > 0 && hertz / 1000 <= UINT32_MAX ? (uint32_t)(hertz / 1000) : 0;
    parse_uuid(occ_nsys_text(stmt, UUID), device->uuid);
}

static int add_gpu(struct occ_nsys_devices *all, sqlite3_stmt *stmt)
{
    if (all->n_gpus == GPUS_MAX)
        return occ_fail(all->d->err, OCC_E_INVALID, "table %s, row %lld: more than %u GPUs", all->d->table,
                        (long long)all->d->row, GPUS_MAX);
    struct gpu *gpu = &all->gpus[all->n_gpus++];
    const char *name = occ_nsys_text(stmt, NAME), *chip = occ_nsys_text(stmt, CHIP);
    int64_t vm = occ_nsys_integer(stmt, VM_ID, 0);
    *gpu = (struct gpu){.machine = occ_nsys_machine_of(vm),
                        .id = occ_nsys_integer(stmt, ID, UNKNOWN),
                        .ordinal = occ_nsys_integer(stmt, CU_DEVICE, UNKNOWN)};
    (void)snprintf(gpu->name, sizeof gpu->name, "%s", name ? name : chip ? chip : "");
    gpu->device.name = gpu->name[0] ? gpu->name : NULL;
    fill_device(stmt, &gpu->device);
    all->several_machines |= gpu->machine != all->gpus[0].machine;
    all->ordinals_known |= gpu->ordinal >= 0;
    return 0;
}

enum link_column { LINK_PID, LINK_ORDINAL, LINK_GPU, LINK_UUID, LINK_SM_COUNT, LINK_COLUMNS };
static const char *const link_columns[] = {"pid", "cudaId", "gpuId", "uuid", "numMultiprocessors"};

/* The GPU of a link without a GPU: the one with its uuid. */
static int64_t id_by_uuid(const struct occ_nsys_devices *all, const uint8_t uuid[16])
{
    static const uint8_t unknown[16];
    for (size_t i = 0; i < all->n_gpus && memcmp(uuid, unknown, 16) != 0; i++)
        if (memcmp(all->gpus[i].device.uuid, uuid, 16) == 0)
            return all->gpus[i].id;
    return UNKNOWN;
}

static int add_link(struct occ_nsys_devices *all, sqlite3_stmt *stmt)
{
    struct link link = {.pid = occ_nsys_integer(stmt, LINK_PID, UNKNOWN),
                        .ordinal = occ_nsys_integer(stmt, LINK_ORDINAL, UNKNOWN),
                        .gpu = occ_nsys_integer(stmt, LINK_GPU, UNKNOWN),
                        .sm_count = occ_nsys_u32(stmt, LINK_SM_COUNT),
                        .agreed = true};
    parse_uuid(occ_nsys_text(stmt, LINK_UUID), link.uuid);
    if (link.gpu == UNKNOWN)
        link.gpu = id_by_uuid(all, link.uuid);
    if (all->n_links == LINKS_MAX)
        return occ_fail(all->d->err, OCC_E_INVALID, "table %s, row %lld: more than %u rows", all->d->table,
                        (long long)all->d->row, LINKS_MAX);
    if (!occ_grow((void **)&all->links, &all->links_allocated, all->n_links, LINKS_MAX, sizeof link))
        return occ_no_memory(all->d->err);
    if (link.ordinal < 0 || link.ordinal > ORDINAL_MAX || link.gpu == UNKNOWN)
        return 0;
    uint32_t index = (uint32_t)all->n_links++;
    all->links[index] = link;
    uint32_t first = occ_map_put(&all->by_ordinal, (uint64_t)link.ordinal, index);
    if (first == OCC_MAP_NONE ||
        (link.pid >= 0 && link.pid <= OCC_NSYS_PID_MAX &&
         occ_map_put(&all->by_process, PROCESS_KEY(link.pid, link.ordinal), index) == OCC_MAP_NONE))
        return occ_no_memory(all->d->err);
    all->links[first].agreed &=
        link.gpu == all->links[first].gpu && link.sm_count == all->links[first].sm_count;
    return 0;
}

static int each_row(struct occ_nsys_devices *all, struct occ_nsys_rows rows,
                    int (*take)(struct occ_nsys_devices *all, sqlite3_stmt *stmt))
{
    int status = occ_nsys_open(all->d, &rows), more = 1;
    while (status == 0 && (more = occ_nsys_next(all->d, &rows)) == 1)
        status = take(all, rows.stmt);
    return occ_nsys_close(&rows, status != 0 ? status : more);
}

int occ_nsys_devices_read(struct occ_nsys_db *d, struct occ_import_sink *sink,
                          struct occ_nsys_devices **ret_devices)
{
    const struct occ_nsys_rows gpus = {.table = "TARGET_INFO_GPU", .columns = gpu_columns, .n = GPU_COLUMNS};
    const struct occ_nsys_rows links = {
        .table = "TARGET_INFO_CUDA_DEVICE", .columns = link_columns, .n = LINK_COLUMNS};
    struct occ_nsys_devices *all = calloc(1, sizeof *all);
    if (!all)
        return occ_no_memory(d->err);
    all->d = d;
    all->sink = sink;
    *ret_devices = all;
    int status = each_row(all, gpus, add_gpu);
    if (status == 0)
        status = each_row(all, links, add_link);
    if (status == 0 && all->n_gpus == 0 && !occ_import_sink_named_gpu(sink))
        status =
            occ_fail(d->err, OCC_E_INVALID,
                     "the file does not describe its GPUs (no TARGET_INFO_GPU): name it with --gpu NAME");
    return status;
}

void occ_nsys_devices_free(struct occ_nsys_devices *devices)
{
    if (!devices)
        return;
    occ_map_free(&devices->by_process);
    occ_map_free(&devices->by_ordinal);
    free(devices->links);
    free(devices);
}

/* ---- finding ---- */

static struct gpu *find_gpu(struct occ_nsys_devices *all, int64_t process, int64_t id, bool by_ordinal)
{
    for (size_t i = 0; i < all->n_gpus; i++) {
        struct gpu *gpu = &all->gpus[i];
        bool here = !all->several_machines || gpu->machine == occ_nsys_machine_of(process);
        if (here && id == (by_ordinal ? gpu->ordinal : gpu->id))
            return gpu;
    }
    return NULL;
}

/* 1, or a negative code. */
static int declare(struct occ_nsys_devices *all, uint64_t number, const struct occ_store_device *device)
{
    int status = occ_import_sink_has_device(all->sink, number)
                     ? 0
                     : occ_import_sink_device(all->sink, number, device, all->d->err);
    return status == 0 ? 1 : status;
}

/* A GPU without compute capability gets the limits of the one that the user named. */
static int complete(const struct occ_nsys_devices *all, struct gpu *gpu)
{
    const struct occ_store_device *named = occ_import_sink_named_gpu(all->sink);
    if (gpu->device.limits.cc != 0)
        return 0;
    if (!named)
        return occ_fail(all->d->err, OCC_E_INVALID,
                        "table TARGET_INFO_GPU does not give the compute capability of %s: name the GPU with "
                        "--gpu NAME",
                        gpu->name[0] ? gpu->name : "a GPU");
    gpu->device.limits = named->limits;
    return 0;
}

/* A process that sees fewer SMs than its GPU has runs on a slice of it, which is a device of its own. */
static int declare_gpu(struct occ_nsys_devices *all, struct gpu *gpu, const struct link *link,
                       uint64_t *ret_number)
{
    int status = complete(all, gpu);
    if (status != 0)
        return status;
    *ret_number = (uint64_t)(gpu - all->gpus);
    if (!link || link->sm_count == 0 || link->sm_count == gpu->device.limits.sm_count)
        return declare(all, *ret_number, &gpu->device);
    struct occ_store_device slice = gpu->device;
    memcpy(slice.uuid, link->uuid, sizeof slice.uuid);
    if (memcmp(slice.uuid, gpu->device.uuid, sizeof slice.uuid) == 0)
        memset(slice.uuid, 0, sizeof slice.uuid); /* the whole GPU's; the slice's own is unknown */
    slice.limits.sm_count = link->sm_count;
    slice.memory_bytes = 0;
    *ret_number = NUMBER_OF_LINK(link - all->links);
    return declare(all, *ret_number, &slice);
}

/* By the process's own link; of a process without one, by the link that all others agree on; of an ordinal
 * without links, by the GPUs' own ordinals. */
int occ_nsys_devices_find(struct occ_nsys_devices *all, int64_t process, int64_t ordinal,
                          uint64_t *ret_number)
{
    uint32_t first = occ_map_get(&all->by_ordinal, (uint64_t)ordinal);
    uint32_t own = occ_map_get(&all->by_process, PROCESS_KEY(occ_nsys_pid_of(process), ordinal));
    const struct link *link = NULL;
    struct gpu *gpu = NULL;
    if (first != OCC_MAP_NONE && own != OCC_MAP_NONE)
        link = &all->links[own];
    else if (first != OCC_MAP_NONE && all->links[first].agreed)
        link = &all->links[first];
    if (link)
        gpu = find_gpu(all, process, link->gpu, false);
    else if (first == OCC_MAP_NONE)
        gpu = find_gpu(all, process, ordinal, all->ordinals_known);
    if (gpu)
        return declare_gpu(all, gpu, link, ret_number);
    if (all->n_gpus > 0)
        return 0;
    *ret_number = NUMBER_OF_NAMED;
    return declare(all, NUMBER_OF_NAMED, occ_import_sink_named_gpu(all->sink));
}
