-- What hardware counters said of launches: sums by shape, run and minute (counted since the epoch). A value is kept as
-- the sum of value x duration and the sum of the durations for which it was defined; the time-weighted mean is their
-- quotient, NULL where the second is 0. direct, regressed, grouped, exact: launches by where their value comes from;
-- overlapped: of them, those that ran beside other kernels.
CREATE TABLE measured (
    shape                    INTEGER NOT NULL,
    run                      INTEGER NOT NULL,
    bucket                   INTEGER NOT NULL,
    direct                   INTEGER NOT NULL,
    regressed                INTEGER NOT NULL,
    grouped                  INTEGER NOT NULL,
    exact                    INTEGER NOT NULL,
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
    PRIMARY KEY (shape, bucket, run) -- the minutes that a question is about, of a shape
) WITHOUT ROWID;
CREATE INDEX measured_bucket ON measured(bucket);

-- Means for people, by shape and run.
CREATE VIEW measured_detail AS
SELECT m.run, m.shape, k.short AS shortName, s.theoretical, s.expected_achieved AS expectedAchieved,
       s.expected_elapsed AS expectedElapsed,
       sum(achieved_sum) / nullif(sum(achieved_ns), 0) AS achieved,
       sum(achieved_error_sum) / nullif(sum(achieved_error_ns), 0) AS achievedError,
       sum(elapsed_sum) / nullif(sum(elapsed_ns), 0) AS elapsed,
       sum(elapsed_error_sum) / nullif(sum(elapsed_error_ns), 0) AS elapsedError,
       sum(variance_inflation_sum) / nullif(sum(variance_inflation_ns), 0) AS varianceInflation,
       sum(sm_active_sum) / nullif(sum(sm_active_ns), 0) AS smActive,
       sum(resident_blocks_sum) / nullif(sum(resident_blocks_ns), 0) AS residentBlocks,
       sum(imbalance_sum) / nullif(sum(imbalance_ns), 0) AS imbalance,
       sum(stall_registers_sum) / nullif(sum(stall_registers_ns), 0) AS stallRegisters,
       sum(stall_shared_memory_sum) / nullif(sum(stall_shared_memory_ns), 0) AS stallSharedMemory,
       sum(stall_blocks_sum) / nullif(sum(stall_blocks_ns), 0) AS stallBlocks,
       sum(stall_warps_sum) / nullif(sum(stall_warps_ns), 0) AS stallWarps,
       sum(stall_barriers_sum) / nullif(sum(stall_barriers_ns), 0) AS stallBarriers,
       sum(group_achieved_sum) / nullif(sum(group_achieved_ns), 0) AS groupAchieved,
       sum(group_elapsed_sum) / nullif(sum(group_elapsed_ns), 0) AS groupElapsed,
       sum(group_elapsed_error_sum) / nullif(sum(group_elapsed_error_ns), 0) AS groupElapsedError,
       sum(direct) AS direct, sum(regressed) AS regressed, sum(grouped) AS grouped, sum(exact) AS exact,
       sum(overlapped) AS overlapped,
       -- 0: launches without a value of their own last otherwise than those with: the means stand for a part only
       CASE WHEN sum(group_elapsed_ns) > 0.1 * (sum(elapsed_ns) + sum(group_elapsed_ns)) AND sum(elapsed_ns) > 0
            AND NOT (sum(elapsed_ns) / sum(direct + regressed + exact)) /
                    (sum(group_elapsed_ns) / sum(grouped)) BETWEEN 1 / 1.2 AND 1.2
            THEN 0 ELSE 1 END AS standsForAll
FROM measured m JOIN shape s ON s.id = m.shape JOIN kernel k ON k.id = s.kernel
GROUP BY m.run, m.shape;

