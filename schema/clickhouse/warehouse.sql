-- The warehouse of a cluster: occtrace-ship --init makes it, --init --print prints it. {new|old}: what ClickHouse from
-- 21.11 on takes, and what 18.16 takes; $db: the database; $launches, $minutes, $ranks, $hours: days by the settings
-- warehouse.*; $changes: 30 days more than $minutes. A statement ends with a semicolon at the end of its line.
--
-- A new column or table is a new file in migrations/, and CREATE TABLE here stays: programs of other versions write and read the
-- same tables (docs/decisions/0063-warehouse-migrations.md).
--
-- Every row is state: a later version of the same key takes its place, so that a row that is sent twice counts once. Ask
-- with FINAL. Ids are hashes of content, the same on every node. Times of facts are the nodes' own. own_node: an account
-- occ_node_NAME sends rows of the node NAME only (occtrace-ship --accounts).
CREATE DATABASE IF NOT EXISTS $db;

-- The highest version is that of the tables' meanings; 0: they are being made. A migration does not raise it.
CREATE TABLE IF NOT EXISTS $db.schema_version (version UInt32, applied DateTime) ENGINE = ReplacingMergeTree ORDER BY version;
INSERT INTO $db.schema_version SELECT 0, now();

-- The migrations (migrations/NNNN_words.sql) that were applied after these statements.
CREATE TABLE IF NOT EXISTS $db.migration (number UInt32, name String, applied DateTime) ENGINE = ReplacingMergeTree ORDER BY number;

