/*
 * Chrome-trace JSON of the PyTorch profiler (Kineto): {"traceEvents": [...], "deviceProperties": [...], ...}
 * in any order, or only the array of events.
 *
 * Times are microseconds with a decimal fraction. They count from baseTimeNanoseconds if the file has this
 * key; it may come after the events, so the shift is added when the recording is loaded. A file that
 * describes its devices after its kernels is read twice.
 *
 * One thread.
 */
#include "kineto_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define GZIP_BUFFER_BYTES (128u * 1024u)

/* Times outside 2000-01-01 to 2100-01-01 are not taken as time of day. */
#define EPOCH_FROM_NS INT64_C(946684800000000000)
#define EPOCH_TO_NS   INT64_C(4102444800000000000)

#define MISSING_FIELDS                                                                                       \
    "the split of shared memory into static and dynamic, the driver's shared-memory carve-out, cluster "     \
    "size, local memory, launch type"

/* Kernels that start longer before 0 are damage; else their times would move all others out of range. */
#define EARLIEST_NS INT64_C(-31536000000000000) /* a year */

/* Returns the shift by which times without an epoch begin at 1 ns if the first is earlier: the history has no
 * launch at 0 or before. */
static int64_t shift_early(int64_t shift_ns, int64_t first_ns)
{
    int64_t moved_ns = 0;
    bool is_early = first_ns < 1 && first_ns >= EARLIEST_NS;
    return is_early && !__builtin_add_overflow(shift_ns, 1 - first_ns, &moved_ns) ? moved_ns : shift_ns;
}

static void finish(struct occ_kineto *k)
{
    int64_t shift_ns = occ_kineto_get(k, BASE_TIME), first_ns = 0, rank = occ_kineto_get(k, RANK);
    bool has_first = k->first_ns != INT64_MAX && !__builtin_add_overflow(k->first_ns, shift_ns, &first_ns);
    bool known = has_first && first_ns >= EPOCH_FROM_NS && first_ns < EPOCH_TO_NS;
    struct occ_import_recording recording = {
        .missing_fields = MISSING_FIELDS,
        .pid = !k->several_pids && k->pid > 0 && k->pid <= INT32_MAX ? (int32_t)k->pid : 0,
        .rank = occ_kineto_has(k, RANK) && rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1,
        .time_base_unknown = !known,
        .shift_ns = has_first && !known ? shift_early(shift_ns, first_ns) : shift_ns,
    };
    if (occ_kineto_has(k, SCHEMA))
        (void)snprintf(recording.tool_version, sizeof recording.tool_version, "schema %lld",
                       (long long)k->values[SCHEMA]);
    occ_import_sink_recording(k->sink, &recording);
}

static int check_devices(const struct occ_kineto *k)
{
    if (k->kernels == 0)
        return occ_fail(k->err, OCC_E_INVALID, "no kernel in it: was it recorded with CUDA activities?");
    bool is_last = !k->only_metadata || !k->described;
    if (k->maker && is_last && occ_import_sink_is_empty(k->sink))
        return occ_fail(
            k->err, OCC_E_INVALID,
            "recorded on a GPU of %s (%s in the file): occtrace models the SMs of NVIDIA GPUs only, "
            "and such a trace has no registers per thread",
            k->maker, k->maker_sign);
    if (k->only_metadata && !k->described && !occ_import_sink_named_gpu(k->sink))
        return occ_fail(k->err, OCC_E_INVALID,
                        "the file does not describe its GPU (no deviceProperties): name it with --gpu NAME");
    return 0;
}

static int run_pass(struct occ_kineto *k, struct occ_kineto_input *input)
{
    k->only_metadata = false;
    k->known = k->bad = 0;
    k->first_ns = INT64_MAX;
    k->kernels = 0;
    int status = occ_kineto_parse(k, input);
    return status == 0 ? check_devices(k) : status;
}

int occ_kineto_read(struct occ_kineto_input *input, struct occ_import_sink *sink, struct occ_error *err)
{
    struct occ_kineto *k = calloc(1, sizeof *k);
    if (!k)
        return occ_no_memory(err);
    k->sink = sink;
    k->err = err;
    int status = run_pass(k, input);
    if (status == 0 && k->only_metadata) {
        k->second = true;
        status = input->rewind(input, err);
        if (status == 0)
            status = occ_import_sink_restart_ranges(sink, err);
        if (status == 0)
            status = run_pass(k, input);
    }
    if (status == 0)
        finish(k);
    free(k->name);
    free(k);
    return status;
}

/* ---- files ---- */

struct file_input {
    struct occ_kineto_input input;
    gzFile file;
};

static int file_read(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                     struct occ_error *err)
{
    struct file_input *f = (struct file_input *)input;
    int n = gzread(f->file, data, (unsigned)size), code = Z_OK;
    const char *message = gzerror(f->file, &code);
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        return code == Z_ERRNO ? occ_fail_errno(err, errno, "cannot read")
                               : occ_fail(err, OCC_E_CORRUPT, "byte %lld of the gzip file: damaged: %s",
                                          (long long)gzoffset(f->file), message);
    input->done = (uint64_t)gzoffset(f->file);
    *ret_n = (size_t)n;
    return 0;
}

static int file_rewind(struct occ_kineto_input *input, struct occ_error *err)
{
    struct file_input *f = (struct file_input *)input;
    return gzrewind(f->file) == 0 ? 0 : occ_fail(err, OCC_E_IO, "cannot read it twice");
}

static int read_file(const char *path, bool repairs, struct occ_import_sink *sink, struct occ_error *err)
{
    struct file_input f = {.input = {.read = file_read, .rewind = file_rewind}};
    struct stat status;
    f.file = gzopen(path, "rbe");
    if (!f.file)
        return occ_fail_errno(err, errno, "%s", path);
    (void)gzbuffer(f.file, GZIP_BUFFER_BYTES);
    if (stat(path, &status) == 0)
        f.input.total = (uint64_t)status.st_size;
    struct occ_repair repair = occ_repair(&f.input);
    int failed = occ_kineto_read(repairs ? &repair.input : &f.input, sink, err);
    (void)gzclose_r(f.file);
    return failed == 0 ? 0 : occ_error_prefix(err, "%s", path);
}

int occ_import_read_kineto(const char *path, struct occ_import_sink *sink, struct occ_error *err)
{
    return read_file(path, false, sink, err);
}

int occ_import_repair_kineto(const char *path, struct occ_import_sink *sink, struct occ_error *err)
{
    return read_file(path, true, sink, err);
}
