/* See coverage.h. */
#include "coverage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/process.h"
#include "support/text.h"

#define INTERVAL_NS INT64_C(10000000000)
#define PATIENCE_S  1
#define JUDGED_NS   INT64_C(60000000000)
/* a process of NVIDIA that serves other processes; its clients have entries of their own */
#define MPS_SERVER "nvidia-cuda-mps"

struct occ_coverage {
    char root[4096], socket[OCC_EVIDENCE_SOCKET_BYTES], nvml_path[4096];
    int64_t interval_ns, daemon_start_boot_ns;
    int64_t next_ns; /* used by the loop only; monotonic time of the next scan */

    pthread_mutex_t mutex; /* guards the following members */
    pthread_cond_t ended;  /* a scan has ended */
    bool is_scanning, is_abandoned;
    struct occ_coverage_table *table;

    /* written by the thread while is_scanning, else by the loop */
    struct occ_coverage_table *next;
    struct occ_coverage_program *programs;
    size_t n_programs;
    struct occ_gpu_lister *lister; /* NULL: NVML is not initialised */
    struct occ_gpu_processes processes;
};

static void destroy(struct occ_coverage *c)
{
    occ_gpu_lister_close(c->lister);
    (void)pthread_cond_destroy(&c->ended);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c->table);
    free(c->next);
    free(c->programs);
    free(c);
}

int occ_coverage_new(const struct occ_coverage_options *options, struct occ_coverage **ret_coverage,
                     struct occ_error *err)
{
    struct occ_coverage *c = calloc(1, sizeof *c);
    if (!c)
        return occ_no_memory(err);
    (void)pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)snprintf(c->root, sizeof c->root, "%s", options->root ? options->root : "");
    (void)snprintf(c->socket, sizeof c->socket, "%s", options->socket);
    (void)snprintf(c->nvml_path, sizeof c->nvml_path, "%s", options->nvml_path ? options->nvml_path : "");
    c->interval_ns = options->interval_ns ? options->interval_ns : INTERVAL_NS;
    c->daemon_start_boot_ns = occ_process_start_boot_ns("", getpid());
    c->table = calloc(1, sizeof *c->table);
    c->next = calloc(1, sizeof *c->next);
    if (!c->table || !c->next) {
        destroy(c);
        return occ_no_memory(err);
    }
    *ret_coverage = c;
    return 0;
}

void occ_coverage_free(struct occ_coverage *coverage)
{
    struct timespec until;
    int waited = 0;
    if (!coverage)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&coverage->mutex);
    while (coverage->is_scanning && waited == 0)
        waited = pthread_cond_timedwait(&coverage->ended, &coverage->mutex, &until);
    bool is_scanning = coverage->is_scanning;
    coverage->is_abandoned = true;
    (void)pthread_mutex_unlock(&coverage->mutex);
    if (!is_scanning)
        destroy(coverage);
}

/* ---- the thread of a scan ---- */

static const struct occ_coverage_program *find_program(const struct occ_coverage *c, int32_t pid,
                                                       int64_t start_boot_ns)
{
    for (size_t i = 0; i < c->n_programs; i++)
        if (c->programs[i].pid == pid &&
            (c->programs[i].start_boot_ns == start_boot_ns || c->programs[i].start_boot_ns < 0))
            return &c->programs[i];
    return NULL;
}

/* Reading the mappings of a large process takes milliseconds: an earlier reason of a process that does not
 * report is used again for a while. */
static bool reuse_reason(const struct occ_coverage *c, struct occ_coverage_row *row, int64_t now_ns)
{
    const struct occ_coverage_row *before = occ_coverage_table_find(c->table, row->pid, row->start_boot_ns);
    if (!before || !before->has_identity || before->reason == OCC_COVERAGE_RECORDED ||
        now_ns - before->judged_ns >= JUDGED_NS)
        return false;
    row->reason = before->reason;
    row->judged_ns = before->judged_ns;
    return true;
}

static void judge(const struct occ_coverage *c, struct occ_coverage_row *row, int64_t now_ns)
{
    struct occ_evidence evidence;
    occ_evidence_identify(c->root, row->pid, &evidence);
    row->start_boot_ns = evidence.start_boot_ns;
    const struct occ_coverage_program *program = find_program(c, row->pid, evidence.start_boot_ns);
    const struct occ_evidence_view view = {.daemon_start_boot_ns = c->daemon_start_boot_ns,
                                           .socket = c->socket,
                                           .is_reporting = program != NULL,
                                           .is_quiet = program && program->is_quiet};
    bool is_recorded = program && !program->is_quiet;
    bool is_reused = evidence.exists && !program && reuse_reason(c, row, now_ns);
    if (!is_recorded && !is_reused)
        occ_evidence_read(c->root, row->pid, &evidence);
    row->has_identity = evidence.exists;
    row->uid = evidence.uid;
    memcpy(row->name, evidence.name, sizeof row->name);
    if (is_reused)
        return;
    row->reason = occ_evidence_judge(&evidence, &view);
    row->judged_ns = now_ns;
}

