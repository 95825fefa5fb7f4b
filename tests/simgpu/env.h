/*
 * Settings and scripted faults of a simulated device, from the environment. Both libraries contain this file;
 * each reads the environment once, at the first query.
 *
 * An invalid value is reported on stderr once and replaced by its default: a driver must not end its
 * program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(FIELD, variable, kind, default, smallest, largest, help). An INTEGER may be negative: smallest and
 * largest are of its magnitude. */
#define SIM_SETTINGS(X)                                                                                      \
    X(gpu, "OCCSIM_GPU", TEXT, "h200", 0, 0, "t4, a100 or h200; a list makes several devices")               \
    X(clock, "OCCSIM_CLOCK", TEXT, "real", 0, 0, "real, ahead (real, nothing waits) or virtual")             \
    X(block_ns, "OCCSIM_BLOCK_NS", NUMBER, "2000", 1, 1000000000, "base of a block's duration")              \
    X(exact_blocks, "OCCSIM_EXACT_BLOCKS", NUMBER, "0", 0, 1, "1: every block lasts OCCSIM_BLOCK_NS")        \
    X(gap_ns, "OCCSIM_GAP_NS", NUMBER, "900", 0, 1000000000, "pause between two kernels of a stream")        \
    X(imbalance_percent, "OCCSIM_IMBALANCE", NUMBER, "0", 0, 100, "blocks differ by up to this much")        \
    X(ramp_ns, "OCCSIM_RAMP_NS", NUMBER, "0", 0, 1000000000, "a launch's first blocks start over this time") \
    X(warp_imbalance_percent, "OCCSIM_WARP_IMBALANCE", NUMBER, "0", 0, 100,                                  \
      "half of a block's warps end so much earlier")                                                         \
    X(counters, "OCCSIM_COUNTERS", TEXT, "", 0, 0, "directory that tells samplers what is executed")         \
    X(mps, "OCCSIM_MPS", NUMBER, "0", 0, 1, "1: processes share a device instead of taking turns")           \
    X(counter_offset_ns, "OCCSIM_COUNTER_OFFSET_NS", INTEGER, "0", 0, 1000000000,                            \
      "samples' times are so far ahead")                                                                     \
    X(counter_drift_ppm, "OCCSIM_COUNTER_DRIFT_PPM", INTEGER, "0", 0, 1000000, "and run so much faster")     \
    X(cupti_version, "OCCSIM_CUPTI_VERSION", NUMBER, "0", 0, 999999, "cuptiGetVersion; 0: as built")         \
    X(mig, "OCCSIM_MIG", NUMBER, "0", 0, 7, "MIG instances of each device, for NVML's processes; 0: no MIG") \
    X(processes, "OCCSIM_PROCESSES", TEXT, "", 0, 0,                                                         \
      "file of NVML's compute processes: DEVICE PID [INSTANCE]")                                             \
    X(truth, "OCCSIM_TRUTH", TEXT, "", 0, 0, "file that gets one CSV line for each launch")                  \
    X(client, "OCCSIM_CLIENT", TEXT, "", 0, 0, "another CUPTI client of the program: NAME:FROM:UNTIL,...")   \
    X(log, "OCCSIM_LOG", TEXT, "", 0, 0, "1 or stderr, or a file: what the simulation has to say")           \
    X(fault, "OCCSIM_FAULT", TEXT, "", 0, 0, "kind:number,... scripted faults")

