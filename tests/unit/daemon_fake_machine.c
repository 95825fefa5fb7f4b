/* See daemon_fake_machine.h. */
#include "daemon_fake_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fake_machine fake;

static int64_t fake_now_ns(void)
{
    return fake.now_ns;
}

static int64_t fake_monotonic_ns(void)
{
    return fake.monotonic_ns;
}

void fake_machine_advance(int64_t ns)
{
    fake.now_ns += ns;
    fake.monotonic_ns += ns;
}

/* ---- sources ---- */

struct occ_source {
    struct fake_kind *kind;
    struct occ_gpu_found gpu;
    int64_t sampled_ns;
    struct occ_source_stats stats;
};

static enum occ_source_state fail_if(enum occ_source_state state, struct occ_error *err)
{
    if (state != OCC_SOURCE_OK)
        (void)occ_fail(err, OCC_E_IO, "the script says %s", occ_source_state_word(state));
    return state;
}

static enum occ_source_state begin(struct occ_source *source, enum occ_source_slot_number slot,
                                   const struct occ_source_options *options, struct occ_error *err)
{
    struct fake_kind *kind = &fake.kinds[slot];
    *source = (struct occ_source){.kind = kind, .gpu = options->gpu, .sampled_ns = fake.now_ns};
    kind->begins++;
    kind->interval_ns = options->interval_ns;
    kind->keeps_first_set = options->keeps_first_set;
    kind->is_open = kind->begin == OCC_SOURCE_OK;
    return fail_if(kind->begin, err);
}

static enum occ_source_state pm_begin(struct occ_source *source, const struct occ_source_options *options,
                                      struct occ_error *err)
{
    (void)snprintf(fake.offered, sizeof fake.offered, "%s",
                   options->cupti_offered ? options->cupti_offered : "");
    return begin(source, OCC_SLOT_PM, options, err);
}

static enum occ_source_state gpm_begin(struct occ_source *source, const struct occ_source_options *options,
                                       struct occ_error *err)
{
    return begin(source, OCC_SLOT_GPM, options, err);
}

/* Returns a sample with the means of ten moments. */
static struct occ_sample sample_of(const struct occ_source *source, int64_t start_ns, int64_t end_ns)
{
    struct occ_sample sample = {.start_ns = start_ns, .end_ns = end_ns};
    double cycles = (double)(end_ns - start_ns), warps = 0, active = 0;
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample.value[i] = NAN;
    for (int i = 0; i < 10; i++) {
        double occupancy = fake.occupancy ? fake.occupancy(start_ns + (end_ns - start_ns) * i / 10) : 0;
        warps += occupancy / 10;
        active += occupancy > 0 ? 0.1 : 0;
    }
    sample.value[OCC_COUNTER_ELAPSED] = cycles;
    sample.value[OCC_COUNTER_ACTIVE] = active * cycles * source->gpu.sm_count;
    sample.value[OCC_COUNTER_WARPS] = warps * cycles * source->gpu.sm_count * source->gpu.max_warps_per_sm;
    return sample;
}

static enum occ_source_state fake_read(struct occ_source *source, struct occ_sample *samples, size_t max,
                                       size_t *ret_n, struct occ_error *err)
{
    int64_t interval_ns = source->kind->interval_ns, late_ns = source->kind->late_ns;
    source->kind->reads++;
    *ret_n = 0;
    if (source->kind->read != OCC_SOURCE_OK)
        return fail_if(source->kind->read, err);
    while (*ret_n < max && source->sampled_ns + interval_ns <= fake.now_ns) {
        int64_t start_ns = source->sampled_ns + late_ns;
        samples[(*ret_n)++] = sample_of(source, start_ns, start_ns + interval_ns);
        source->sampled_ns += interval_ns;
    }
    source->stats.samples += *ret_n;
    source->stats.rotations += *ret_n;
    source->stats.bytes_per_sample = FAKE_SAMPLE_BYTES;
    return OCC_SOURCE_OK;
}

static enum occ_source_state fake_set_interval(struct occ_source *source, int64_t interval_ns,
                                               struct occ_error *err)
{
    if (source->kind->set_interval != OCC_SOURCE_NOT_SUPPORTED)
        source->kind->interval_ns = interval_ns;
    if (source->kind->interval_ns < source->kind->shortest_ns)
        source->kind->shortest_ns = source->kind->interval_ns;
    return fail_if(source->kind->set_interval, err);
}