static void fill_rows(struct occ_coverage *c, int64_t now_ns)
{
    struct occ_coverage_table *next = c->next;
    const struct occ_gpu_processes *p = &c->processes;
    next->dropped = p->dropped;
    next->n_refused = p->n_refused;
    for (size_t i = 0; i < p->n; i++) {
        struct occ_coverage_row *row = &next->rows[next->n];
        *row = (struct occ_coverage_row){.pid = p->rows[i].pid};
        memcpy(row->gpu, p->rows[i].gpu, sizeof row->gpu);
        judge(c, row, now_ns);
        next->n += strncmp(row->name, MPS_SERVER, sizeof MPS_SERVER - 1) != 0;
    }
}

static bool is_listed(const struct occ_gpu_processes *processes, int32_t pid)
{
    for (size_t i = 0; i < processes->n; i++)
        if (processes->rows[i].pid == pid)
            return true;
    return false;
}

/* Adds rows for programs with launches that are missing in NVML's list, unless the program has ended. */
static void fill_unlisted(struct occ_coverage *c, int64_t now_ns)
{
    struct occ_coverage_table *next = c->next;
    for (size_t i = 0; i < c->n_programs; i++) {
        const struct occ_coverage_program *program = &c->programs[i];
        if (!program->has_launches || is_listed(&c->processes, program->pid))
            continue;
        if (next->n == OCC_GPU_PROCESSES_MAX) {
            next->dropped += c->processes.dropped == 0; /* otherwise it may be among these processes */
            continue;
        }
        struct occ_coverage_row *row = &next->rows[next->n];
        *row = (struct occ_coverage_row){.pid = program->pid};
        judge(c, row, now_ns);
        next->n += row->has_identity && row->reason == OCC_COVERAGE_RECORDED;
    }
}

/* The loop reads the current table only, so its members need no mutex here. */
static void scan(struct occ_coverage *c)
{
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    struct occ_coverage_table *next = c->next;
    if (!c->lister)
        status = occ_gpu_lister_open(c->nvml_path[0] ? c->nvml_path : NULL, &c->lister, &err);
    if (status == 0)
        status = occ_gpu_lister_list(c->lister, &c->processes, &err);
    int64_t now_ns = occ_monotonic_ns();
    next->n = 0;
    next->problem[0] = '\0';
    if (status == 0) {
        fill_rows(c, now_ns);
        fill_unlisted(c, now_ns);
        occ_coverage_table_advance(next, c->table, now_ns);
    } else {
        next->scanned_ns = 0;
        next->dropped = next->n_refused = 0;
        memcpy(next->held_s, c->table->held_s, sizeof next->held_s);
        (void)snprintf(next->problem, sizeof next->problem, "%s", err.message);
        occ_text_sanitise(next->problem);
        occ_gpu_lister_close(c->lister); /* the driver may have been replaced */
        c->lister = NULL;
    }
    next->scans = c->table->scans + 1;
}

static void *run_scan(void *coverage)
{
    struct occ_coverage *c = coverage;
    scan(c);
    (void)pthread_mutex_lock(&c->mutex);
    struct occ_coverage_table *table = c->table;
    c->table = c->next;
    c->next = table;
    c->is_scanning = false;
    bool is_abandoned = c->is_abandoned;
    (void)pthread_cond_signal(&c->ended);
    (void)pthread_mutex_unlock(&c->mutex);
    if (is_abandoned)
        destroy(c);
    return NULL;
}

/* ---- the loop ---- */

bool occ_coverage_is_scanning(struct occ_coverage *coverage)
{
    (void)pthread_mutex_lock(&coverage->mutex);
    bool is_scanning = coverage->is_scanning;
    (void)pthread_mutex_unlock(&coverage->mutex);
    return is_scanning;
}

bool occ_coverage_is_due(struct occ_coverage *coverage, int64_t now_ns)
{
    return now_ns >= coverage->next_ns && !occ_coverage_is_scanning(coverage);
}

void occ_coverage_scan(struct occ_coverage *coverage, const struct occ_coverage_program *programs, size_t n,
                       int64_t now_ns)
{
    struct occ_coverage *c = coverage;
    pthread_t thread;
    if (!occ_coverage_is_due(c, now_ns))
        return;
    struct occ_coverage_program *copy = malloc((n + 1) * sizeof *copy);
    if (!copy)
        return;
    if (n > 0)
        memcpy(copy, programs, n * sizeof *copy);
    free(c->programs);
    c->programs = copy;
    c->n_programs = n;
    c->next_ns = now_ns + c->interval_ns;
    c->is_scanning = true; /* no thread runs: the mutex is not needed */
    if (pthread_create(&thread, NULL, run_scan, c) != 0)
        c->is_scanning = false;
    else
        (void)pthread_detach(thread);
}

const struct occ_coverage_table *occ_coverage_borrow(struct occ_coverage *coverage)
{
    (void)pthread_mutex_lock(&coverage->mutex);
    return coverage->table;
}

void occ_coverage_return(struct occ_coverage *coverage)
{
    (void)pthread_mutex_unlock(&coverage->mutex);
}
