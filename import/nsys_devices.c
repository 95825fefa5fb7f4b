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

/*
 * Numbers of devices for the sink. A number identifies a device without a UUID also in later recordings. A
 * described GPU has its index, a part of a GPU's SMs the index of its link. A GPU whose model the user named
 * has its machine and its id, else its CUDA ordinal, but no index, which would depend on the order of the
 * launches.
 */
#define NUMBER_OF_LINK(i)                (UINT64_C(1) << 63 | (uint64_t)(i))
#define NUMBER_OF_NAMED(machine, number) ((uint64_t)(machine) << 32 | (uint64_t)(number))
#define NUMBER_OF_ID                     (UINT64_C(1) << 31) /* the number is an id, not an ordinal */

/* Columns of TARGET_INFO_GPU, and of TARGET_INFO_CUDA_GPU in exports of 2021 ("": missing there), that are
 * limits of the model. X(NAME, column, column of 2021, field of struct occ_device) */
#define LIMITS(X)                                                                                            \
    X(SM_COUNT, "smCount", "numMultiprocessors", sm_count)                                                   \
    X(THREADS_PER_WARP, "threadsPerWarp", "numThreadsPerWarp", warp_size)                                    \
    X(THREADS_PER_BLOCK, "maxThreadsPerBlock", "maxThreadsPerBlock", max_threads_per_block)                  \
    X(BLOCKS_PER_SM, "maxBlocksPerSm", "maxBlocksPerMultiprocessor", max_blocks_per_sm)                      \
    X(REGISTERS_PER_BLOCK, "maxRegistersPerBlock", "maxRegistersPerBlock", registers_per_block)              \
    X(REGISTERS_PER_SM, "maxRegistersPerSm", "maxRegistersPerMultiprocessor", registers_per_sm)              \
    X(SMEM_PER_BLOCK, "maxShmemPerBlock", "maxSharedMemoryPerBlock", smem_per_block_bytes)                   \
    X(SMEM_OPTIN, "maxShmemPerBlockOptin", "", smem_per_block_optin_bytes)                                   \
    X(SMEM_PER_SM, "maxShmemPerSm", "maxSharedMemoryPerMultiprocessor", smem_per_sm_bytes)

/* The other columns that are read. X(NAME, column, column of 2021, unused) */
#define FACTS(X)                                                                                             \
    X(VM_ID, "vmId", "vmId", )                                                                               \
    X(ID, "id", "", )                                                                                        \
    X(NAME, "name", "name", )                                                                                \
    X(CHIP, "chipName", "", )                                                                                \
    X(UUID, "uuid", "", )                                                                                    \
    X(BUS, "", "pciBusId", )                                                                                 \
    X(CU_DEVICE, "cuDevice", "deviceId", )                                                                   \
    X(PROCESS, "", "pid", )                                                                                  \
    X(MEMORY, "totalMemory", "globalMemorySize", )                                                           \
    X(HERTZ, "clockRate", "", )                                                                              \
    X(CLOCK_KHZ, "", "coreClockRate", )                                                                      \
    X(MAJOR, "computeMajor", "computeCapabilityMajor", )                                                     \
    X(MINOR, "computeMinor", "computeCapabilityMinor", )                                                     \
    X(WARPS_PER_SM, "maxWarpsPerSm", "maxWarpsPerMultiprocessor", )

#define ENUMERATOR(name, column, column_2021, field)  name,
#define COLUMN(name, column, column_2021, field)      column,
#define COLUMN_2021(name, column, column_2021, field) column_2021,
enum gpu_column { LIMITS(ENUMERATOR) FACTS(ENUMERATOR) GPU_COLUMNS };
static const char *const gpu_columns[GPU_COLUMNS] = {LIMITS(COLUMN) FACTS(COLUMN)};
static const char *const gpu_columns_2021[GPU_COLUMNS] = {LIMITS(COLUMN_2021) FACTS(COLUMN_2021)};

struct gpu {
    int64_t machine, id, ordinal; /* UNKNOWN */
    uint64_t number;              /* the sink's number */
    struct occ_store_device device;
    char name[256];
    char bus[32]; /* "0000:01:00.0"; "": unknown */
};