static void fake_get_stats(const struct occ_source *source, struct occ_source_stats *ret_stats)
{
    *ret_stats = source->stats;
    ret_stats->failed_changes = source->kind->failed_changes;
}

static const char *fake_get_note(const struct occ_source *source)
{
    return source->kind->note ? source->kind->note : "";
}

static void fake_close(struct occ_source *source)
{
    if (!source)
        return;
    source->kind->closes++;
    source->kind->is_open = false;
    free(source);
}

static const struct occ_source_kind pm = {"pm",
                                          sizeof(struct occ_source),
                                          pm_begin,
                                          fake_read,
                                          fake_set_interval,
                                          fake_get_stats,
                                          fake_get_note,
                                          fake_close};
static const struct occ_source_kind gpm = {"gpm",
                                           sizeof(struct occ_source),
                                           gpm_begin,
                                           fake_read,
                                           fake_set_interval,
                                           fake_get_stats,
                                           fake_get_note,
                                           fake_close};

/* ---- GPUs ---- */

static enum occ_source_state find_gpus(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                       struct occ_error *err)
{
    fake.searches++;
    *ret_n = fake.n_gpus < max ? fake.n_gpus : max;
    memcpy(gpus, fake.gpus, *ret_n * sizeof *gpus);
    return fail_if(fake.gpu_state, err);
}

/* ---- energy ---- */

static struct occ_energy_counter *open_energy(const uint8_t uuid[16])
{
    return fake.watts[uuid[1]] ? (struct occ_energy_counter *)&fake.watts[uuid[1]] : NULL;
}

static bool read_energy(struct occ_energy_counter *counter, uint64_t *ret_mj)
{
    fake.energy_reads++;
    *ret_mj = (uint64_t)(*(int64_t *)counter * (fake.monotonic_ns / FAKE_MS));
    return true;
}

static void close_energy(struct occ_energy_counter *counter)
{
    (void)counter;
}

static const struct occ_energy_kind fake_energy = {open_energy, read_energy, close_energy};

/* ---- /proc ---- */

static void process_path(char path[128], unsigned pid, const char *name)
{
    (void)snprintf(path, 128, "%s/%u%s", fake.proc, pid, name);
}

void fake_machine_process(unsigned pid, const char *comm)
{
    char path[128];
    if (!comm) {
        process_path(path, pid, "/comm");
        (void)remove(path);
        process_path(path, pid, "/exe");
        (void)remove(path);
        process_path(path, pid, "");
        (void)remove(path);
        return;
    }
    process_path(path, pid, "");
    (void)mkdir(path, 0700);
    process_path(path, pid, "/exe");
    if (symlink("/usr/bin/program", path) != 0)
        abort();
    process_path(path, pid, "/comm");
    FILE *f = fopen(path, "we");
    if (!f || fprintf(f, "%s\n", comm) < 0 || fclose(f) != 0)
        abort();
}

void fake_machine_reset(void)
{
    fake_machine_remove();
    fake = (struct fake_machine){.now_ns = 1700000000 * FAKE_SECOND,
                                 .monotonic_ns = 1000 * FAKE_SECOND,
                                 .n_gpus = 2,
                                 .proc = "/tmp/occtrace_fake_proc_XXXXXX"};
    for (unsigned i = 0; i < OCC_SOURCE_SLOTS; i++)
        fake.kinds[i].shortest_ns = INT64_MAX;
    for (unsigned i = 0; i < 2; i++)
        fake.gpus[i] = (struct occ_gpu_found){.ordinal = i,
                                              .uuid = {0xab, (uint8_t)i},
                                              .sm_count = 100,
                                              .max_warps_per_sm = 64,
                                              .warp_size = 32,
                                              .cc_major = 9,
                                              .name = "Fake GPU"};
    if (!mkdtemp(fake.proc))
        abort();
    fake.machine = (struct occ_sampler_machine){.now_ns = fake_now_ns,
                                                .monotonic_ns = fake_monotonic_ns,
                                                .kinds = {[OCC_SLOT_PM] = &pm, [OCC_SLOT_GPM] = &gpm},
                                                .find_gpus = find_gpus,
                                                .energy = &fake_energy,
                                                .proc = fake.proc};
    fake_machine_process(1, "systemd");
}

void fake_machine_remove(void)
{
    if (!fake.proc[0])
        return;
    for (unsigned pid = 1; pid < 10; pid++)
        fake_machine_process(pid, NULL);
    (void)rmdir(fake.proc);
    fake.proc[0] = '\0';
}
