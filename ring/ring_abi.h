/* clang-format off */
/*
 * The wire between a traced program and a daemon: one sealed memfd for each process, created by the injector
 * (producer), mapped by occtraced (consumer). All is little-endian, fixed width, naturally aligned.
 *
 *   memfd:  [ header page | log | ring ]
 *
 *   header  4096 bytes, fields below. Geometry is written once, before the memfd is sealed and passed on, and
 *           never changes: the consumer checks it once and keeps its own copy.
 *   log     append-only records: definitions, each written once (process, device, kernel, range, launch
 *           configuration, state, closed), and sums of measured values. A later consumer reads the log from
 *           the start, so a new daemon knows every id that the ring may hold.
 *   ring    a power-of-two number of 40-byte launch records. Record number n (from 0, for ever) lies in slot
 *           n & (slots - 1). The sequence number is the position: a daemon that stored "next = n" in the same
 *           transaction as records < n continues at n, exactly once.
 *
 * Header, byte offsets (hex); who writes it, if it changes:
 *   000 u64      magic                    "OCCRING1"
 *   008 u16      version_major            a reader refuses another major
 *   00a u16      version_minor            may add log record types, loss causes, cost counters, and header
 *                                         fields in bytes that are zero today; never redefines a field
 *   00c u32      byte_order               0x01020304 as the producer stores it
 *   010 u8[16]   uuid                     random, identifies the ring and so the run
 *   020 u64      total_bytes              size of the memfd
 *   028 u64      log_offset
 *   030 u64      log_bytes
 *   038 u64      ring_offset
 *   040 u32      ring_slots
 *   044 u32      record_bytes             40
 *   048 i32      pid                      as the producer sees it; the handshake has the true one
 *   04c u32      reserved
 *   050 u64      start_ns                 CLOCK_REALTIME at creation
 *   080 u64      head            producer  launches published
 *   088 u64      log_head        producer  log bytes published
 *   090 u64      heartbeat_ns    producer  CLOCK_REALTIME of the helper thread's last round
 *   098 u32      closed          producer  1 after the last record of an orderly end
 *   0c0 u64      tail            consumer  launches that the producer may overwrite (committed by the daemon)
 *   0c8 u32      paused          consumer  1: the program's owner has paused recording (since 1.2)
 *   0cc u32      budget_ppm      consumer  overhead that the daemon allows, in parts per million; 0: not set
 *   0d0 u32      wants_memory    both      1: wants memory operations (since 1.5); cleared without a daemon
 *   100 u64[32]  lost            producer  totals by enum occ_loss_cause
 *   200 u64[32]  cost            producer  totals by enum occ_cost
 *   300 ... 1000 zero
 *
 * Publication: the producer fills a record, then stores head with release order; the consumer loads head with
 * acquire order (pairs). The consumer stores tail with release order after its commit; the producer loads it
 * with acquire order before it overwrites a slot (pairs). log_head likewise, with no counterpart: the log is
 * never overwritten. If the ring is full the newest record is dropped and counted; neither side waits.
 *
 * Threads: one producer thread (the injector's helper), one consumer thread (the daemon's collector). The
 * lost and cost counters are written by any producer thread with relaxed atomics, read by the consumer any
 * time.
 */
/* clang-format on */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OCC_RING_MAGIC         UINT64_C(0x31474e495243434f) /* "OCCRING1" */
#define OCC_RING_VERSION_MAJOR 1
/* 1: MEASURED records; 2: paused, budget_ppm, STATE records of periods; 3: RANGE records; 4: flags of STATE
 * records; 5: memory operations; 6: NO_MEMORY */
#define OCC_RING_VERSION_MINOR 6
#define OCC_RING_BYTE_ORDER    UINT32_C(0x01020304)

#define OCC_RING_HEADER_BYTES 4096
#define OCC_RING_RECORD_BYTES 40
#define OCC_RING_MIN_SLOTS    (1u << 8)
#define OCC_RING_MAX_SLOTS    (1u << 22)
#define OCC_RING_DEFAULT_SLOTS                                                                               \
    (1u << 18) /* 10 MiB: 1 s at 260 k launches/s; only written pages take memory */
#define OCC_RING_MIN_LOG_BYTES (UINT64_C(1) << 12)
#define OCC_RING_MAX_LOG_BYTES (UINT64_C(1) << 28)
#define OCC_RING_DEFAULT_LOG_BYTES                                                                           \
    (UINT64_C(1) << 25) /* 32 MiB of address space; only written pages take memory */

