/* See nsys_devices.h. One thread. */
#include "nsys_devices.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/text.h"

#define GPUS_MOST   256u
#define LINKS_MOST  (1u << 17)
#define MEMOS       64u
#define ANY_PROCESS INT64_MIN
#define UNKNOWN     INT64_MIN

/* Numbers for the sink: GPUs by their place, then links whose SMs are not all of their GPU's, then the GPU that the user
 * named. */
#define NUMBER_OF_LINK(i) (GPUS_MOST + (uint64_t)(i))
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

enum gpu_column {
#define X(name, column, field) name,
    LIMITS(X)
#undef X
        VM_ID,
    ID,
    NAME,
    CHIP,
    UUID,
    CU_DEVICE,
    MEMORY,
    CLOCK,
    MAJOR,
    MINOR,
    WARPS_PER_SM,
    GPU_COLUMNS
};

static const char *const gpu_columns[GPU_COLUMNS] = {
#define X(name, column, field) [name] = column,
    LIMITS(X)
#undef X
        [VM_ID] = "vmId",
    [ID] = "id",
    [NAME] = "name",
    [CHIP] = "chipName",
    [UUID] = "uuid",
    [CU_DEVICE] = "cuDevice",
    [MEMORY] = "totalMemory",
    [CLOCK] = "clockRate",
    [MAJOR] = "computeMajor",
    [MINOR] = "computeMinor",
    [WARPS_PER_SM] = "maxWarpsPerSm",
};

struct gpu {
    int64_t machine, id, ordinal; /* UNKNOWN */
    struct occ_store_device device;
    char name[256];
};

/* "In this process, CUDA device number 1 is GPU 3." */
struct link {
    int64_t pid; /* ANY_PROCESS */
    int64_t ordinal, gpu;
    uint8_t uuid[16];
    uint32_t sm_count; /* 0: unknown */
    bool agreed;       /* of the first one of an ordinal: all processes mean the same GPU by it */
};

struct memo {
    int64_t process, ordinal;
    uint64_t number;
    bool used, found;
};

struct occ_nsys_devices {
    const struct occ_device *named;
    const char *named_gpu;
    struct gpu gpus[GPUS_MOST];
    size_t n_gpus;
    bool several_machines, ordinals_known;
    struct link *links; /* by ordinal, then process */
    size_t n_links, links_allocated;
    struct memo memos[MEMOS];
};

/* ---- reading ---- */

/* "74e128b2-90b6-b409-...", with or without "GPU-" or "MIG-". Anything else stays unknown. */
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
#define X(name, column, field) limits->field = occ_nsys_u32(stmt, name);
    LIMITS(X)
#undef X
    limits->cc = major < 100 && minor < 10 ? major * 10 + minor : 0;
    if (warps <= 1024 && limits->warp_size <= 1024)
        limits->max_threads_per_sm = warps * limits->warp_size;
    device->memory_bytes = memory > 0 ? (uint64_t)memory : 0;
    device->clock_khz = hertz > 0 && hertz / 1000 <= UINT32_MAX ? (uint32_t)(hertz / 1000) : 0;
    parse_uuid(occ_nsys_text(stmt, UUID), device->uuid);
}

