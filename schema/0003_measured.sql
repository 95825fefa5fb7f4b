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
    PRIMARY KEY (shape, run, bucket)
) WITHOUT ROWID;

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
       sum(direct) AS direct, sum(regressed) AS regressed, sum(grouped) AS grouped, sum(exact) AS exact,
       sum(overlapped) AS overlapped
FROM measured m JOIN shape s ON s.id = m.shape JOIN kernel k ON k.id = s.kernel
GROUP BY m.run, m.shape;