/* Causes of loss: X(NAME, word, text for people). Append only. */
#define OCC_LOSS_CAUSES(X)                                                                                   \
    X(RING_FULL, "ring_full", "the daemon was slower than the program")                                      \
    X(LOG_FULL, "log_full", "too many different kernels or configurations")                                  \
    X(BAD_TIMES, "bad_times", "CUPTI returned no valid times")                                               \
    X(CUPTI_DROPPED, "cupti_dropped", "CUPTI dropped records")                                               \
    X(NO_BUFFER, "no_buffer", "no buffer was free when CUPTI asked")                                         \
    X(BAD_RECORD, "bad_record", "invalid records")                                                           \
    X(EXIT, "exit", "not returned by CUPTI when the program ended")                                          \
    X(NO_MEMORY, "no_memory", "the system had no memory for the records")

#define OCC_LOSS_ENUMERATOR(name, word, text) OCC_LOSS_##name,
enum occ_loss_cause { OCC_LOSS_CAUSES(OCC_LOSS_ENUMERATOR) OCC_LOSS_COUNT };

/* Overhead, as measured by the injector: X(NAME, word, text). Append only. Totals; times in nanoseconds. */
#define OCC_COSTS(X)                                                                                         \
    X(RECORDS, "records", "activity records parsed")                                                         \
    X(HELPER_CPU_NS, "helper_cpu_ns", "CPU time of our helper thread")                                       \
    X(INIT_NS, "init_ns", "time spent inside cuInit on our behalf")                                          \
    X(CALLBACK_NS, "callback_ns", "time spent in CUPTI's buffer callbacks")                                  \
    X(PROCESS_CPU_NS, "process_cpu_ns", "CPU time of the whole process, to compare with")                    \
    X(BUFFERS, "buffers", "activity buffers delivered")                                                      \
    X(WORKER_CPU_NS, "worker_cpu_ns", "CPU time of CUPTI's worker thread, where it is known")

#define OCC_COST_ENUMERATOR(name, word, text) OCC_COST_##name,
enum occ_cost { OCC_COSTS(OCC_COST_ENUMERATOR) OCC_COST_COUNT };

#define OCC_RING_COUNTERS 32

/* The consumer's requests to the producer. */
struct occ_ring_requests {
    _Atomic uint32_t paused;
    _Atomic uint32_t budget_ppm;
    _Atomic uint32_t wants_memory;
    uint8_t reserved[44];
};

struct occ_ring_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t byte_order;
    uint8_t uuid[16];
    uint64_t total_bytes;
    uint64_t log_offset;
    uint64_t log_bytes;
    uint64_t ring_offset;
    uint32_t ring_slots;
    uint32_t record_bytes;
    int32_t pid;
    uint64_t start_ns;
    uint8_t reserved1[40];
    _Atomic uint64_t head;
    _Atomic uint64_t log_head;
    _Atomic uint64_t heartbeat_ns;
    _Atomic uint32_t closed;
    uint8_t reserved2[36];
    _Atomic uint64_t tail;
    struct occ_ring_requests requests;
    _Atomic uint64_t lost[OCC_RING_COUNTERS];
    _Atomic uint64_t cost[OCC_RING_COUNTERS];
    uint8_t reserved4[OCC_RING_HEADER_BYTES - 0x300];
};
static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "atomics have no hidden lock");
static_assert(offsetof(struct occ_ring_header, uuid) == 0x10, "wire");
static_assert(offsetof(struct occ_ring_header, ring_offset) == 0x38, "wire");
static_assert(offsetof(struct occ_ring_header, start_ns) == 0x50, "wire");
static_assert(offsetof(struct occ_ring_header, head) == 0x80, "wire");
static_assert(offsetof(struct occ_ring_header, closed) == 0x98, "wire");
static_assert(offsetof(struct occ_ring_header, tail) == 0xc0, "wire");
static_assert(offsetof(struct occ_ring_header, requests) == 0xc8, "wire");
static_assert(offsetof(struct occ_ring_header, lost) == 0x100, "wire");
static_assert(offsetof(struct occ_ring_header, cost) == 0x200, "wire");
static_assert(sizeof(struct occ_ring_header) == OCC_RING_HEADER_BYTES, "wire");

/* A launch. Valid if check == occ_ring_check(sequence), config is the id of a CONFIG record of the log,
 * start_ns > 0, and start_ns + duration_ns < 2^63. */