static int add_gpu(struct occ_nsys_devices *all, struct occ_nsys_db *d, sqlite3_stmt *stmt)
{
    if (all->n_gpus == GPUS_MOST)
        return occ_fail(d->err, OCC_E_INVALID, "table %s, row %lld: more than %u GPUs", d->table,
                        (long long)d->row, GPUS_MOST);
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

static int more_links(struct occ_nsys_devices *all, struct occ_nsys_db *d)
{
    size_t more = all->links_allocated ? all->links_allocated * 2 : 64;
    if (more > LINKS_MOST)
        return occ_fail(d->err, OCC_E_INVALID, "table %s, row %lld: more than %u rows", d->table,
                        (long long)d->row, LINKS_MOST);
    struct link *moved = realloc(all->links, more * sizeof *moved);
    if (!moved)
        return occ_fail(d->err, OCC_E_NO_MEMORY, "out of memory");
    all->links = moved;
    all->links_allocated = more;
    return 0;
}

/* The GPU of a link that names none: the one with its uuid. */
static int64_t id_by_uuid(const struct occ_nsys_devices *all, const uint8_t uuid[16])
{
    static const uint8_t unknown[16];
    for (size_t i = 0; i < all->n_gpus && memcmp(uuid, unknown, 16) != 0; i++)
        if (memcmp(all->gpus[i].device.uuid, uuid, 16) == 0)
            return all->gpus[i].id;
    return UNKNOWN;
}

static int add_link(struct occ_nsys_devices *all, struct occ_nsys_db *d, sqlite3_stmt *stmt)
{
    struct link link = {.pid = occ_nsys_integer(stmt, LINK_PID, ANY_PROCESS),
                        .ordinal = occ_nsys_integer(stmt, LINK_ORDINAL, UNKNOWN),
                        .gpu = occ_nsys_integer(stmt, LINK_GPU, UNKNOWN),
                        .sm_count = occ_nsys_u32(stmt, LINK_SM_COUNT)};
    int status = all->n_links == all->links_allocated ? more_links(all, d) : 0;
    parse_uuid(occ_nsys_text(stmt, LINK_UUID), link.uuid);
    if (link.gpu == UNKNOWN)
        link.gpu = id_by_uuid(all, link.uuid);
    if (status == 0 && link.ordinal != UNKNOWN && link.gpu != UNKNOWN)
        all->links[all->n_links++] = link;
    return status;
}

typedef int taker(struct occ_nsys_devices *all, struct occ_nsys_db *d, sqlite3_stmt *stmt);

static int each_row(struct occ_nsys_devices *all, struct occ_nsys_db *d, const char *table,
                    const char *const *columns, size_t n, taker *take)
{
    sqlite3_stmt *stmt = NULL;
    int status = occ_nsys_db_select(d, table, columns, n, "", NULL, &stmt), step = 0;
    while (status == 0 && stmt && (step = occ_nsys_db_step(d, stmt, n)) == 1)
        status = take(all, d, stmt);
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : step;
}

static int compare_links(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void find_agreement(struct occ_nsys_devices *all)
{
    struct link *first = NULL;
    for (size_t i = 0; i < all->n_links; i++) {
        struct link *link = &all->links[i];
        if (!first || link->ordinal != first->ordinal) {
            first = link;
            first->agreed = true;
        }
        first->agreed &= link->gpu == first->gpu && link->sm_count == first->sm_count;
    }
}

int occ_nsys_devices_read(struct occ_nsys_db *d, const struct occ_device *named, const char *named_gpu,
                          struct occ_nsys_devices **ret_devices)
{
    struct occ_nsys_devices *all = calloc(1, sizeof *all);
    if (!all)
        return occ_fail(d->err, OCC_E_NO_MEMORY, "out of memory");
    all->named = named;
    all->named_gpu = named_gpu;
    int status = each_row(all, d, "TARGET_INFO_GPU", gpu_columns, GPU_COLUMNS, add_gpu);
    if (status == 0)
        status = each_row(all, d, "TARGET_INFO_CUDA_DEVICE", link_columns, LINK_COLUMNS, add_link);
    if (status == 0 && all->n_gpus == 0 && !named)
        status = occ_fail(
            d->err, OCC_E_INVALID,
            "the file does not describe its GPUs (no TARGET_INFO_GPU); say which it was: --gpu NAME");
    if (status != 0) {
        occ_nsys_devices_free(all);
        return status;
    }
    if (all->n_links > 1)
        qsort(all->links, all->n_links, sizeof *all->links, compare_links);
    find_agreement(all);
    *ret_devices = all;
    return 0;
}

void occ_nsys_devices_free(struct occ_nsys_devices *devices)
{
    if (!devices)
        return;
    free(devices->links);
    free(devices);
}

/* ---- finding ---- */

/* Where (ordinal, pid) is or would be among the links. */
static size_t lower_bound(const struct occ_nsys_devices *all, int64_t ordinal, int64_t pid)
{
    const struct link key = {.ordinal = ordinal, .pid = pid};
    size_t low = 0, high = all->n_links;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_links(&all->links[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct link *link_at(const struct occ_nsys_devices *all, int64_t ordinal, int64_t pid)
{
    size_t at = lower_bound(all, ordinal, pid);
    return at < all->n_links && all->links[at].ordinal == ordinal ? &all->links[at] : NULL;
}

/* The link of a process's ordinal; of a process that the table does not know, what all others agree on. */
static const struct link *find_link(const struct occ_nsys_devices *all, int64_t pid, int64_t ordinal,
                                    bool *ret_mentioned)
{
    const struct link *own = link_at(all, ordinal, pid), *first = link_at(all, ordinal, INT64_MIN);
    *ret_mentioned = first != NULL;
    if (own && own->pid == pid)
        return own;
    return first && first->agreed ? first : NULL;
}

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

static int tell(struct occ_import_sink *sink, uint64_t number, const struct occ_store_device *device,
                struct occ_error *err)
{
    return occ_import_sink_has_device(sink, number) ? 0 : occ_import_sink_device(sink, number, device, err);
}

/* The limits of a GPU that the file only names are those of the one that the user names. */
static int complete(const struct occ_nsys_devices *all, struct gpu *gpu, struct occ_error *err)
{
    if (gpu->device.limits.cc != 0)
        return 0;
    if (!all->named)
        return occ_fail(err, OCC_E_INVALID,
                        "table TARGET_INFO_GPU does not give the compute capability of %s; say which GPU it "
                        "was: --gpu NAME",
                        gpu->name[0] ? gpu->name : "a GPU");
    gpu->device.limits = *all->named;
    return 0;
}

/* A process that sees fewer SMs than its GPU has got a slice of it, which is a device of its own. */
static int tell_gpu(const struct occ_nsys_devices *all, struct gpu *gpu, const struct link *link,
                    struct occ_import_sink *sink, uint64_t *ret_number, struct occ_error *err)
{
    int status = complete(all, gpu, err);
    if (status != 0)
        return status;
    *ret_number = (uint64_t)(gpu - all->gpus);
    if (!link || link->sm_count == 0 || link->sm_count == gpu->device.limits.sm_count)
        return tell(sink, *ret_number, &gpu->device, err);
    struct occ_store_device slice = gpu->device;
    memcpy(slice.uuid, link->uuid, sizeof slice.uuid);
    if (memcmp(slice.uuid, gpu->device.uuid, sizeof slice.uuid) == 0)
        memset(slice.uuid, 0, sizeof slice.uuid); /* the whole GPU's; a slice's own was not said */
    slice.limits.sm_count = link->sm_count;
    slice.memory_bytes = 0;
    *ret_number = NUMBER_OF_LINK(link - all->links);
    return tell(sink, *ret_number, &slice, err);
}

static int look_up(struct occ_nsys_devices *all, struct occ_import_sink *sink, int64_t process,
                   int64_t ordinal, uint64_t *ret_number, bool *ret_found, struct occ_error *err)
{
    bool mentioned = false;
    const struct link *link = find_link(all, occ_nsys_pid_of(process), ordinal, &mentioned);
    struct gpu *gpu = link         ? find_gpu(all, process, link->gpu, false)
                      : !mentioned ? find_gpu(all, process, ordinal, all->ordinals_known)
                                   : NULL;
    *ret_found = gpu != NULL || all->n_gpus == 0;
    if (gpu)
        return tell_gpu(all, gpu, link, sink, ret_number, err);
    if (all->n_gpus > 0)
        return 0;
    const struct occ_store_device named = {.name = all->named_gpu, .limits = *all->named};
    *ret_number = NUMBER_OF_NAMED;
    return tell(sink, *ret_number, &named, err);
}

int occ_nsys_devices_find(struct occ_nsys_devices *devices, struct occ_import_sink *sink, int64_t process,
                          int64_t ordinal, uint64_t *ret_number, bool *ret_found, struct occ_error *err)
{
    struct memo *memo = &devices->memos[((uint64_t)process >> 24 ^ (uint64_t)ordinal * 31) % MEMOS];
    int status = 0;
    if (!memo->used || memo->process != process || memo->ordinal != ordinal) {
        *memo = (struct memo){.process = process, .ordinal = ordinal};
        status = look_up(devices, sink, process, ordinal, &memo->number, &memo->found, err);
        memo->used = status == 0;
    }
    *ret_number = memo->number;
    *ret_found = memo->found;
    return status;
}
