/* Samples of GPUs as counters; see timeline_parts.h. */
#include "timeline_parts.h"

/* X(title, column of device_sample) */
#define COUNTERS(X)                   X("occupancy (elapsed), %", "elapsed") X("SMs active, %", "sm_active")
#define COUNTER_SELECT(title, column) ", " column
#define COUNTER_INIT(title, column)   {{.name = title}, {.name = "no " title}, 0},

struct counter {
    struct export_track track, holes;
    int64_t end_ns; /* the value is known until then; 0: no value yet */
};

static void begin_counter(struct timeline *t, struct export_track *track, enum export_track_kind kind,
                          uint32_t gpu)
{
    if (track->id)
        return;
    track->kind = kind;
    track->gpu = gpu;
    track->id = timeline_add_track(t, *track);
}

/* Adds a sample. Viewers hold a value until the next one, so a 0 and a slice follow where the value is
 * unknown. */
static void add_sample(struct timeline *t, struct counter *c, uint32_t gpu, int64_t start_ns, int64_t end_ns,
                       double ratio)
{
    begin_counter(t, &c->track, EXPORT_COUNTER, gpu);
    if (c->end_ns && start_ns > c->end_ns) {
        begin_counter(t, &c->holes, EXPORT_HOLES, gpu);
        t->format->add_value(&t->writer, &c->track, c->end_ns, 0);
        t->format->add_hole(&t->writer, &c->holes, c->end_ns, start_ns);
    }
    t->format->add_value(&t->writer, &c->track, start_ns, 100 * ratio);
    c->end_ns = end_ns;
}

static int add_samples(struct timeline *t, sqlite3_stmt *s, uint32_t gpu, struct occ_error *err)
{
    struct counter counters[] = {COUNTERS(COUNTER_INIT)};
    int step;
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t start = sqlite3_column_int64(s, 0), end = sqlite3_column_int64(s, 1);
        start = start > t->writer.base_ns ? start : t->writer.base_ns;
        for (int i = 0; i < (int)(sizeof counters / sizeof *counters); i++)
            if (sqlite3_column_type(s, 2 + i) != SQLITE_NULL)
                add_sample(t, &counters[i], gpu, start, end, sqlite3_column_double(s, 2 + i));
    }
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (counters[i].end_ns)
            t->format->add_value(&t->writer, &counters[i].track, counters[i].end_ns, 0);
    return step == SQLITE_DONE ? 0 : timeline_sql_failed(t, err);
}

int timeline_add_samples(struct timeline *t, struct occ_error *err)
{
    sqlite3_stmt *s = NULL;
    int status =
        timeline_prepare(t,
                         "SELECT start_ns, end_ns" COUNTERS(
                             COUNTER_SELECT) " FROM device_sample WHERE device_id = ?1 AND start_ns >= ?2 - "
                                             "1000000000 AND end_ns > ?2 AND start_ns < ?3 ORDER BY start_ns",
                         &s, err);
    for (size_t i = 0; i < t->n_devices && status == 0; i++) {
        (void)sqlite3_reset(s);
        (void)sqlite3_bind_int64(s, 1, t->devices[i].id);
        (void)sqlite3_bind_int64(s, 2, t->writer.base_ns);
        (void)sqlite3_bind_int64(s, 3, t->end_ns);
        status = add_samples(t, s, t->devices[i].track, err);
    }
    (void)sqlite3_finalize(s);
    return status;
}
