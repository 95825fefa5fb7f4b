/*
 * Coverage: why a process that computes on a GPU is recorded or not. The daemon's answer to `coverage`
 * (control.h), its metrics and `occq doctor --coverage` use these words.
 */
#pragma once

/* X(NAME, "word", "meaning", "remedy" or "") */
#define OCC_COVERAGE_REASONS(X)                                                                              \
    X(RECORDED, "recorded", "its launches are recorded", "")                                                 \
    X(OPTED_OUT, "opted_out", "OCCTRACE_DISABLE is set in its environment", "")                              \
    X(ENVIRONMENT, "environment", "nothing in its environment loads occtrace",                               \
      "start it with occtrace, or set CUDA_INJECTION64_PATH for all programs (docs/opt-in.md)")              \
    X(STARTED_BEFORE, "started_before",                                                                      \
      "nothing in its environment loads occtrace, and it started before this daemon", "restart the program") \
    X(OTHER_PROFILER, "other_profiler", "CUDA_INJECTION64_PATH names another tool's library",                \
      "end the other profiler, and unset the variable")                                                      \
    X(STATIC, "static", "a static program: libraries cannot be preloaded into it",                           \
      "link it dynamically with its C library")                                                              \
    X(MUSL, "musl", "its C library is musl, the guest library needs glibc", "use an image with glibc")       \
    X(OLD_GLIBC, "old_glibc", "its glibc is older than 2.17", "use an image with glibc 2.17 or newer")       \
    X(NO_LIBCUPTI, "no_libcupti", "it reports, but found no usable libcupti",                                \
      "install the CUDA toolkit's libcupti where the program runs, or set OCCTRACE_CUPTI")                   \
    X(NOT_LOADED, "not_loaded", "its environment loads occtrace, but the library is not in the process",     \
      "mount the library's directory into its container, and keep the variable's path")                      \
    X(OTHER_DAEMON, "other_daemon", "it reports to the socket of another daemon", "")                        \
    X(ROOTLESS, "rootless",                                                                                  \
      "a rootless container: the daemon's user does not exist there, so the process trusts no daemon",       \
      "mount /run/occtrace into the container, and set OCCTRACE_SOCKET=/run/occtrace/occtraced.sock there "  \
      "(docs/opt-in.md)")                                                                                    \
    X(NOT_REPORTING, "not_reporting",                                                                        \
      "occtrace is in the process and reports to its user's own daemon, which this one cannot see, or to "   \
      "none",                                                                                                \
      "its user's occq runs has the run, or the reason; if it is missing, no daemon took it: start one, "    \
      "and "                                                                                                 \
      "in a container mount its socket")                                                                     \
    X(NOT_RECORDING, "not_recording", "occtrace is in the process, but records nothing",                     \
      "occq runs has the reason; if the run is missing, no daemon took it: start one, and in a container "   \
      "mount its socket")                                                                                    \
    X(UNKNOWN, "unknown",                                                                                    \
      "the daemon cannot read the process, or sees another pid namespace than the driver",                   \
      "give the daemon CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, in a pod also hostPID")

#define OCC_COVERAGE_ENUMERATOR(name, word, meaning, remedy) OCC_COVERAGE_##name,
enum occ_coverage_reason { OCC_COVERAGE_REASONS(OCC_COVERAGE_ENUMERATOR) OCC_COVERAGE_REASON_COUNT };