/* A link: in process `pid`, CUDA device `ordinal` is `gpu`. */
struct link {
    int64_t pid, ordinal, gpu; /* pid can be UNKNOWN */
    uint8_t uuid[16];
    uint32_t sm_count; /* 0: unknown */
    bool agreed;       /* in the first link of an ordinal: all processes have the same GPU */
};

struct occ_nsys_devices {
    struct occ_nsys_db *d;
    struct occ_import_sink *sink;
    struct gpu gpus[GPUS_MAX];
    size_t n_gpus;
    bool several_machines, ordinals_known;
    /* the file describes no GPUs: all GPUs of launches are of the model that the user named */
    bool are_named;
    struct link *links;
    struct occ_map by_process, by_ordinal; /* key -> link: by process and ordinal; first link by ordinal */
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
    int64_t memory = occ_nsys_integer(stmt, MEMORY, 0), hertz = occ_nsys_integer(stmt, HERTZ, 0);
#define FILL(name, column, column_2021, field) limits->field = occ_nsys_u32(stmt, name);
    LIMITS(FILL)
    limits->cc = major < 100 && minor < 10 ? major * 10 + minor : 0;
    if (warps <= 1024 && limits->warp_size <= 1024)
        limits->max_threads_per_sm = warps * limits->warp_size;
    device->memory_bytes = memory > 0 ? (uint64_t)memory : 0;
    device->clock_khz =
        hertz > 0 && hertz / 1000 <= UINT32_MAX ? (uint32_t)(hertz / 1000) : occ_nsys_u32(stmt, CLOCK_KHZ);
    parse_uuid(occ_nsys_text(stmt, UUID), device->uuid);
}

static int keep_gpu(struct occ_nsys_devices *all, const struct gpu *read, struct gpu **ret_gpu)
{
    if (all->n_gpus == GPUS_MAX)
        return occ_fail(all->d->err, OCC_E_INVALID, "table %s, row %lld: more than %u GPUs", all->d->table,
                        (long long)all->d->row, GPUS_MAX);
    struct gpu *gpu = &all->gpus[all->n_gpus++];
    *gpu = *read;
    gpu->device.name = gpu->name[0] ? gpu->name : NULL;
    all->several_machines |= gpu->machine != all->gpus[0].machine;
    all->ordinals_known |= gpu->ordinal >= 0;
    *ret_gpu = gpu;
    return 0;
}

static struct gpu read_gpu(const struct occ_nsys_devices *all, sqlite3_stmt *stmt)
{
    const char *name = occ_nsys_text(stmt, NAME), *chip = occ_nsys_text(stmt, CHIP);
    const char *bus = occ_nsys_text(stmt, BUS);
    struct gpu gpu = {.machine = occ_nsys_machine_of(occ_nsys_integer(stmt, VM_ID, 0)),
                      .id = occ_nsys_integer(stmt, ID, UNKNOWN),
                      .ordinal = occ_nsys_integer(stmt, CU_DEVICE, UNKNOWN),
                      .number = all->n_gpus};
    (void)snprintf(gpu.name, sizeof gpu.name, "%s", name ? name : chip ? chip : "");
    (void)snprintf(gpu.bus, sizeof gpu.bus, "%s", bus ? bus : "");
    fill_device(stmt, &gpu.device);
    return gpu;
}

static int add_gpu(struct occ_nsys_devices *all, sqlite3_stmt *stmt)
{
    struct gpu *kept, gpu = read_gpu(all, stmt);
    return keep_gpu(all, &gpu, &kept);
}

enum link_column { LINK_PID, LINK_ORDINAL, LINK_GPU, LINK_UUID, LINK_SM_COUNT, LINK_COLUMNS };
static const char *const link_columns[] = {"pid", "cudaId", "gpuId", "uuid", "numMultiprocessors"};

/* The GPU of a link that names no GPU: the GPU with the link's UUID. */
static int64_t id_by_uuid(const struct occ_nsys_devices *all, const uint8_t uuid[16])
{
    static const uint8_t unknown[16];
    for (size_t i = 0; i < all->n_gpus && memcmp(uuid, unknown, 16) != 0; i++)
        if (memcmp(all->gpus[i].device.uuid, uuid, 16) == 0)
            return all->gpus[i].id;
    return UNKNOWN;
}

