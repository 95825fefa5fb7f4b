-- The history of a node: what ran (node, device, run, kernel, shape), every launch (packed, chunk*), and what is
-- kept of it for long (rollup_*). Times are nanoseconds since the epoch, ratios 0...1, NULL is "not known".
-- Whoever adds a launch keeps these promises in every transaction:
--   rollup_minute holds exactly the launches of a run that start before run.rolled_minute_ns,
--   rollup_hour   exactly those before run.rolled_hour_ns (a whole hour, <= rolled_minute_ns),
--   chunk         all launches, except that some before run.retired_ns may have been given back to a quota.

CREATE TABLE node (
    id       INTEGER PRIMARY KEY,
    hostname TEXT NOT NULL UNIQUE
);

CREATE TABLE device (
    id             INTEGER PRIMARY KEY,
    key            BLOB NOT NULL UNIQUE,    -- identity: uuid, name and limits as reported
    uuid           BLOB,
    name           TEXT NOT NULL,
    simulated      INTEGER NOT NULL,
    clock_khz      INTEGER,
    memory_bytes   INTEGER,
    driver_version INTEGER,
    cc             INTEGER NOT NULL,        -- major * 10 + minor
    sm_count       INTEGER NOT NULL,
    warp_size      INTEGER NOT NULL,
    max_threads_per_block         INTEGER NOT NULL,
    max_threads_per_sm            INTEGER NOT NULL,
    max_blocks_per_sm             INTEGER NOT NULL,
    registers_per_block           INTEGER NOT NULL,
    registers_per_sm              INTEGER NOT NULL,
    smem_per_block_bytes          INTEGER NOT NULL,
    smem_per_block_optin_bytes    INTEGER NOT NULL,
    smem_per_sm_bytes             INTEGER NOT NULL,
    smem_reserved_per_block_bytes INTEGER NOT NULL,
    max_registers_per_thread      INTEGER NOT NULL,
    register_unit                 INTEGER NOT NULL,
    warp_unit                     INTEGER NOT NULL,
    sub_partitions                INTEGER NOT NULL,
    smem_unit_bytes               INTEGER NOT NULL,
    max_barriers_per_sm           INTEGER NOT NULL,
    max_cluster_size              INTEGER NOT NULL
);