-- Packed counters (format: store/codec/series_codec.h). kind 1: occupancy of single launches of a run on a device, as far as it was
-- read directly; kind 2: samples of a device (run 0). level: of merging, 0 is one commit's, 9 is full. The virtual
-- tables `launch` and `device_sample` show them as rows.
CREATE TABLE series_chunk (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    kind     INTEGER NOT NULL,
    run      INTEGER NOT NULL,
    device   INTEGER NOT NULL,
    level    INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,              -- first and last start
    last_ns  INTEGER NOT NULL,
    data     BLOB NOT NULL
);
CREATE INDEX series_chunk_time ON series_chunk(kind, run, device, last_ns);
CREATE INDEX series_chunk_level ON series_chunk(kind, run, device, level);
CREATE INDEX series_chunk_last ON series_chunk(kind, last_ns);

-- A second of a device's samples (those that start in it): smallest, mean (by time) and largest, as integers: ratios in
-- ten-thousandths, resident blocks in thousandths. NULL: no sample has it. unexplained: mean of elapsed that no traced
-- kernel explains, ten-thousandths.
CREATE TABLE device_second (
    second     INTEGER NOT NULL,            -- since the epoch
    device     INTEGER NOT NULL,
    samples    INTEGER NOT NULL,
    covered_ns INTEGER NOT NULL,
    elapsed_min             INTEGER, elapsed_mean             INTEGER, elapsed_max             INTEGER,
    sm_active_min           INTEGER, sm_active_mean           INTEGER, sm_active_max           INTEGER,
    resident_blocks_min     INTEGER, resident_blocks_mean     INTEGER, resident_blocks_max     INTEGER,
    stall_registers_min     INTEGER, stall_registers_mean     INTEGER, stall_registers_max     INTEGER,
    stall_shared_memory_min INTEGER, stall_shared_memory_mean INTEGER, stall_shared_memory_max INTEGER,
    stall_blocks_min        INTEGER, stall_blocks_mean        INTEGER, stall_blocks_max        INTEGER,
    stall_warps_min         INTEGER, stall_warps_mean         INTEGER, stall_warps_max         INTEGER,
    stall_barriers_min      INTEGER, stall_barriers_mean      INTEGER, stall_barriers_max      INTEGER,
    unexplained             INTEGER,
    PRIMARY KEY (second, device)
) WITHOUT ROWID;

CREATE VIEW device_second_detail AS
SELECT t.device, d.name AS deviceName, d.simulated, t.second * 1000000000 AS start, t.samples,
       t.covered_ns AS coveredTime,
       t.elapsed_min / 10000.0 AS elapsedMin, t.elapsed_mean / 10000.0 AS elapsedMean, t.elapsed_max / 10000.0 AS elapsedMax,
       t.sm_active_min / 10000.0 AS smActiveMin, t.sm_active_mean / 10000.0 AS smActiveMean, t.sm_active_max / 10000.0 AS smActiveMax,
       t.resident_blocks_min / 1000.0 AS residentBlocksMin, t.resident_blocks_mean / 1000.0 AS residentBlocksMean, t.resident_blocks_max / 1000.0 AS residentBlocksMax,
       t.stall_registers_min / 10000.0 AS stallRegistersMin, t.stall_registers_mean / 10000.0 AS stallRegistersMean, t.stall_registers_max / 10000.0 AS stallRegistersMax,
       t.stall_shared_memory_min / 10000.0 AS stallSharedMemoryMin, t.stall_shared_memory_mean / 10000.0 AS stallSharedMemoryMean, t.stall_shared_memory_max / 10000.0 AS stallSharedMemoryMax,
       t.stall_blocks_min / 10000.0 AS stallBlocksMin, t.stall_blocks_mean / 10000.0 AS stallBlocksMean, t.stall_blocks_max / 10000.0 AS stallBlocksMax,
       t.stall_warps_min / 10000.0 AS stallWarpsMin, t.stall_warps_mean / 10000.0 AS stallWarpsMean, t.stall_warps_max / 10000.0 AS stallWarpsMax,
       t.stall_barriers_min / 10000.0 AS stallBarriersMin, t.stall_barriers_mean / 10000.0 AS stallBarriersMean, t.stall_barriers_max / 10000.0 AS stallBarriersMax,
       t.unexplained / 10000.0 AS unexplained
FROM device_second t JOIN device d ON d.id = t.device;