static int keep_link(struct occ_nsys_devices *all, const struct link *link)
{
    if (all->n_links == LINKS_MAX)
        return occ_fail(all->d->err, OCC_E_INVALID, "table %s, row %lld: more than %u rows", all->d->table,
                        (long long)all->d->row, LINKS_MAX);
    if (!occ_grow((void **)&all->links, &all->links_allocated, all->n_links, LINKS_MAX, sizeof *link))
        return occ_no_memory(all->d->err);
    if (link->ordinal < 0 || link->ordinal > ORDINAL_MAX || link->gpu == UNKNOWN)
        return 0;
    uint32_t index = (uint32_t)all->n_links++;
    all->links[index] = *link;
    uint32_t first = occ_map_put(&all->by_ordinal, (uint64_t)link->ordinal, index);
    if (first == OCC_MAP_NONE ||
        (link->pid >= 0 && link->pid <= OCC_NSYS_PID_MAX &&
         occ_map_put(&all->by_process, PROCESS_KEY(link->pid, link->ordinal), index) == OCC_MAP_NONE))
        return occ_no_memory(all->d->err);
    all->links[first].agreed &=
        link->gpu == all->links[first].gpu && link->sm_count == all->links[first].sm_count;
    return 0;
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
    return keep_link(all, &link);
}

/* True if a row describes the same GPU as an earlier row, seen by another process: same slot of the same
 * machine, or, without slots, same name and ordinal. */
static bool is_same_gpu(const struct gpu *a, const struct gpu *b)
{
    bool same_place = a->bus[0] || b->bus[0] ? strcmp(a->bus, b->bus) == 0 : a->ordinal == b->ordinal;
    return same_place && a->machine == b->machine && strcmp(a->name, b->name) == 0;
}