CREATE TABLE run (
    id            INTEGER PRIMARY KEY,
    uuid          BLOB NOT NULL UNIQUE,
    node          INTEGER REFERENCES node(id),
    pid           INTEGER,
    uid           INTEGER,
    start_ns      INTEGER NOT NULL,
    end_ns        INTEGER,
    exe           TEXT,
    cmdline       TEXT,
    cwd           TEXT,
    user          TEXT,
    label         TEXT,
    session       TEXT,
    slurm_job     TEXT,
    slurm_step    TEXT,
    k8s_pod       TEXT,
    k8s_namespace TEXT,
    container     TEXT,
    source        TEXT NOT NULL,            -- trace, nsys, kineto
    level         TEXT,
    level_reason  TEXT,
    cupti_version INTEGER,
    simulated     INTEGER NOT NULL,
    launches      INTEGER NOT NULL DEFAULT 0,
    gpu_ns        INTEGER NOT NULL DEFAULT 0,
    first_ns      INTEGER,                  -- first and last start of a launch
    last_ns       INTEGER,
    rolled_minute_ns INTEGER NOT NULL DEFAULT 0,
    rolled_hour_ns   INTEGER NOT NULL DEFAULT 0,
    retired_ns       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX run_session ON run(session) WHERE session IS NOT NULL;

CREATE TABLE kernel (
    id        INTEGER PRIMARY KEY,
    hash      INTEGER NOT NULL,             -- FNV-1a 64 of the whole mangled name
    mangled   TEXT NOT NULL,
    demangled TEXT NOT NULL,
    short     TEXT NOT NULL,                -- without return type, namespaces, template arguments and arguments
    UNIQUE (hash, mangled)
);

-- kernel x device x launch configuration, and everything that follows from it.
CREATE TABLE shape (
    id     INTEGER PRIMARY KEY,
    key    BLOB NOT NULL UNIQUE,
    kernel INTEGER NOT NULL REFERENCES kernel(id),
    device INTEGER NOT NULL REFERENCES device(id),
    grid_x INTEGER NOT NULL,    grid_y INTEGER NOT NULL,    grid_z INTEGER NOT NULL,
    block_x INTEGER NOT NULL,   block_y INTEGER NOT NULL,   block_z INTEGER NOT NULL,
    cluster_x INTEGER NOT NULL, cluster_y INTEGER NOT NULL, cluster_z INTEGER NOT NULL,
    registers_per_thread   INTEGER NOT NULL,
    static_smem_bytes      INTEGER NOT NULL,
    dynamic_smem_bytes     INTEGER NOT NULL,
    smem_config_bytes      INTEGER NOT NULL, -- per SM, as the driver chose; 0: unknown
    carveout_percent       INTEGER NOT NULL,
    barriers               INTEGER NOT NULL,
    max_active_clusters    INTEGER NOT NULL,
    smem_optin             INTEGER,
    local_bytes_per_thread INTEGER NOT NULL,
    max_cluster_size       INTEGER NOT NULL,
    launch_type            INTEGER NOT NULL,
    cache_config           INTEGER NOT NULL,
    device_launched        INTEGER NOT NULL,
    -- the model's answer; NULL where it refuses the shape
    model_version          INTEGER NOT NULL,
    refused                TEXT,
    limiters               TEXT,
    main_cause             TEXT,
    theoretical            REAL,
    expected_achieved      REAL,
    expected_elapsed       REAL,
    waves                  REAL,
    full_waves             INTEGER,
    partial_blocks         INTEGER,
    grid_blocks            INTEGER,
    wave_blocks            INTEGER,
    blocks_per_sm          INTEGER,
    blocks_per_sm_largest_carveout INTEGER,
    warps_per_block        INTEGER,
    warps_per_sm           INTEGER,
    max_warps_per_sm       INTEGER,
    registers_per_warp     INTEGER,
    registers_per_block    INTEGER,
    smem_per_block_bytes   INTEGER,
    used_smem_config_bytes INTEGER,
    smem_config_from_driver INTEGER,
    limiter_mask           INTEGER,
    design                 INTEGER,
    limit_warps            INTEGER,
    limit_registers        INTEGER,
    limit_shared_memory    INTEGER,
    limit_blocks           INTEGER,
    limit_barriers         INTEGER,
    limit_cluster          INTEGER,
    cause_registers        REAL,
    cause_shared_memory    REAL,
    cause_carveout         REAL,
    cause_barriers         REAL,
    cause_cluster          REAL,
    cause_blocks           REAL,
    cause_block_size       REAL,
    cause_partial_warp     REAL,
    cause_small_grid       REAL,
    cause_tail             REAL
);
CREATE INDEX shape_kernel ON shape(kernel);

-- Which shapes a run has launched.
CREATE TABLE run_shape (
    run   INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    PRIMARY KEY (run, shape)
) WITHOUT ROWID;

-- Packed launches of one run on one device, sorted by start (format: store/codec/chunk_codec.h). The metadata lie apart
-- from the bytes, so that a question reads only the chunks it needs. Level 0: the last seconds; level 1: full.
CREATE TABLE chunk (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    run             INTEGER NOT NULL,
    device          INTEGER NOT NULL,
    level           INTEGER NOT NULL,
    n               INTEGER NOT NULL,
    first_ns        INTEGER NOT NULL,       -- first and last start
    last_ns         INTEGER NOT NULL,
    end_ns          INTEGER NOT NULL,       -- largest end
    min_correlation INTEGER NOT NULL,
    max_correlation INTEGER NOT NULL
);
CREATE INDEX chunk_run ON chunk(run, last_ns);
CREATE INDEX chunk_last ON chunk(last_ns);
CREATE TABLE chunk_data (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);
-- Level 1 only: launches, total, shortest and longest of each shape in the chunk.
CREATE TABLE chunk_agg (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);

-- Buckets are counted since the epoch. first/last_offset_ns: first and last start, from the start of the bucket.
-- histogram: of durations, 8 bins an octave (format: store/codec/histogram.h).
CREATE TABLE rollup_minute (
    bucket          INTEGER NOT NULL,
    run             INTEGER NOT NULL,
    shape           INTEGER NOT NULL,
    launches        INTEGER NOT NULL,
    total_ns        INTEGER NOT NULL,
    min_ns          INTEGER NOT NULL,
    max_ns          INTEGER NOT NULL,
    first_offset_ns INTEGER NOT NULL,
    last_offset_ns  INTEGER NOT NULL,
    histogram       BLOB NOT NULL,
    PRIMARY KEY (bucket, run, shape)
) WITHOUT ROWID;
CREATE TABLE rollup_hour (
    bucket          INTEGER NOT NULL,
    run             INTEGER NOT NULL,
    shape           INTEGER NOT NULL,
    launches        INTEGER NOT NULL,
    total_ns        INTEGER NOT NULL,
    min_ns          INTEGER NOT NULL,
    max_ns          INTEGER NOT NULL,
    first_offset_ns INTEGER NOT NULL,
    last_offset_ns  INTEGER NOT NULL,
    histogram       BLOB NOT NULL,
    PRIMARY KEY (bucket, run, shape)
) WITHOUT ROWID;

-- Minute rows before this bucket were given back to a quota.
CREATE TABLE retention (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    minutes_from INTEGER NOT NULL
);
INSERT INTO retention VALUES (1, 0);

CREATE TABLE loss (
    run   INTEGER NOT NULL,
    cause TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (run, cause)
) WITHOUT ROWID;

CREATE TABLE cost (
    run   INTEGER NOT NULL,
    what  TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (run, what)
) WITHOUT ROWID;

-- How far a ring was read: in the same transaction as the launches read from it, so each is kept exactly once.
CREATE TABLE ring_position (
    uuid BLOB PRIMARY KEY,
    next INTEGER NOT NULL
) WITHOUT ROWID;

-- For people. Names as in Nsight Systems' export where they mean the same.
CREATE VIEW shape_detail AS
SELECT s.id AS shape, s.kernel, s.device AS deviceId, d.name AS deviceName, d.simulated,
       k.short AS shortName, k.demangled AS demangledName, k.mangled AS mangledName,
       s.grid_x AS gridX, s.grid_y AS gridY, s.grid_z AS gridZ,
       s.block_x AS blockX, s.block_y AS blockY, s.block_z AS blockZ,
       s.cluster_x AS clusterX, s.cluster_y AS clusterY, s.cluster_z AS clusterZ,
       s.registers_per_thread AS registersPerThread, s.static_smem_bytes AS staticSharedMemory,
       s.dynamic_smem_bytes AS dynamicSharedMemory, s.local_bytes_per_thread AS localMemoryPerThread,
       nullif(s.smem_config_bytes, 0) AS sharedMemoryExecuted,
       s.launch_type AS launchType, s.cache_config AS cacheConfig,
       s.theoretical, s.expected_achieved AS expectedAchieved, s.expected_elapsed AS expectedElapsed,
       s.limiters, s.blocks_per_sm AS blocksPerSm, s.waves, s.full_waves AS fullWaves,
       s.partial_blocks AS partialBlocks, s.main_cause AS mainCause,
       s.cause_registers, s.cause_shared_memory, s.cause_carveout, s.cause_barriers, s.cause_cluster,
       s.cause_blocks, s.cause_block_size, s.cause_partial_warp, s.cause_small_grid, s.cause_tail,
       s.refused, s.model_version AS modelVersion
FROM shape s JOIN kernel k ON k.id = s.kernel JOIN device d ON d.id = s.device;

CREATE VIEW run_detail AS
SELECT r.id AS run, lower(hex(r.uuid)) AS uuid, n.hostname, r.pid, r.uid, r.user, r.exe, r.cmdline, r.label,
       r.session, r.slurm_job, r.k8s_pod, r.container, r.source, r.level, r.level_reason, r.simulated,
       r.start_ns AS start, r.end_ns AS "end", r.launches, r.gpu_ns AS gpuTime,
       (SELECT coalesce(sum(count), 0) FROM loss WHERE loss.run = r.id) AS lost
FROM run r LEFT JOIN node n ON n.id = r.node;

CREATE VIEW hour_detail AS
SELECT h.bucket * 3600000000000 AS start, h.run, h.shape, s.kernel, s.device AS deviceId, k.short AS shortName,
       h.launches, h.total_ns AS totalTime, h.min_ns AS minTime, h.max_ns AS maxTime,
       s.theoretical, s.expected_elapsed AS expectedElapsed
FROM rollup_hour h JOIN shape s ON s.id = h.shape JOIN kernel k ON k.id = s.kernel;