/* X(NAME, word, argument, effect) */
#define SIM_FAULTS(X)                                                                                        \
    X(INIT, "init", "CUresult", "cuInit returns it")                                                         \
    X(SUBSCRIBE, "subscribe", "CUptiResult", "cuptiSubscribe returns it")                                    \
    X(REGISTER, "register", "CUptiResult", "cuptiActivityRegisterCallbacks returns it")                      \
    X(ENABLE, "enable", "CUptiResult", "cuptiActivityEnable returns it")                                     \
    X(SLOW_ENABLE, "slow_enable", "us", "cuptiActivityEnable takes so long after records have begun")        \
    X(SLOW_FLUSH, "slow_flush", "us", "cuptiActivityFlushAll takes so long before it returns a buffer")      \
    X(DROP, "drop", "N", "every Nth record is lost and counted as dropped")                                  \
    X(ZERO, "zero", "N", "every Nth record has start = end = 0")                                             \
    X(BACKWARDS, "backwards", "N", "every Nth record ends before it starts")                                 \
    X(SHUFFLE, "shuffle", "N", "each buffer's records are mixed in groups of N")                             \
    X(LEAK, "leak", "N", "a device buffer has room for N records (100000)")                                  \
    X(SMALL, "small", "bytes", "only so much of each buffer is used")                                        \
    X(LATE, "late", "ms", "buffers come back this much later")                                               \
    X(LEAK_ALL, "leak_all", "N", "every Nth copy or fill of a graph keeps a place, recorded or not")         \
    X(LATE_WORKER, "late_worker", "1", "CUPTI's thread is started by the first thread that launches")        \
    X(PM_ENABLE, "pm_enable", "CUptiResult", "cuptiPmSamplingEnable returns it")                             \
    X(PM_DECODE, "pm_decode", "CUptiResult", "cuptiPmSamplingDecodeData returns it from the 10th time on")   \
    X(PM_OVERFLOW, "pm_overflow", "N", "every Nth decode says that the hardware buffer overflowed")          \
    X(PM_BACKWARDS, "pm_backwards", "N", "every Nth sample ends before it starts")                           \
    X(PM_REUSE, "pm_reuse", "CUptiResult", "decoding returns it after an object's second configuration")     \
    X(PM_NORESUME, "pm_noresume", "1", "a full image loses the rest of the hardware buffer")                 \
    X(PM_FINALIZES, "pm_finalizes", "CUptiResult", "Disable ends CUPTI: calls return it until Initialize")   \
    X(UNAVAILABLE, "unavailable", "bits", "metrics of cupti_pm.h that the availability image lacks")         \
    X(UNSUPPORTED, "unsupported", "N", "the Nth answer of cuptiProfilerDeviceSupported is a no")             \
    X(RANGE, "range", "CUptiResult", "cuptiRangeProfilerEnable returns it")                                  \
    X(PASSES, "passes", "N", "cuptiProfilerHostGetNumOfPasses says N")                                       \
    X(LACKS, "lacks", "N", "the Nth metric of cupti_pm.h does not exist")                                    \
    X(RANGE_LOSS, "rangeloss", "N", "every Nth launch has no range, and nobody says so")                     \
    X(GPM, "gpm", "nvmlReturn_t", "nvmlGpmSampleGet returns it")                                             \
    X(ENERGY, "energy", "nvmlReturn_t", "nvmlDeviceGetTotalEnergyConsumption returns it")                    \
    X(RANGE_WAIT, "rangewait", "1", "the range profiler runs a kernel of its own before each range")         \
    X(RANGE_TIMES, "rangetimes", "1", "records have times in a session of the range profiler, too")

enum sim_fault {
#define X(name, word, argument, text) SIM_FAULT_##name,
    SIM_FAULTS(X)
#undef X
        SIM_FAULT_COUNT
};

enum sim_clock_mode { SIM_CLOCK_REAL, SIM_CLOCK_AHEAD, SIM_CLOCK_VIRTUAL };

struct sim_env {
#define TEXT                                                        const char *
#define NUMBER                                                      uint64_t
#define INTEGER                                                     int64_t
#define X(field, variable, kind, standard, smallest, largest, help) kind field;
    SIM_SETTINGS(X)
#undef X
#undef TEXT
#undef NUMBER
#undef INTEGER
    enum sim_clock_mode clock_mode;
    uint64_t fault_argument[SIM_FAULT_COUNT]; /* 0: the fault is off */
};

/* Never returns NULL. The settings live until the process ends. Any thread. */
const struct sim_env *sim_env(void);

/* Returns the argument of a fault, 0 if it is off. */
uint64_t sim_fault(enum sim_fault fault);

/* Logs a line "simgpu: ..." to OCCSIM_LOG, if set. Any thread; keeps errno. */
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs a line for the user: to the log, else to stderr. */
void sim_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