/* Adds a row of TARGET_INFO_CUDA_GPU: a GPU as one process sees it. */
static int add_gpu_2021(struct occ_nsys_devices *all, sqlite3_stmt *stmt)
{
    struct gpu *kept = all->gpus, gpu = read_gpu(all, stmt);
    gpu.id = (int64_t)all->n_gpus;
    while (kept < all->gpus + all->n_gpus && !is_same_gpu(kept, &gpu))
        kept++;
    int status = kept == all->gpus + all->n_gpus ? keep_gpu(all, &gpu, &kept) : 0;
    if (status != 0)
        return status;
    const struct link link = {.pid = occ_nsys_integer(stmt, PROCESS, UNKNOWN),
                              .ordinal = gpu.ordinal,
                              .gpu = kept->id,
                              .agreed = true};
    return keep_link(all, &link);
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
    const struct occ_nsys_rows gpus_2021 = {
        .table = "TARGET_INFO_CUDA_GPU", .columns = gpu_columns_2021, .n = GPU_COLUMNS};
    const struct occ_nsys_rows gpus = {.table = "TARGET_INFO_GPU", .columns = gpu_columns, .n = GPU_COLUMNS};
    const struct occ_nsys_rows links = {
        .table = "TARGET_INFO_CUDA_DEVICE", .columns = link_columns, .n = LINK_COLUMNS};
    struct occ_nsys_devices *all = calloc(1, sizeof *all);
    if (!all)
        return occ_no_memory(d->err);
    all->d = d;
    all->sink = sink;
    *ret_devices = all;
    int status = each_row(all, gpus_2021, add_gpu_2021);
    if (status == 0 && all->n_gpus == 0)
        status = each_row(all, gpus, add_gpu);
    if (status == 0 && all->n_links == 0)
        status = each_row(all, links, add_link);
    all->are_named = all->n_gpus == 0;
    all->several_machines |= all->are_named;
    all->ordinals_known |= all->are_named;
    if (status == 0 && all->are_named && !occ_import_sink_named_gpu(sink))
        status =
            occ_fail(d->err, OCC_E_INVALID,
                     "the file does not describe its GPUs (no TARGET_INFO_GPU): name their model with --gpu "
                     "NAME");
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

/* Returns 1, or a negative code. */
static int declare(struct occ_nsys_devices *all, uint64_t number, const struct occ_store_device *device)
{
    int status = occ_import_sink_has_device(all->sink, number)
                     ? 0
                     : occ_import_sink_device(all->sink, number, device, all->d->err);
    return status == 0 ? 1 : status;
}

/* Completes a GPU without compute capability with the limits of the GPU that the user named. */
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

/* Declares the GPU of a link. A process that sees fewer SMs than its GPU has runs on a slice, which is a
 * separate device. */
static int declare_gpu(struct occ_nsys_devices *all, struct gpu *gpu, const struct link *link,
                       uint64_t *ret_number)
{
    int status = complete(all, gpu);
    if (status != 0)
        return status;
    *ret_number = gpu->number;
    if (!link || link->sm_count == 0 || link->sm_count == gpu->device.limits.sm_count)
        return declare(all, *ret_number, &gpu->device);
    struct occ_store_device slice = gpu->device;
    memcpy(slice.uuid, link->uuid, sizeof slice.uuid);
    if (memcmp(slice.uuid, gpu->device.uuid, sizeof slice.uuid) == 0)
        /* the UUID is the whole GPU's; the slice's own is unknown */
        memset(slice.uuid, 0, sizeof slice.uuid);
    slice.limits.sm_count = link->sm_count;
    slice.memory_bytes = 0;
    *ret_number = NUMBER_OF_LINK(link - all->links);
    return declare(all, *ret_number, &slice);
}

/* The GPU of a launch, if the user named the model: the GPU with the link's id, else the GPU with the
 * ordinal. *ret_gpu NULL: an impossible number. */
static int add_named_gpu(struct occ_nsys_devices *all, int64_t process, const struct link *link,
                         int64_t ordinal, struct gpu **ret_gpu)
{
    const struct occ_store_device *named = occ_import_sink_named_gpu(all->sink);
    int64_t number = link ? link->gpu : ordinal, machine = occ_nsys_machine_of(process);
    struct gpu gpu = {.machine = machine,
                      .id = link ? number : UNKNOWN,
                      .ordinal = link ? UNKNOWN : number,
                      .number = NUMBER_OF_NAMED(machine, number) | (link ? NUMBER_OF_ID : 0),
                      .device.limits = named->limits};
    *ret_gpu = NULL;
    if (number < 0 || number > ORDINAL_MAX)
        return 0;
    (void)snprintf(gpu.name, sizeof gpu.name, "%s", named->name);
    if (link && (link->sm_count == 0 || link->sm_count == named->limits.sm_count))
        memcpy(gpu.device.uuid, link->uuid, sizeof gpu.device.uuid);
    return keep_gpu(all, &gpu, ret_gpu);
}

/* The process's own link; for a process without one, the link that all others agree on. */
static const struct link *find_link(const struct occ_nsys_devices *all, int64_t process, uint32_t first,
                                    int64_t ordinal)
{
    uint32_t own = occ_map_get(&all->by_process, PROCESS_KEY(occ_nsys_pid_of(process), ordinal));
    if (first != OCC_MAP_NONE && own != OCC_MAP_NONE)
        return &all->links[own];
    return first != OCC_MAP_NONE && all->links[first].agreed ? &all->links[first] : NULL;
}

/* Without links, a launch's ordinal is the GPU's ordinal, or the GPU's id if the file gives no ordinals. */
int occ_nsys_devices_find(struct occ_nsys_devices *all, int64_t process, int64_t ordinal,
                          uint64_t *ret_number)
{
    uint32_t first = occ_map_get(&all->by_ordinal, (uint64_t)ordinal);
    const struct link *link = find_link(all, process, first, ordinal);
    struct gpu *gpu = NULL;
    int status = 0;
    if (!link && first != OCC_MAP_NONE)
        return 0;
    gpu = find_gpu(all, process, link ? link->gpu : ordinal, !link && all->ordinals_known);
    if (!gpu && all->are_named)
        status = add_named_gpu(all, process, link, ordinal, &gpu);
    return gpu && status == 0 ? declare_gpu(all, gpu, link, ret_number) : status;
}