struct occ_ring_launch {
    uint64_t start_ns;    /* CLOCK_REALTIME domain of CUPTI, nanoseconds since the epoch */
    uint64_t duration_ns; /* end - start */
    uint64_t graph_node;  /* 0: not from a graph */
    uint32_t config;      /* id of a CONFIG record */
    uint32_t stream;
    uint32_t correlation;
    uint32_t check;
};
static_assert(sizeof(struct occ_ring_launch) == OCC_RING_RECORD_BYTES, "wire");
static_assert(offsetof(struct occ_ring_launch, config) == 24, "wire");
static_assert(offsetof(struct occ_ring_launch, check) == 36, "wire");

/* Distinguishes a record of the current round of the ring from a stale or torn record. */
static inline uint32_t occ_ring_check(uint64_t sequence)
{
    return (uint32_t)sequence ^ (uint32_t)(sequence >> 32) ^ UINT32_C(0x6f636321);
}

/* Valid times of a launch; both ends use it. Starts within a day of INT64_MAX are rejected so that hourly
 * sums cannot overflow. */
#define OCC_RING_START_MAX_NS ((uint64_t)INT64_MAX - UINT64_C(86400000000000))
static inline bool occ_ring_times_are_valid(uint64_t start_ns, uint64_t duration_ns)
{
    return start_ns > 0 && start_ns <= OCC_RING_START_MAX_NS && duration_ns <= (uint64_t)INT64_MAX - start_ns;
}

/* Size of the memfd: header, log and ring, up to the next whole page of 4096 bytes. */
static inline uint64_t occ_ring_total_bytes(uint32_t slots, uint64_t log_bytes)
{
    uint64_t bytes = OCC_RING_HEADER_BYTES + log_bytes + (uint64_t)slots * OCC_RING_RECORD_BYTES;
    return (bytes + 4095) & ~UINT64_C(4095);
}

/* Every log record starts with this; `bytes` counts header, body and padding, a multiple of 8. Unknown
 * types are skipped (a newer minor version). Ids count from 0 in the order of their records. */
enum occ_record_type {
    OCC_RECORD_PROCESS = 1,
    OCC_RECORD_DEVICE = 2,
    OCC_RECORD_KERNEL = 3,
    OCC_RECORD_CONFIG = 4,
    OCC_RECORD_STATE = 5,
    OCC_RECORD_CLOSED = 6,
    OCC_RECORD_MEASURED = 7, /* since 1.1 */
    OCC_RECORD_RANGE = 8,    /* since 1.3 */
};

struct occ_log_record {
    uint16_t type;
    uint16_t flags; /* meaning depends on the type; 0 for types without flags and before 1.4 */
    uint32_t bytes;
};

#define OCC_RECORD_MAX_BYTES (64u * 1024u)

/* PROCESS: `count` pairs "key\0value\0" follow. Keys: exe, cmdline (arguments joined by blanks), cwd,
 * label, session (32 hex digits), slurm_job, slurm_step, k8s_pod, k8s_namespace, hostname; in a record of
 * their own exact ("1": the program measures its launches itself, since 1.1), cupti_path (of the libcupti
 * that is used) and cupti_note (which OCCTRACE_ variables are not valid; how it is used otherwise than
 * usual, and why). Unknown keys are skipped. */
struct occ_record_process {
    struct occ_log_record record;
    uint32_t count;
    uint32_t text_bytes;
};

/* True if the device's name marks a simulated device. */
static inline bool occ_ring_name_is_simulated(const char *name)
{
    static const char suffix[] = "(simulated)";
    size_t n = strlen(name), m = sizeof suffix - 1;
    return n >= m && memcmp(name + n - m, suffix, m) == 0;
}

/* DEVICE: a device, as the driver reports it; 0: unknown. Names follow CUdevice_attribute. */
struct occ_record_device {
    struct occ_log_record record;
    uint32_t id;
    uint32_t ordinal; /* CUDA's device number in that process */
    uint8_t uuid[16];
    char name[96]; /* NUL-terminated; ends in "(simulated)" for a simulated device */
    uint32_t cc_major, cc_minor;
    uint32_t sm_count, warp_size;
    uint32_t max_threads_per_block, max_threads_per_sm, max_blocks_per_sm;
    uint32_t registers_per_block, registers_per_sm;
    uint32_t smem_per_block_bytes, smem_per_block_optin_bytes, smem_per_sm_bytes;
    uint32_t smem_reserved_per_block_bytes;
    uint32_t clock_khz;
    uint64_t memory_bytes;
    uint32_t driver_version; /* 13000 = 13.0 */
    uint32_t reserved;
};
static_assert(sizeof(struct occ_record_device) == 200, "wire");

