-- The history of a node: storage. People and tools read the views and virtual tables that store/sql_nouns.h makes over
-- these tables (docs/sql.md); storage may change with any version, they do not.
--
-- Times are nanoseconds since the epoch (of a run with time_base 'unknown': since an origin that its recording does not
-- name), minutes and hours are counted since the epoch, ratios are 0...1, NULL is "not known". Who adds a launch keeps
-- these invariants in every transaction:
--   stored_minute and stored_hour hold exactly the launches of a run that start before stored_run.rolled_ns (a whole
--   minute), stored_chunk all launches, except that some before stored_run.evicted_ns may have been evicted.

CREATE TABLE stored_node (
    node_id  INTEGER PRIMARY KEY,
    hostname TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE stored_device (
    device_id      INTEGER PRIMARY KEY,
    key            BLOB NOT NULL UNIQUE,    -- identity: uuid, name and limits as reported
    uuid           BLOB,
    name           TEXT NOT NULL,
    simulated      INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    clock_khz      INTEGER,
    memory_bytes   INTEGER,
    driver_version INTEGER,                 -- as cuDriverGetVersion() has it: 1000 * major + 10 * minor
    cc             INTEGER NOT NULL,        -- compute capability: 10 * major + minor
    sm_count       INTEGER NOT NULL,
    warp_size      INTEGER NOT NULL,
    max_threads_per_block         INTEGER NOT NULL,
    max_threads_per_sm            INTEGER NOT NULL,
    max_blocks_per_sm             INTEGER NOT NULL,
    registers_per_block           INTEGER NOT NULL,
    registers_per_sm              INTEGER NOT NULL,
    shared_per_block_bytes        INTEGER NOT NULL,
    shared_per_block_optin_bytes  INTEGER NOT NULL,
    shared_per_sm_bytes           INTEGER NOT NULL,
    shared_reserved_per_block_bytes INTEGER NOT NULL,
    max_registers_per_thread      INTEGER NOT NULL,
    register_unit                 INTEGER NOT NULL,
    warp_unit                     INTEGER NOT NULL,
    sub_partitions                INTEGER NOT NULL,
    shared_unit_bytes             INTEGER NOT NULL,
    max_barriers_per_sm           INTEGER NOT NULL, -- 4294967295: barriers do not limit (before 9.0)
    max_cluster_size              INTEGER NOT NULL
) STRICT;

CREATE TABLE stored_run (
    run_id        INTEGER PRIMARY KEY,
    uuid          BLOB NOT NULL UNIQUE,
    node_id       INTEGER REFERENCES stored_node,
    pid           INTEGER,
    uid           INTEGER,
    start_ns      INTEGER NOT NULL,
    end_ns        INTEGER,
    exe           TEXT,
    command_line  TEXT,
    cwd           TEXT,
    user          TEXT,
    label         TEXT,
    session_id    TEXT,
    slurm_job     TEXT,
    slurm_step    TEXT,
    slurm_account TEXT,                     -- of slurm_job, as the program's environment has it; likewise the next four
    slurm_partition TEXT,
    slurm_qos     TEXT,
    slurm_array_job TEXT,
    slurm_array_task TEXT,
    k8s_pod       TEXT,
    k8s_namespace TEXT,
    k8s_pod_uid   TEXT,
    container     TEXT,
    job_trust     TEXT,                     -- kernel: job and pod are the control group's; scheduler: by GPU; claimed: the environment's
    claims        TEXT,                     -- what the environment says of the job: NAME=value ...
    rank          TEXT,                     -- of a distributed job
    source        TEXT NOT NULL,            -- trace, or the tool whose recording was imported: nsys, kineto, ncu
    source_version TEXT,
    source_file   TEXT,
    source_hash   TEXT,                     -- of the file's bytes: XXH3, 128 bits, hexadecimal
    time_base     TEXT CHECK (time_base IN ('epoch', 'unknown')), -- NULL: epoch
    missing_fields TEXT,                    -- what the source does not record, for people
    level         TEXT,
    level_reason  TEXT,
    cupti_version INTEGER,
    cupti_path    TEXT,
    cupti_note    TEXT,                     -- how it was used otherwise than usual, and why
    simulated     INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    launches      INTEGER NOT NULL DEFAULT 0,
    gpu_time_ns   INTEGER NOT NULL DEFAULT 0,
    first_start_ns INTEGER,                 -- of its launches
    last_start_ns INTEGER,
    rolled_ns     INTEGER NOT NULL DEFAULT 0,
    evicted_ns    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX stored_run_session ON stored_run(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX stored_run_source ON stored_run(source_hash) WHERE source_hash IS NOT NULL;

CREATE TABLE stored_kernel (
    kernel_id INTEGER PRIMARY KEY,
    hash      INTEGER NOT NULL,             -- FNV-1a 64 of the whole mangled name
    mangled   TEXT NOT NULL,
    demangled TEXT NOT NULL,
    short     TEXT NOT NULL,                -- without return type, namespaces, template arguments and arguments
    UNIQUE (hash, mangled)
) STRICT;

-- Kernel x device x launch configuration, and everything that follows from it.
CREATE TABLE stored_launch_config (
    config_id INTEGER PRIMARY KEY,
    key       BLOB NOT NULL UNIQUE,
    kernel_id INTEGER NOT NULL REFERENCES stored_kernel,
    device_id INTEGER NOT NULL REFERENCES stored_device,
    grid_x INTEGER NOT NULL,    grid_y INTEGER NOT NULL,    grid_z INTEGER NOT NULL,
    block_x INTEGER NOT NULL,   block_y INTEGER NOT NULL,   block_z INTEGER NOT NULL,
    cluster_x INTEGER NOT NULL, cluster_y INTEGER NOT NULL, cluster_z INTEGER NOT NULL,
    registers_per_thread   INTEGER NOT NULL,
    static_shared_bytes    INTEGER NOT NULL,
    dynamic_shared_bytes   INTEGER NOT NULL,
    shared_config_bytes    INTEGER NOT NULL, -- per SM, as the driver chose; 0: unknown
    carveout_percent       INTEGER NOT NULL, -- -1: the driver's default
    barriers               INTEGER NOT NULL, -- 0: unknown
    max_active_clusters    INTEGER NOT NULL, -- 0: unknown
    shared_optin           INTEGER CHECK (shared_optin IN (0, 1)),
    local_bytes_per_thread INTEGER NOT NULL,
    max_cluster_size       INTEGER NOT NULL,
    launch_type            INTEGER NOT NULL, -- 0 regular, 1 cooperative, 2 cooperative on several devices
    cache_config           INTEGER NOT NULL, -- CUfunc_cache: 0 none, 1 shared, 2 l1, 3 equal
    device_launched        INTEGER NOT NULL CHECK (device_launched IN (0, 1)),
    -- the model's answer; NULL where it refuses the configuration
    model_version          INTEGER NOT NULL, -- OCC_MODEL_VERSION of the program that analysed the configuration
    refused                TEXT,
    limiters               TEXT,
    main_cause             TEXT,
    theoretical            REAL,
    expected_achieved_low  REAL,             -- a range, as in occupancy.h
    expected_achieved_high REAL,
    expected_elapsed_low   REAL,
    expected_elapsed_high  REAL,
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
    shared_per_block_bytes INTEGER,
    used_shared_config_bytes INTEGER,
    shared_config_from_driver INTEGER CHECK (shared_config_from_driver IN (0, 1)),
    limiter_bits           INTEGER,         -- 1 << enum occ_limit
    by_design_bits         INTEGER,         -- enum occ_by_design
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
) STRICT;
CREATE INDEX stored_launch_config_kernel ON stored_launch_config(kernel_id);

-- Which configurations a run has launched.
CREATE TABLE stored_run_config (
    run_id    INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    config_id INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    PRIMARY KEY (run_id, config_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_run_config_config ON stored_run_config(config_id);

-- Packed launches of one run on one device, sorted by start (format: store/codec/columns.h). The metadata lie apart
-- from the bytes, so that a query reads only the chunks it needs. is_full 0: the last seconds; 1: also a damaged one.
CREATE TABLE stored_chunk (
    chunk_id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id             INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    device_id          INTEGER NOT NULL REFERENCES stored_device,
    is_full            INTEGER NOT NULL CHECK (is_full IN (0, 1)),
    launches           INTEGER NOT NULL,
    first_start_ns     INTEGER NOT NULL,
    last_start_ns      INTEGER NOT NULL,
    last_end_ns        INTEGER NOT NULL,
    min_correlation_id INTEGER NOT NULL,
    max_correlation_id INTEGER NOT NULL
) STRICT;
CREATE INDEX stored_chunk_run ON stored_chunk(run_id, last_start_ns);
CREATE INDEX stored_chunk_time ON stored_chunk(last_start_ns);
CREATE TABLE stored_chunk_data (
    chunk_id INTEGER PRIMARY KEY REFERENCES stored_chunk ON DELETE CASCADE,
    data     BLOB NOT NULL
) STRICT;

-- first/last_start_offset_ns: first and last start, from the start of the minute or hour. histogram: of durations, 8
-- bins an octave (format: store/codec/histogram.h).
CREATE TABLE stored_minute (
    minute             INTEGER NOT NULL,
    run_id             INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    config_id          INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    launches           INTEGER NOT NULL,
    total_duration_ns  INTEGER NOT NULL,
    min_duration_ns    INTEGER NOT NULL,
    max_duration_ns    INTEGER NOT NULL,
    first_start_offset_ns INTEGER NOT NULL,
    last_start_offset_ns  INTEGER NOT NULL,
    histogram          BLOB NOT NULL,
    PRIMARY KEY (minute, run_id, config_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE stored_hour (
    hour               INTEGER NOT NULL,
    run_id             INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    config_id          INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    launches           INTEGER NOT NULL,
    total_duration_ns  INTEGER NOT NULL,
    min_duration_ns    INTEGER NOT NULL,
    max_duration_ns    INTEGER NOT NULL,
    first_start_offset_ns INTEGER NOT NULL,
    last_start_offset_ns  INTEGER NOT NULL,
    histogram          BLOB NOT NULL,
    PRIMARY KEY (hour, run_id, config_id)
) STRICT, WITHOUT ROWID;

-- What a reader that copies minutes elsewhere has not seen: a run's minute, or (minute -1) the run's own row, is numbered
-- anew with every transaction that changes it or what was measured in it, or that removes it. Numbers only grow: the last one
-- is sqlite_sequence.seq. A number outlives its minute by a week, so that such a reader can count what was evicted before it
-- came; for that reason run_id refers to no row that must exist.
CREATE TABLE stored_minute_change (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    minute INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    UNIQUE (minute, run_id)
) STRICT;
CREATE INDEX stored_minute_change_run ON stored_minute_change(run_id);

-- Removed runs, for a reader that has copied their minutes: the job and user by which it has added them up, and the launch
-- configurations of each minute. A minute is dropped when it would have been evicted, a run some time after its last minute.
CREATE TABLE stored_removed_run (
    run_id      INTEGER PRIMARY KEY,
    uuid        BLOB NOT NULL,
    start_ns    INTEGER NOT NULL,
    uid         INTEGER,
    user        TEXT,
    session_id  TEXT,
    slurm_job   TEXT,
    k8s_pod_uid TEXT,
    container   TEXT,
    last_minute INTEGER NOT NULL            -- of its launches, or of its removal: the later one
) STRICT;
CREATE INDEX stored_removed_run_time ON stored_removed_run(last_minute);
CREATE INDEX stored_removed_run_uuid ON stored_removed_run(uuid);
CREATE TRIGGER stored_removed_run_dropped AFTER DELETE ON stored_removed_run BEGIN
    DELETE FROM stored_minute_change WHERE minute = -1 AND run_id = old.run_id;
END;
CREATE TABLE stored_removed_minute (
    minute    INTEGER NOT NULL,
    run_id    INTEGER NOT NULL,             -- in stored_removed_run
    config_id INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    PRIMARY KEY (minute, run_id, config_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_removed_minute_config ON stored_removed_minute(config_id);
CREATE TRIGGER stored_run_put AFTER INSERT ON stored_run BEGIN
    INSERT INTO stored_minute_change(minute, run_id) VALUES (-1, new.run_id);
END;
CREATE TRIGGER stored_run_put_again AFTER UPDATE OF end_ns ON stored_run BEGIN
    DELETE FROM stored_minute_change WHERE minute = -1 AND run_id = new.run_id;
    INSERT INTO stored_minute_change(minute, run_id) VALUES (-1, new.run_id);
END;
-- Tells this file from another that takes its place.
CREATE TABLE stored_identity (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    identity INTEGER NOT NULL
) STRICT;
INSERT INTO stored_identity VALUES (1, random());

-- Rows of minutes before this one were evicted.
CREATE TABLE stored_retention (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    first_minute INTEGER NOT NULL,
    name_bytes   INTEGER NOT NULL,  -- what kernels, launch configurations, runs and ranges take, with their indices, about
    last_run     INTEGER NOT NULL   -- largest number of a run that was deleted: no run gets it again
) STRICT;
INSERT INTO stored_retention VALUES (1, 0, 0, 0);
CREATE TRIGGER stored_kernel_added AFTER INSERT ON stored_kernel BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes + 128 + 2 * length(CAST(new.mangled AS BLOB))
        + length(CAST(new.demangled AS BLOB)) + length(CAST(new.short AS BLOB));
END;
CREATE TRIGGER stored_kernel_dropped AFTER DELETE ON stored_kernel BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes - 128 - 2 * length(CAST(old.mangled AS BLOB))
        - length(CAST(old.demangled AS BLOB)) - length(CAST(old.short AS BLOB));
END;
CREATE TRIGGER stored_launch_config_added AFTER INSERT ON stored_launch_config BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes + 512;
END;
CREATE TRIGGER stored_launch_config_dropped AFTER DELETE ON stored_launch_config BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes - 512;
END;
CREATE TRIGGER stored_run_added AFTER INSERT ON stored_run BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes + 4096;
END;
CREATE TRIGGER stored_run_dropped AFTER DELETE ON stored_run BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes - 4096, last_run = max(last_run, old.run_id);
END;

-- Where a program was when it launched: the ranges that were open then (NVTX, PyTorch's operators and modules), outermost
-- first. Launches have range_id in their chunks. Of a run at most 4096, the rest is '(other ranges)'.
CREATE TABLE stored_range (
    run_id   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    range_id INTEGER NOT NULL,              -- 1, 2, ... in each run
    path     TEXT NOT NULL,
    phase    TEXT NOT NULL,                 -- '': not known
    PRIMARY KEY (run_id, range_id),
    UNIQUE (run_id, path, phase)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER stored_range_added AFTER INSERT ON stored_range BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes + 64 + 2 * length(CAST(new.path AS BLOB));
END;
CREATE TRIGGER stored_range_dropped AFTER DELETE ON stored_range BEGIN
    UPDATE stored_retention SET name_bytes = name_bytes - 64 - 2 * length(CAST(old.path AS BLOB));
END;

CREATE TABLE stored_loss (
    run_id   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    cause    TEXT NOT NULL,
    launches INTEGER NOT NULL,
    PRIMARY KEY (run_id, cause)
) STRICT, WITHOUT ROWID;

CREATE TABLE stored_overhead (
    run_id   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    quantity TEXT NOT NULL,
    total    INTEGER NOT NULL,
    PRIMARY KEY (run_id, quantity)
) STRICT, WITHOUT ROWID;

-- Periods in which less of a run was recorded than in the rest of it, and why. until_ns NULL: to its end, or still.
CREATE TABLE stored_period (
    run_id   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    from_ns  INTEGER NOT NULL,
    until_ns INTEGER,
    level    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    PRIMARY KEY (run_id, from_ns)
) STRICT, WITHOUT ROWID;

-- What a recording itself reports of the achieved occupancy of a configuration's launches. Neither measured nor ours.
CREATE TABLE stored_reported_occupancy (
    run_id    INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    config_id INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    launches  INTEGER NOT NULL,
    mean      REAL NOT NULL,
    min       REAL NOT NULL,
    max       REAL NOT NULL,
    PRIMARY KEY (run_id, config_id)
) STRICT, WITHOUT ROWID;

-- What Nsight Compute measured of a launch of an imported report, and what it computed of its configuration, by ncu's own
-- metric names and in their base units (ns, bytes, cycles, percent).
CREATE TABLE stored_ncu_metric (
    hour           INTEGER NOT NULL,        -- of the launch
    run_id         INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    config_id      INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    correlation_id INTEGER NOT NULL,        -- the result's number in its report, from 1: the launch's correlation_id
    metric         TEXT NOT NULL,
    unit           TEXT NOT NULL,
    value          REAL NOT NULL,
    PRIMARY KEY (run_id, config_id, metric, correlation_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_ncu_metric_time ON stored_ncu_metric(hour);

-- What a change brought that advice had named, by occq diff: one row for a configuration before and one after. Rows stay
-- when their configurations go; the oldest rows beyond a limit go with the next comparison.
CREATE TABLE stored_advice_outcome (
    outcome_id       INTEGER PRIMARY KEY,
    config_before_id INTEGER REFERENCES stored_launch_config ON DELETE SET NULL,
    config_after_id  INTEGER REFERENCES stored_launch_config ON DELETE SET NULL,
    compared_ns      INTEGER NOT NULL,
    change           TEXT NOT NULL,         -- the word of the advice
    is_promised      INTEGER NOT NULL CHECK (is_promised IN (0, 1)),
    predicted_ratio  REAL NOT NULL,         -- time after / before, of the change as it was made
    predicted_low    REAL NOT NULL,         -- ends of the 80 % interval
    predicted_high   REAL NOT NULL,
    measured_ratio   REAL NOT NULL,
    measured_low     REAL NOT NULL,         -- ends of the 95 % confidence interval
    measured_high    REAL NOT NULL,
    UNIQUE (config_before_id, config_after_id)
) STRICT;
CREATE INDEX stored_advice_outcome_after ON stored_advice_outcome(config_after_id);
CREATE INDEX stored_advice_outcome_time ON stored_advice_outcome(compared_ns);

-- How far a ring was read, in the same transaction as what was read from it, so that each is stored exactly once:
-- launches, and frames of exact values in its log.
CREATE TABLE stored_ring (
    uuid           BLOB PRIMARY KEY,
    launches_read  INTEGER NOT NULL,
    measured_read  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What hardware counters measured: sums by launch configuration, run and minute, and the same by hour. A value is the
-- sum of value x duration (_sum) and the sum of the durations for which it was defined (_ns); the time-weighted mean is
-- their quotient. direct, regression, grouped, exact, ncu: launches by where their value comes from; overlapped: of them,
-- those that ran beside other kernels. elapsed_square_sum and rest_*: evidence on launches without a value
-- (store/measured.h, OCC_MEASURED_EVIDENCE).
CREATE TABLE stored_measured_minute (
    config_id                INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    run_id                   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    minute                   INTEGER NOT NULL,
    direct                   INTEGER NOT NULL,
    regression               INTEGER NOT NULL,
    grouped                  INTEGER NOT NULL,
    exact                    INTEGER NOT NULL,
    ncu                      INTEGER NOT NULL,
    overlapped               INTEGER NOT NULL,
    achieved_sum             REAL NOT NULL, achieved_ns            REAL NOT NULL,
    achieved_error_sum       REAL NOT NULL, achieved_error_ns      REAL NOT NULL,
    elapsed_sum              REAL NOT NULL, elapsed_ns             REAL NOT NULL,
    elapsed_error_sum        REAL NOT NULL, elapsed_error_ns       REAL NOT NULL,
    variance_inflation_sum   REAL NOT NULL, variance_inflation_ns  REAL NOT NULL,
    sm_active_sum            REAL NOT NULL, sm_active_ns           REAL NOT NULL,
    resident_blocks_sum      REAL NOT NULL, resident_blocks_ns     REAL NOT NULL,
    imbalance_sum            REAL NOT NULL, imbalance_ns           REAL NOT NULL,
    stall_registers_sum      REAL NOT NULL, stall_registers_ns     REAL NOT NULL,
    stall_shared_memory_sum  REAL NOT NULL, stall_shared_memory_ns REAL NOT NULL,
    stall_blocks_sum         REAL NOT NULL, stall_blocks_ns        REAL NOT NULL,
    stall_warps_sum          REAL NOT NULL, stall_warps_ns         REAL NOT NULL,
    stall_barriers_sum       REAL NOT NULL, stall_barriers_ns      REAL NOT NULL,
    group_achieved_sum       REAL NOT NULL, group_achieved_ns      REAL NOT NULL,
    group_elapsed_sum        REAL NOT NULL, group_elapsed_ns       REAL NOT NULL,
    group_elapsed_error_sum  REAL NOT NULL, group_elapsed_error_ns REAL NOT NULL,
    issue_active_sum         REAL NOT NULL, issue_active_ns        REAL NOT NULL,
    issue_active_error_sum   REAL NOT NULL, issue_active_error_ns  REAL NOT NULL,
    dram_throughput_sum      REAL NOT NULL, dram_throughput_ns     REAL NOT NULL,
    l2_throughput_sum        REAL NOT NULL, l2_throughput_ns       REAL NOT NULL,
    l1_throughput_sum        REAL NOT NULL, l1_throughput_ns       REAL NOT NULL,
    tensor_active_sum        REAL NOT NULL, tensor_active_ns       REAL NOT NULL,
    throughput_error_sum     REAL NOT NULL, throughput_error_ns    REAL NOT NULL,
    elapsed_square_sum       REAL NOT NULL,
    rest_shift_sum           REAL NOT NULL,
    rest_error_sum           REAL NOT NULL,
    rest_ns                  REAL NOT NULL,
    PRIMARY KEY (config_id, minute, run_id) -- a query reads some minutes of a configuration
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_measured_minute_time ON stored_measured_minute(minute);
CREATE TABLE stored_measured_hour (
    config_id                INTEGER NOT NULL REFERENCES stored_launch_config ON DELETE CASCADE,
    run_id                   INTEGER NOT NULL REFERENCES stored_run ON DELETE CASCADE,
    hour                     INTEGER NOT NULL,
    direct                   INTEGER NOT NULL,
    regression               INTEGER NOT NULL,
    grouped                  INTEGER NOT NULL,
    exact                    INTEGER NOT NULL,
    ncu                      INTEGER NOT NULL,
    overlapped               INTEGER NOT NULL,
    achieved_sum             REAL NOT NULL, achieved_ns            REAL NOT NULL,
    achieved_error_sum       REAL NOT NULL, achieved_error_ns      REAL NOT NULL,
    elapsed_sum              REAL NOT NULL, elapsed_ns             REAL NOT NULL,
    elapsed_error_sum        REAL NOT NULL, elapsed_error_ns       REAL NOT NULL,
    variance_inflation_sum   REAL NOT NULL, variance_inflation_ns  REAL NOT NULL,
    sm_active_sum            REAL NOT NULL, sm_active_ns           REAL NOT NULL,
    resident_blocks_sum      REAL NOT NULL, resident_blocks_ns     REAL NOT NULL,
    imbalance_sum            REAL NOT NULL, imbalance_ns           REAL NOT NULL,
    stall_registers_sum      REAL NOT NULL, stall_registers_ns     REAL NOT NULL,
    stall_shared_memory_sum  REAL NOT NULL, stall_shared_memory_ns REAL NOT NULL,
    stall_blocks_sum         REAL NOT NULL, stall_blocks_ns        REAL NOT NULL,
    stall_warps_sum          REAL NOT NULL, stall_warps_ns         REAL NOT NULL,
    stall_barriers_sum       REAL NOT NULL, stall_barriers_ns      REAL NOT NULL,
    group_achieved_sum       REAL NOT NULL, group_achieved_ns      REAL NOT NULL,
    group_elapsed_sum        REAL NOT NULL, group_elapsed_ns       REAL NOT NULL,
    group_elapsed_error_sum  REAL NOT NULL, group_elapsed_error_ns REAL NOT NULL,
    issue_active_sum         REAL NOT NULL, issue_active_ns        REAL NOT NULL,
    issue_active_error_sum   REAL NOT NULL, issue_active_error_ns  REAL NOT NULL,
    dram_throughput_sum      REAL NOT NULL, dram_throughput_ns     REAL NOT NULL,
    l2_throughput_sum        REAL NOT NULL, l2_throughput_ns       REAL NOT NULL,
    l1_throughput_sum        REAL NOT NULL, l1_throughput_ns       REAL NOT NULL,
    tensor_active_sum        REAL NOT NULL, tensor_active_ns       REAL NOT NULL,
    throughput_error_sum     REAL NOT NULL, throughput_error_ns    REAL NOT NULL,
    elapsed_square_sum       REAL NOT NULL,
    rest_shift_sum           REAL NOT NULL,
    rest_error_sum           REAL NOT NULL,
    rest_ns                  REAL NOT NULL,
    PRIMARY KEY (config_id, hour, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_measured_hour_time ON stored_measured_hour(hour);

-- Packed counters (format: store/codec/columns.h): occupancy of single launches of a run on a device, where it was
-- measured directly, and samples of a device. is_full: or damaged; it is not merged with others.
CREATE TABLE stored_series_chunk (
    chunk_id       INTEGER PRIMARY KEY AUTOINCREMENT,
    kind           TEXT NOT NULL CHECK (kind IN ('launch_value', 'device_sample')),
    run_id         INTEGER REFERENCES stored_run ON DELETE CASCADE,
    device_id      INTEGER NOT NULL REFERENCES stored_device,
    is_full        INTEGER NOT NULL CHECK (is_full IN (0, 1)),
    rows           INTEGER NOT NULL,
    first_start_ns INTEGER NOT NULL,
    last_start_ns  INTEGER NOT NULL,
    data           BLOB NOT NULL,
    CHECK ((kind = 'device_sample') = (run_id IS NULL))
) STRICT;
CREATE INDEX stored_series_chunk_run ON stored_series_chunk(kind, run_id, device_id, last_start_ns);
CREATE INDEX stored_series_chunk_open ON stored_series_chunk(kind, run_id, device_id) WHERE is_full = 0;
CREATE INDEX stored_series_chunk_time ON stored_series_chunk(kind, last_start_ns);

-- A second of a device's samples (those that start in it): smallest, time-weighted mean and largest. Units of 1e-4
-- (_e4) and 1e-3 (_e3). NULL: no sample has it. unexplained: mean elapsed occupancy that no traced kernel explains.
-- energy_mj: millijoules of the energy_ns that end with the second, which may have no sample.
CREATE TABLE stored_device_second (
    second     INTEGER NOT NULL,            -- since the epoch
    device_id  INTEGER NOT NULL REFERENCES stored_device,
    samples    INTEGER NOT NULL,
    covered_ns INTEGER NOT NULL,
    elapsed_min_e4             INTEGER, elapsed_mean_e4             INTEGER, elapsed_max_e4             INTEGER,
    sm_active_min_e4           INTEGER, sm_active_mean_e4           INTEGER, sm_active_max_e4           INTEGER,
    resident_blocks_min_e3     INTEGER, resident_blocks_mean_e3     INTEGER, resident_blocks_max_e3     INTEGER,
    stall_registers_min_e4     INTEGER, stall_registers_mean_e4     INTEGER, stall_registers_max_e4     INTEGER,
    stall_shared_memory_min_e4 INTEGER, stall_shared_memory_mean_e4 INTEGER, stall_shared_memory_max_e4 INTEGER,
    stall_blocks_min_e4        INTEGER, stall_blocks_mean_e4        INTEGER, stall_blocks_max_e4        INTEGER,
    stall_warps_min_e4         INTEGER, stall_warps_mean_e4         INTEGER, stall_warps_max_e4         INTEGER,
    stall_barriers_min_e4      INTEGER, stall_barriers_mean_e4      INTEGER, stall_barriers_max_e4      INTEGER,
    unexplained_e4             INTEGER,
    energy_mj INTEGER, energy_ns INTEGER,
    PRIMARY KEY (second, device_id)
) STRICT, WITHOUT ROWID;
