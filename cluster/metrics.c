/* See metrics.h. */
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/text.h"

#define MODE 0644

/* TIME: seconds since 1970; 0 has no series. Rows with the same name must be adjacent. */
enum kind { COUNTER, GAUGE, MILLISECONDS, MICROSECONDS, TIME };
static const double units[] = {
    [COUNTER] = 1, [GAUGE] = 1, [MILLISECONDS] = 1e3, [MICROSECONDS] = 1e6, [TIME] = 1};

static const struct metric {
    const char *name, *reason; /* label "reason", or NULL */
    size_t offset;             /* offset in struct occ_ship_counters */
    enum kind kind;
    const char *help;
} metrics[] = {
#define AT(member) offsetof(struct occ_ship_counters, member)
#define FAILURE(member, reason)                                                                              \
    {                                                                                                        \
        "failures_total", reason, AT(member), COUNTER, "Passes that failed, by reason"                       \
    }
    {"batches_total", NULL, AT(batches), COUNTER, "Batches that the warehouse has confirmed"},
    {"rows_total", NULL, AT(rows), COUNTER, "Rows that the warehouse has confirmed"},
    {"sent_bytes_total", NULL, AT(wire_bytes), COUNTER,
     "Compressed bytes of request bodies, also of failed requests"},
    FAILURE(failures_network, "network"),
    FAILURE(failures_server, "server"),
    FAILURE(failures_denied, "denied"),
    FAILURE(failures_schema, "schema"),
    FAILURE(failures_local, "local"),
    {"lost_changes_total", NULL, AT(lost), COUNTER, "Minutes of runs that their history evicted unsent"},
    {"unsent_launches_total", NULL, AT(unsent_launches), COUNTER,
     "Launches of jobs in ship.raw_jobs above ship.raw_launches, or evicted before"},
    {"unreadable_histories", NULL, AT(unreadable), GAUGE, "Histories that the last pass could not read"},
    {"pending_changes", NULL, AT(pending), GAUGE, "Changed minutes of runs that are not in the warehouse"},
    {"oldest_unsent_timestamp_seconds", NULL, AT(oldest_unsent_s), TIME,
     "The oldest minute with such a change; no series: there is none"},
    {"watermark_timestamp_seconds", NULL, AT(complete_until_s), TIME,
     "All minutes of the node before it are in the warehouse"},
    {"last_success_timestamp_seconds", NULL, AT(last_success_s), TIME, "When the last pass succeeded"},
    {"clock_offset_seconds", NULL, AT(clock_offset_ms), MILLISECONDS,
     "The node's clock minus the warehouse's"},
    {"last_pass_seconds", NULL, AT(pass_us), MICROSECONDS, "How long the last pass took"},
    {"last_pass_cpu_seconds", NULL, AT(pass_cpu_us), MICROSECONDS, "CPU time of the last pass"},
};

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        (void)fprintf(out, "%s%c", *text == '\\' || *text == '"' ? "\\" : "", *text);
}

static void put_metric(FILE *out, const struct metric *m, bool is_first, const char *node,
                       const struct occ_ship_counters *counters)
{
    int64_t value = *(const int64_t *)((const char *)counters + m->offset);
    if (is_first)
        (void)fprintf(out, "# HELP occtrace_ship_%s %s\n# TYPE occtrace_ship_%s %s\n", m->name, m->help,
                      m->name, m->kind == COUNTER ? "counter" : "gauge");
    if (m->kind == TIME && value == 0)
        return;
    (void)fprintf(out, "occtrace_ship_%s{hostname=\"", m->name);
    put_text(out, node);
    if (m->reason)
        (void)fprintf(out, "\",reason=\"%s", m->reason);
    (void)fprintf(out, "\"} %.15g\n", (double)value / units[m->kind]);
}

/* Closes `fd`. */
static int write_all(int fd, const char *node, const struct occ_ship_counters *counters)
{
    FILE *out = fdopen(fd, "w");
    if (!out) {
        (void)close(fd);
        return -1;
    }
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        put_metric(out, &metrics[i], i == 0 || strcmp(metrics[i].name, metrics[i - 1].name) != 0, node,
                   counters);
    bool failed = ferror(out) || fchmod(fd, MODE) != 0;
    return fclose(out) != 0 || failed ? -1 : 0;
}

int occ_ship_metrics_write(const char *path, const char *node, const struct occ_ship_counters *counters,
                           struct occ_error *err)
{
    _cleanup_(occ_freep) char *temporary = NULL;
    if (path[0] == '\0')
        return 0;
    int rc = occ_format_text(&temporary, err, "%s.new", path);
    if (rc != 0)
        return rc;
    (void)unlink(temporary); /* left by a shipper that was killed */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
    if (fd < 0 || write_all(fd, node, counters) != 0 || rename(temporary, path) != 0) {
        rc = occ_fail_errno(err, errno, "cannot write the metrics to %s", path);
        (void)unlink(temporary);
    }
    return rc;
}