/* KERNEL: the mangled name follows, `name_bytes` with its NUL. hash is FNV-1a 64 of the whole name, also when
 * the name was cut (flag).
 * FILL, COPY (since 1.5): memory operations on SMs, with a grid of 1 + size class. They are pushed as
 * launches while wants_memory is 1: an older daemon, which would store them, never sets it. */
struct occ_record_kernel {
    struct occ_log_record record;
    uint32_t id;
    uint32_t name_bytes;
    uint64_t name_hash;
    uint32_t flags;
    uint32_t reserved;
};
#define OCC_KERNEL_NAME_CUT       1u
#define OCC_KERNEL_FILL           2u
#define OCC_KERNEL_COPY           4u
#define OCC_KERNEL_NAME_MAX_BYTES 4096u
static_assert(sizeof(struct occ_record_kernel) == 32, "wire");

/* CONFIG: a launch configuration with its kernel and device: all inputs of the occupancy model. */
struct occ_record_config {
    struct occ_log_record record;
    uint32_t id, kernel, device;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* 1,1,1: no cluster */
    uint32_t registers_per_thread;
    uint32_t static_smem_bytes, dynamic_smem_bytes, local_bytes_per_thread;
    uint32_t smem_executed_bytes; /* shared memory per SM that the driver configured; 0 = unknown */
    int32_t carveout_percent;     /* requested; -1 = default or unknown */
    uint32_t max_active_clusters; /* 0 = unknown */
    uint32_t max_cluster_size;    /* 0 = unknown */
    uint8_t launch_type;          /* 0 regular, 1 cooperative, 2 cooperative on several devices */
    uint8_t cache_config;         /* executed; CUfunc_cache */
    uint8_t smem_optin;           /* 1: the kernel's limit was raised above the default */
    uint8_t device_launched;      /* 1: launched by a graph on the device */
    uint32_t context;
    uint32_t range; /* 1 + id of the RANGE record in which the launch was made; 0: unknown (since 1.3) */
    uint32_t reserved;
};
static_assert(sizeof(struct occ_record_config) == 104, "wire");

/* RANGE: the path of the NVTX ranges that a thread had open: names, outermost first, joined by '/'. The path
 * follows: `path_bytes` with its NUL. */
struct occ_record_range {
    struct occ_log_record record;
    uint32_t id;
    uint32_t path_bytes;
};
#define OCC_RANGE_PATH_MAX_BYTES 1024u

/* Limits of a log: a reader rejects more, a writer counts LOG_FULL beyond. */
#define OCC_LOG_MAX_DEVICES      256u
#define OCC_LOG_MAX_KERNELS      (1u << 20)
#define OCC_LOG_MAX_CONFIGS      (1u << 20)
#define OCC_LOG_MAX_RANGES       4096u
#define OCC_LOG_MAX_PROCESS_KEYS 64u

/* True if the launch configuration (ids apart) is possible: every extent at least 1 and at most the largest
 * of any GPU, and only known enumerators. Both ends check it, so the reader never refuses a configuration
 * that the writer accepted. Bounds: grid x <= 2^31 - 1, y and z <= 65535; block <= 1024 threads; cluster and
 * register bounds are well above any GPU's. */
static inline bool occ_record_config_is_valid(const struct occ_record_config *config)
{
    const uint32_t *g = config->grid, *b = config->block, *c = config->cluster;
    return g[0] - 1u < INT32_MAX && g[1] - 1u < 65535u && g[2] - 1u < 65535u && b[0] - 1u < 1024u &&
           b[1] - 1u < 1024u && b[2] - 1u < 1024u && b[0] * b[1] * b[2] <= 1024u && c[0] - 1u < 1024u &&
           c[1] - 1u < 1024u && c[2] - 1u < 1024u && config->registers_per_thread <= 1024u &&
           config->static_smem_bytes <= (1u << 24) && config->dynamic_smem_bytes <= (1u << 24) &&
           config->smem_executed_bytes <= (1u << 24) && config->carveout_percent >= -1 &&
           config->carveout_percent <= 100 && config->launch_type <= 2 && config->smem_optin <= 1 &&
           config->device_launched <= 1;
}