-- kernel: XXH3, 64 bits, of the mangled name.
CREATE TABLE IF NOT EXISTS $db.kernel (
    kernel    UInt64,
    short     String{ CODEC(ZSTD(3))|},
    demangled String{ CODEC(ZSTD(3))|},
    mangled   String{ CODEC(ZSTD(3))|},
    cluster   LowCardinality(String),   -- who sent it last
    node      LowCardinality(String),
    version   UInt64{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) ORDER BY kernel{ TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};

-- Launch configurations and what the model says of them. config: XXH3, 64 bits, of the row's text. Minutes of more
-- configurations than ship.configs are added up in configurations of the kernel '(other)', one a main_cause.
CREATE TABLE IF NOT EXISTS $db.launch_config (
    config                 UInt64,
    kernel                 UInt64,
    device                 LowCardinality(String),
    simulated              UInt8,
    cc                     UInt16,      -- compute capability: 10 * major + minor
    sm_count               UInt32,
    warp_size              UInt32,      -- the device's limits, as the node's model takes them
    max_threads_per_block  UInt32,
    max_threads_per_sm     UInt32,
    max_blocks_per_sm      UInt32,
    device_registers_per_block      UInt32,
    registers_per_sm                UInt32,
    device_shared_per_block_bytes   UInt32,
    shared_per_block_optin_bytes    UInt32,
    shared_per_sm_bytes             UInt32,
    shared_reserved_per_block_bytes UInt32,
    max_registers_per_thread        UInt32,
    register_unit          UInt32,
    warp_unit              UInt32,
    sub_partitions         UInt32,
    shared_unit_bytes      UInt32,
    max_barriers_per_sm    UInt32,
    device_max_cluster_size UInt32,
    grid_x UInt32, grid_y UInt32, grid_z UInt32,
    block_x UInt32, block_y UInt32, block_z UInt32,
    cluster_x UInt32, cluster_y UInt32, cluster_z UInt32,
    registers_per_thread   UInt32,
    static_shared_bytes    UInt32,
    dynamic_shared_bytes   UInt32,
    shared_config_bytes    UInt32,      -- 0: unknown
    carveout_percent       Int32,       -- -1: the driver's default
    barriers               UInt32,      -- 0: unknown
    max_active_clusters    UInt32,      -- 0: unknown
    shared_optin           Nullable(UInt8),
    local_bytes_per_thread UInt32,
    max_cluster_size       UInt32,
    launch_type            UInt8,       -- 0 regular, 1 cooperative, 2 cooperative on several devices
    cache_config           UInt8,
    device_launched        UInt8,
    model_version          UInt32,      -- OCC_MODEL_VERSION of the program that analysed the configuration
    refused                String,      -- why the model gives no answer; then what follows is NULL
    limiters               LowCardinality(String),
    main_cause             LowCardinality(String),
    theoretical            Nullable(Float64),
    expected_achieved_low  Nullable(Float64), expected_achieved_high Nullable(Float64),
    expected_elapsed_low   Nullable(Float64), expected_elapsed_high  Nullable(Float64),
    waves                  Nullable(Float64),
    full_waves             Nullable(UInt64),
    partial_blocks         Nullable(UInt64),
    blocks_per_sm          Nullable(UInt32),
    warps_per_block        Nullable(UInt32),
    max_warps_per_sm       Nullable(UInt32),
    by_design_bits         Nullable(UInt32),
    grid_blocks            Nullable(UInt64),
    wave_blocks            Nullable(UInt64),
    blocks_per_sm_largest_carveout Nullable(UInt32),
    warps_per_sm           Nullable(UInt32),
    registers_per_warp     Nullable(UInt32),
    registers_per_block    Nullable(UInt32),
    shared_per_block_bytes Nullable(UInt32),
    used_shared_config_bytes Nullable(UInt32),
    shared_config_from_driver Nullable(UInt8),
    limiter_bits           Nullable(UInt32),
    limit_warps            Nullable(UInt32), limit_registers Nullable(UInt32), limit_shared_memory Nullable(UInt32),
    limit_blocks           Nullable(UInt32), limit_barriers  Nullable(UInt32), limit_cluster       Nullable(UInt32),
    cause_partial_warp     Nullable(Float64),
    cause_registers        Nullable(Float64), cause_shared_memory Nullable(Float64), cause_carveout   Nullable(Float64),
    cause_barriers         Nullable(Float64), cause_cluster       Nullable(Float64), cause_blocks     Nullable(Float64),
    cause_block_size       Nullable(Float64), cause_small_grid    Nullable(Float64), cause_tail       Nullable(Float64),
    cluster                LowCardinality(String),
    node                   LowCardinality(String),
    version                UInt64{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) ORDER BY config{ TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};

-- history: the file on the node that a row comes from; one that is deleted and made anew is another.
CREATE TABLE IF NOT EXISTS $db.run (
    run          UUID,
    cluster      LowCardinality(String),
    node         LowCardinality(String),
    history      UInt64,
    job          String,                -- as in minute
    user         LowCardinality(String),
    uid          Nullable(UInt32),
    pid          Nullable(UInt32),
    program      String,
    label        String,
    session      String,
    slurm_job    String,
    slurm_step   String,
    pod          String,
    namespace    String,
    pod_uid      String,
    container    String,
    job_trust    LowCardinality(String), -- kernel, scheduler or claimed: who says of which job it is
    rank         String,
    level        LowCardinality(String),
    level_reason String,
    simulated    UInt8,
    start_ns     Int64,
    end_ns       Nullable(Int64),
    last_start_ns Nullable(Int64),
    launches     UInt64,
    gpu_time_ns  UInt64,
    lost         UInt64,                -- launches that could not be recorded,
    lost_causes  String,                -- and why
    kernels      UInt32,
    configs      UInt32,
    devices      String,
    helper_cpu_ns  Nullable(UInt64),
    process_cpu_ns Nullable(UInt64),
    start        DateTime('UTC'),
    version      UInt64,
    slurm_account   LowCardinality(String), -- of slurm_job, as the program's environment has it; likewise the next four
    slurm_partition LowCardinality(String),
    slurm_qos       LowCardinality(String),
    slurm_array_job  String,
    slurm_array_task String{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(start) ORDER BY (cluster, run, node, history){
  TTL start + INTERVAL $hours DAY|};

-- Launches by minute, launch configuration, job and node, over all ranks of the job on the node. job: slurm:ID, pod:UID,
-- container:ID, session:ID or run:UUID. A row without launches counts nothing: its configuration went to '(other)'.
CREATE TABLE IF NOT EXISTS $db.minute (
    bucket          DateTime('UTC'){ CODEC(DoubleDelta, ZSTD(3))|},
    cluster         LowCardinality(String),
    job             {LowCardinality(String)|String},
    user            LowCardinality(String),
    node            LowCardinality(String),
    history         UInt64{ CODEC(ZSTD(3))|},
    config          UInt64{ CODEC(ZSTD(3))|},
    ranks           UInt32{ CODEC(T64('bit'), ZSTD(3))|},
    launches        UInt64,
    total_ns        UInt64,
    min_ns          UInt64,
    max_ns          UInt64,
    hist_bin        Array(UInt16),      -- of durations, 8 bins an octave: store/codec/histogram.h
    hist_n          Array(UInt64),      -- 0: what the others leave of `launches`
    sources         Array(UInt64),      -- of measured values: launches by source, and overlapped ones
    means           Array(Float32),     -- in the order of store/measured.h, to half of their standard errors; these are rounded up
    shares          Array(Float32),     -- of what part of total_ns: weights, to 1/8 (achieved's: 1/16; elapsed's: 1/64 or finer), never above
    evidence        Array(Float32),     -- whether means stand for the launches without a value: see below
    achieved_sum    Nullable(Float64) ALIAS if(shares[1] > 0, means[1] * shares[1] * total_ns, NULL),
    achieved_ns     Nullable(Float64) ALIAS if(shares[1] > 0, shares[1] * toFloat64(total_ns), NULL),
    elapsed_sum     Nullable(Float64) ALIAS if(shares[3] > 0, means[3] * shares[3] * total_ns, NULL),
    elapsed_ns      Nullable(Float64) ALIAS if(shares[3] > 0, shares[3] * toFloat64(total_ns), NULL),
    wasted_warp_s   Float32{ CODEC(ZSTD(3))|}, -- of '(other)': waste, and what the SMs could hold; else 0
    capacity_warp_s Float32{ CODEC(ZSTD(3))|},
    version         UInt64{ CODEC(Delta, ZSTD(3))|},
    slurm_account   LowCardinality(String), -- of one of the job's programs, as its environment has it; likewise the next one
    slurm_partition LowCardinality(String),
    namespace       LowCardinality(String){,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(bucket) ORDER BY (cluster, job, user, config, node, history, bucket){
  TTL bucket + INTERVAL $minutes DAY SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1|};

-- evidence: [variance of elapsed occupancy between blocks of launches; rest_shift_sum, rest_error_sum, rest_ns (store/measured.h), each divided
-- by total_ns]. The variance is larger by as much as rounding enlarged the square of elapsed's standard error in `means`. Each number is rounded
-- by at most 1/16 of the bound that a reader compares it with. Empty: unknown, so that a reader withholds no mean because of this row.
{ALTER TABLE $db.minute ADD COLUMN IF NOT EXISTS evidence Array(Float32) AFTER shares|
ALTER TABLE $db.minute ADD COLUMN evidence Array(Float32) AFTER shares};

-- Tables that were made before get these, too, part by part as they are merged.
{ALTER TABLE $db.minute MODIFY COLUMN launches CODEC(Delta, T64('bit'), ZSTD(3)), MODIFY COLUMN total_ns CODEC(Delta, T64('bit'), ZSTD(3)),
  MODIFY COLUMN min_ns CODEC(Delta, T64('bit'), ZSTD(3)), MODIFY COLUMN max_ns CODEC(Delta, T64('bit'), ZSTD(3)),
  MODIFY COLUMN hist_bin CODEC(T64, ZSTD(3)), MODIFY COLUMN hist_n CODEC(T64, ZSTD(3)), MODIFY COLUMN sources CODEC(T64, ZSTD(9)),
  MODIFY COLUMN means CODEC(ZSTD(6)), MODIFY COLUMN shares CODEC(ZSTD(7)), MODIFY COLUMN evidence CODEC(ZSTD(7))|};

-- Rows that no question can be answered with: at most 2^40 launches and 2^53 ns a row, finite numbers, lists of their lengths. occq leaves
-- others out by the same text, each a line: 18.16 takes them, and tables that were made before.
{ALTER TABLE $db.minute DROP CONSTRAINT IF EXISTS possible, DROP CONSTRAINT IF EXISTS possible_histogram, DROP CONSTRAINT IF EXISTS possible_measured,
  DROP CONSTRAINT IF EXISTS possible_evidence,
  ADD CONSTRAINT possible CHECK launches < 1099511627776 AND total_ns < 9007199254740992 AND max_ns < 9007199254740992 AND (launches = 0 OR min_ns <= max_ns) AND wasted_warp_s >= 0 AND wasted_warp_s < 1e30 AND capacity_warp_s < 1e30 AND (capacity_warp_s <= 0 OR total_ns > 0),
  ADD CONSTRAINT possible_histogram CHECK length(hist_bin) = length(hist_n) AND length(hist_bin) <= 496 AND NOT arrayExists(x -> x >= 496, hist_bin) AND NOT arrayExists(x -> x >= 1099511627776, hist_n),
  ADD CONSTRAINT possible_measured CHECK length(means) = length(shares) AND (length(sources), length(means)) IN ((0, 0), (6, 23)) AND NOT arrayExists(x -> isNaN(x) OR isInfinite(x), arrayConcat(means, shares)),
  ADD CONSTRAINT possible_evidence CHECK length(evidence) IN (0, 4) AND NOT arrayExists(x -> isNaN(x) OR isInfinite(x), evidence) AND evidence[1] >= 0 AND evidence[3] >= 0 AND evidence[4] >= 0|};

-- The same by run and GPU, over all launch configurations.
CREATE TABLE IF NOT EXISTS $db.rank_minute (
    bucket          DateTime('UTC'){ CODEC(DoubleDelta, ZSTD(3))|},
    cluster         LowCardinality(String),
    node            LowCardinality(String),
    history         UInt64{ CODEC(ZSTD(3))|},
    run             UUID,
    gpu             UUID,               -- zero: unknown
    user            LowCardinality(String),
    launches        UInt64{ CODEC(T64('bit'), ZSTD(3))|},
    busy_ns         UInt64{ CODEC(T64('bit'), ZSTD(3))|}, -- sum of durations
    wasted_warp_s   Float32{ CODEC(Gorilla, ZSTD(3))|},
    capacity_warp_s Float32{ CODEC(Gorilla, ZSTD(3))|},
    version         UInt64{ CODEC(Delta, ZSTD(3))|}{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(bucket) ORDER BY (cluster, run, gpu, node, history, bucket){
  TTL bucket + INTERVAL $ranks DAY SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1|};

-- Single launches of the jobs in ship.raw_jobs of the node. copy: from 0 on, of launches that are the same in everything else.
CREATE TABLE IF NOT EXISTS $db.launch (
    bucket          DateTime('UTC'){ CODEC(DoubleDelta, ZSTD(3))|},
    cluster         LowCardinality(String),
    job             {LowCardinality(String)|String},
    user            LowCardinality(String),
    node            LowCardinality(String),
    history         UInt64{ CODEC(ZSTD(3))|},
    run             UUID,
    gpu             UUID,               -- zero: unknown
    config          UInt64{ CODEC(ZSTD(3))|},
    start_ns        UInt64{ CODEC(Delta, ZSTD(3))|},
    duration_ns     UInt64{ CODEC(T64, ZSTD(3))|},
    stream          UInt64{ CODEC(ZSTD(3))|},
    correlation     UInt64{ CODEC(Delta, ZSTD(3))|},
    graph_node      UInt64{ CODEC(ZSTD(3))|}, -- 0: launched without a CUDA graph
    copy            UInt32{ CODEC(ZSTD(3))|},
    version         UInt64{ CODEC(Delta, ZSTD(3))|},
    slurm_account   LowCardinality(String), -- of one of the job's programs, as its environment has it; likewise the next one
    slurm_partition LowCardinality(String),
    namespace       LowCardinality(String){,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(bucket)
  ORDER BY (cluster, job, user, node, history, run, gpu, start_ns, stream, correlation, graph_node, config, duration_ns, copy){
  TTL bucket + INTERVAL $launches DAY SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1|};

-- Minutes by hour, over all nodes. Written by occtrace-ship --maintain from the minutes of hours that have changed.
CREATE TABLE IF NOT EXISTS $db.hour (
    bucket          DateTime('UTC'){ CODEC(DoubleDelta, ZSTD(3))|},
    cluster         LowCardinality(String),
    job             {LowCardinality(String)|String},
    user            LowCardinality(String),
    config          UInt64{ CODEC(ZSTD(3))|},
    nodes           UInt32{ CODEC(T64('bit'), ZSTD(3))|},
    launches        UInt64{ CODEC(T64('bit'), ZSTD(3))|},
    total_ns        UInt64{ CODEC(T64('bit'), ZSTD(3))|},
    min_ns          UInt64{ CODEC(T64('bit'), ZSTD(3))|},
    max_ns          UInt64{ CODEC(T64('bit'), ZSTD(3))|},
    achieved_sum    Nullable(Float64){ CODEC(Gorilla, ZSTD(3))|},
    achieved_ns     Nullable(Float64){ CODEC(Gorilla, ZSTD(3))|},
    elapsed_sum     Nullable(Float64){ CODEC(Gorilla, ZSTD(3))|},
    elapsed_ns      Nullable(Float64){ CODEC(Gorilla, ZSTD(3))|},
    wasted_warp_s   Float64{ CODEC(Gorilla, ZSTD(3))|}, -- of '(other)'
    capacity_warp_s Float64{ CODEC(Gorilla, ZSTD(3))|},
    version         UInt64{ CODEC(Delta, ZSTD(3))|},
    slurm_account   LowCardinality(String), -- of one of the job's programs, as its environment has it; likewise the next one
    slurm_partition LowCardinality(String),
    namespace       LowCardinality(String)
) ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(bucket) ORDER BY (cluster, job, user, config, bucket){
  TTL bucket + INTERVAL $hours DAY SETTINGS ttl_only_drop_parts = 1|};

-- When minutes of an hour last came in, and up to when such changes are in `hour` (hour_done's row 'hour'): hours with a later one are
-- behind. Row 'kept': minutes before that time may be deleted, so earlier hours are not added up again.
CREATE TABLE IF NOT EXISTS $db.hour_change (hour DateTime('UTC'), changed DateTime) ENGINE = ReplacingMergeTree(changed)
  ORDER BY hour{ TTL hour + INTERVAL $changes DAY|};
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.hour_change_of_minute TO $db.hour_change AS SELECT
    toStartOfHour(bucket) AS hour, now() AS changed FROM $db.minute GROUP BY hour;
CREATE TABLE IF NOT EXISTS $db.hour_done (name String, done DateTime) ENGINE = ReplacingMergeTree(done) ORDER BY name;

-- Whose rows an account sees beside those of the user of its name: occtrace-ship --accounts.
CREATE TABLE IF NOT EXISTS $db.reader (account String, user String) ENGINE = ReplacingMergeTree ORDER BY (account, user);

-- What came in: written by the server with the rows themselves, and read by their sender before it goes on.
CREATE TABLE IF NOT EXISTS $db.batch (
    name    String,                     -- the table
    cluster LowCardinality(String),
    node    LowCardinality(String),
    version UInt64,
    rows    UInt64,
    day     Date{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = MergeTree PARTITION BY day ORDER BY (cluster, node, version, name){ TTL day + INTERVAL 8 DAY|};
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_kernel TO $db.batch AS SELECT
    'kernel' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.kernel GROUP BY cluster, node, version;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_launch_config TO $db.batch AS SELECT
    'launch_config' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.launch_config
    GROUP BY cluster, node, version;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_run TO $db.batch AS SELECT
    'run' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.run GROUP BY cluster, node, version;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_minute TO $db.batch AS SELECT
    'minute' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.minute GROUP BY cluster, node, version;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_rank_minute TO $db.batch AS SELECT
    'rank_minute' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.rank_minute
    GROUP BY cluster, node, version;

CREATE MATERIALIZED VIEW IF NOT EXISTS $db.batch_of_launch TO $db.batch AS SELECT
    'launch' AS name, cluster, node, version, count() AS rows, today() AS day FROM $db.launch GROUP BY cluster, node, version;

-- GPUs that the scheduler has given to a job, by the directory identity.dcgm_job_dir of the node: as of the node's watermark where the
-- version is at least that one's, else it was so once.
CREATE TABLE IF NOT EXISTS $db.allocation (
    cluster LowCardinality(String),
    node    LowCardinality(String),
    gpu     UUID,
    job     String,                     -- slurm:ID, as in minute
    since   DateTime('UTC'),            -- at least: the node's file was written then
    version UInt64{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(since) ORDER BY (cluster, node, gpu, job, since){
  TTL since + INTERVAL $hours DAY|};

-- All minutes of the node before complete_until are in. lost: minutes of runs that its history evicted unsent.
CREATE TABLE IF NOT EXISTS $db.watermark (
    cluster         LowCardinality(String),
    node            LowCardinality(String),
    complete_until  DateTime('UTC'),
    clock_offset_ms Int64,              -- the node's clock minus the warehouse's
    lost            UInt64,
    version         UInt64{,
    CONSTRAINT own_node CHECK NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10)|}
) ENGINE = ReplacingMergeTree(version) ORDER BY (cluster, node){ TTL toDateTime(intDiv(version, 1000)) + INTERVAL $hours DAY|};

INSERT INTO $db.schema_version SELECT 2, now();