/* FNV-1a, 64 bits: identifies names. */
#define OCC_FNV1A_SEED  UINT64_C(0xcbf29ce484222325)
#define OCC_FNV1A_PRIME UINT64_C(0x100000001b3)
static inline uint64_t occ_fnv1a(const void *bytes, size_t n)
{
    uint64_t hash = OCC_FNV1A_SEED;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * OCC_FNV1A_PRIME;
    return hash;
}

/* STATE: the level of recording in this process since time_ns, and the reason. The last record counts. A
 * lower level after the first record begins a period with less recording; the next record ends the period. If
 * begin and end are equal, the period is withdrawn. The reason is text for people: it decides nothing. */
#define OCC_STATE_UNMEASURED 1u /* flag: the daemon must not measure the launches of this process */
#define OCC_LEVELS(X)                                                                                        \
    X(FULL, "full", "launches, times and hardware counters")                                                 \
    X(GPM, "gpm", "launches, times and device-level counters")                                               \
    X(TRACE, "trace", "launches and times; theoretical occupancy")                                           \
    X(CONFIGS, "configs", "launch configurations only")                                                      \
    X(NOTHING, "nothing", "nothing was recorded")

#define OCC_LEVEL_ENUMERATOR(name, word, text) OCC_LEVEL_##name,
enum occ_level { OCC_LEVELS(OCC_LEVEL_ENUMERATOR) OCC_LEVEL_COUNT };

#define OCC_REASON_BYTES 240

struct occ_record_state {
    struct occ_log_record record;
    uint64_t time_ns;
    uint32_t level;                /* enum occ_level */
    uint32_t cupti_version;        /* cuptiGetVersion(); 0: none loaded */
    char reason[OCC_REASON_BYTES]; /* NUL-terminated, one line for people; "" if all is well */
};
static_assert(sizeof(struct occ_record_state) == 264, "wire");

/* CLOSED: an orderly end. */
struct occ_record_closed {
    struct occ_log_record record;
    uint64_t time_ns;
    uint64_t launches; /* head at the end */
};
static_assert(sizeof(struct occ_record_closed) == 24, "wire");

/*
 * MEASURED: counts of CUPTI's range profiler for launches of one configuration that began in one minute, each
 * alone on its GPU (occtrace --exact). Sums over `launches` launches, weighted by duration; in warps and SMs,
 * since the reader knows the GPU's limits. Each record counts once: it belongs to the commit that makes
 * launches up to `head` durable, which also stores the number of MEASURED records counted.
 */
struct occ_record_measured {
    struct occ_log_record record;
    uint32_t config;
    uint32_t reserved;
    uint64_t minute;         /* since the epoch */
    uint64_t head;           /* launches pushed before this record, including the counted ones */
    uint64_t launches;       /* at least 1 */
    double ns;               /* sum of durations, above 0 */
    double warps_active_ns;  /* warps per cycle of an active SM, x duration */
    double warps_ns;         /* warps on the whole GPU per cycle, x duration */
    double sms_active_ns;    /* active SMs per cycle, x duration */
    double blocks_active_ns; /* blocks per cycle of an active SM, x duration */
};
static_assert(sizeof(struct occ_record_measured) == 80, "wire");

/* No GPU has so many SMs or warps or starts so many launches in a minute; NaN fails every comparison. The
 * reader also checks that `head` is not beyond the ring's. */
#define OCC_MEASURED_MAX_WARPS    1.0e6
#define OCC_MEASURED_MAX_LAUNCHES (UINT64_C(1) << 32)
static inline bool occ_record_measured_is_valid(const struct occ_record_measured *m)
{
    double most = OCC_MEASURED_MAX_WARPS * m->ns;
    return m->minute <= OCC_RING_START_MAX_NS / UINT64_C(60000000000) && m->launches >= 1 &&
           m->launches <= OCC_MEASURED_MAX_LAUNCHES && m->launches <= m->head && m->head <= INT64_MAX &&
           m->ns > 0 && m->ns < 9.2e18 && m->warps_active_ns >= 0 && m->warps_active_ns <= most &&
           m->warps_ns >= 0 && m->warps_ns <= most && m->sms_active_ns >= 0 && m->sms_active_ns <= most &&
           m->blocks_active_ns >= 0 && m->blocks_active_ns <= most;
}
