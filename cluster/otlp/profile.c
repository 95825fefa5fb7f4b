/* See profile.h. */
#include "profile.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dictionary.h"
#include "support/cleanup.h"

#define MINUTE_NS UINT64_C(60000000000)
#define UNIT      "nanoseconds"

/* Parts of a stack's GPU time, in the order of the columns of read_stacks, and their frames. */
#define CAUSE_PART(NAME, id, text) {text, true},
static const struct part {
    const char *frame;
    bool is_lost;
} parts[] = {{"(used)", false}, {"(not analysed)", false}, OCC_CAUSES(CAUSE_PART)};
enum { N_PARTS = sizeof parts / sizeof *parts };

#define CAUSE_COLUMN(NAME, id, text) ", s." id
static const char read_stacks[] =
    "SELECT s.path, s.kernel, s.gpu, g.model, s.is_simulated, s.used, s.unknown" OCC_CAUSES(
        CAUSE_COLUMN) " FROM stack s LEFT JOIN gpu g USING(gpu) WHERE s.job = ?1 AND s.ns > 0 ORDER BY s.ns "
                      "DESC, s.rowid";
enum { PATH, KERNEL, GPU, MODEL, IS_SIMULATED, FIRST_PART };

static const char read_jobs[] =
    "SELECT s.job, " OCC_OTLP_JOB_COLUMNS ", s.first_minute, s.last_minute, s.lost FROM (SELECT job, "
    "min(first_minute) AS first_minute, max(last_minute) AS last_minute, total(ns - used - unknown) AS lost "
    "FROM stack WHERE ns > 0 GROUP BY job) s LEFT JOIN job j USING(job) ORDER BY s.job";
enum { JOB, FIRST_MINUTE = 7, LAST_MINUTE, LOST };

struct profile {
    struct occ_json json;
    struct occ_sums *sums;
    const struct occ_otlp_origin *origin;
    struct occ_dictionary *dictionary;
};

static const char *text(sqlite3_stmt *stmt, int i)
{
    const char *found = (const char *)sqlite3_column_text(stmt, i);
    return found ? found : "";
}

/* ---- samples ---- */

/* Writes the locations of a stack's layers, the outermost last, from `locations` on. Returns their number. */
static size_t put_layers(struct profile *p, const char *path, uint32_t *locations, size_t max)
{
    size_t n = 0;
    for (const char *at = path; *at; at += *at == '/') {
        size_t length = n + 1 < max ? strcspn(at, "/") : strlen(at);
        if (length > 0)
            locations[n++] = occ_dictionary_location(p->dictionary, at, length);
        at += length;
    }
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t other = locations[i];
        locations[i] = locations[n - 1 - i];
        locations[n - 1 - i] = other;
    }
    return n;
}

static uint32_t put_name(struct profile *p, const char *name)
{
    name = name[0] ? name : "?";
    return occ_dictionary_location(p->dictionary, name, strlen(name));
}

/* The stack of a row, except for its innermost frame, locations[0]. */
static size_t put_frames(struct profile *p, sqlite3_stmt *row, uint32_t locations[OCC_DICTIONARY_FRAMES_MAX])
{
    locations[1] = put_name(p, text(row, KERNEL));
    return 2 + put_layers(p, text(row, PATH), locations + 2, OCC_DICTIONARY_FRAMES_MAX - 2);
}

static size_t put_attributes(struct profile *p, sqlite3_stmt *row, uint32_t attributes[3])
{
    const char *const pairs[][2] = {
        {"cuda.device.uuid", text(row, GPU)},
        {"cuda.device.model", text(row, MODEL)},
        {"occtrace.simulated", sqlite3_column_int(row, IS_SIMULATED) ? "true" : ""}};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        if (pairs[i][1][0])
            attributes[n++] = occ_dictionary_attribute(p->dictionary, pairs[i][0], pairs[i][1]);
    return n;
}

static void put_sample(struct occ_json *json, uint32_t stack, const uint32_t *attributes, size_t n, double ns)
{
    occ_json_object(json, NULL, true);
    occ_json_unsigned(json, "stackIndex", stack);
    occ_json_array(json, "attributeIndices", true);
    for (size_t i = 0; i < n; i++)
        occ_json_unsigned(json, NULL, attributes[i]);
    occ_json_close(json);
    occ_json_array(json, "values", true);
    occ_otlp_put_unsigned(json, NULL, (uint64_t)fmin(ns, 0x1p62)); /* signed for receivers */
    occ_json_close(json);
    occ_json_close(json);
}

static void put_samples(struct profile *p, sqlite3_stmt *row, bool lost_only)
{
    uint32_t locations[OCC_DICTIONARY_FRAMES_MAX], attributes[3];
    size_t n = put_frames(p, row, locations), n_attributes = put_attributes(p, row, attributes);
    for (int i = 0; i < N_PARTS; i++) {
        double ns = sqlite3_column_double(row, FIRST_PART + i);
        if (!(ns >= 1) || (lost_only && !parts[i].is_lost))
            continue;
        locations[0] = put_name(p, parts[i].frame);
        put_sample(&p->json, occ_dictionary_stack(p->dictionary, locations, n), attributes, n_attributes, ns);
    }
}

/* ---- profiles ---- */

static void put_type(struct profile *p, const char *key, const char *type)
{
    occ_json_object(&p->json, key, true);
    occ_json_unsigned(&p->json, "typeStrindex", occ_dictionary_text(p->dictionary, type));
    occ_json_unsigned(&p->json, "unitStrindex", occ_dictionary_text(p->dictionary, UNIT));
    occ_json_close(&p->json);
}

/* The time from the first to the last minute, in the limits of the format. */
static void put_times(struct occ_json *json, int64_t first, int64_t last)
{
    const int64_t most = INT64_MAX / (int64_t)MINUTE_NS - 1;
    uint64_t from = (uint64_t)(first < 0 ? 0 : first > most ? most : first);
    uint64_t until = (uint64_t)(last < (int64_t)from ? (int64_t)from : last > most ? most : last) + 1;
    occ_otlp_put_unsigned(json, "timeUnixNano", from * MINUTE_NS);
    occ_otlp_put_unsigned(json, "durationNano", (until - from) * MINUTE_NS);
}

/* Period: each nanosecond counts. Receivers name the profile by the type of the period (Pyroscope). */
static int put_profile(struct profile *p, sqlite3_stmt *job, const char *type, bool lost_only,
                       struct occ_error *err)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(occ_sums_sqlite(p->sums), read_stacks, -1, &row, NULL);
    occ_json_object(&p->json, NULL, false);
    put_type(p, "sampleType", type);
    occ_json_array(&p->json, "samples", false);
    if (code == SQLITE_OK)
        (void)sqlite3_bind_text(row, 1, text(job, JOB), -1, SQLITE_STATIC);
    while (row && (code = sqlite3_step(row)) == SQLITE_ROW)
        put_samples(p, row, lost_only);
    occ_json_close(&p->json);
    put_times(&p->json, sqlite3_column_int64(job, FIRST_MINUTE), sqlite3_column_int64(job, LAST_MINUTE));
    put_type(p, "periodType", "gpu");
    occ_otlp_put_unsigned(&p->json, "period", 1);
    occ_json_close(&p->json);
    int rc = code == SQLITE_DONE ? 0 : occ_sums_fail(p->sums, err);
    (void)sqlite3_finalize(row);
    return rc;
}

static int put_job(struct profile *p, sqlite3_stmt *job, struct occ_error *err)
{
    struct occ_json *json = &p->json;
    occ_otlp_begin_resource(json, p->origin, job);
    occ_json_array(json, "scopeProfiles", false);
    occ_json_object(json, NULL, false);
    occ_otlp_put_scope(json, p->origin);
    occ_json_array(json, "profiles", false);
    int rc = put_profile(p, job, "gpu_time", false, err);
    if (rc == 0 && sqlite3_column_double(job, LOST) >= 1)
        rc = put_profile(p, job, "lost_time", true, err);
    for (int i = 0; i < 4; i++)
        occ_json_close(json);
    return rc;
}

static int put_jobs(struct profile *p, struct occ_error *err)
{
    sqlite3_stmt *jobs = NULL;
    int rc = 0, code = sqlite3_prepare_v2(occ_sums_sqlite(p->sums), read_jobs, -1, &jobs, NULL);
    occ_json_array(&p->json, "resourceProfiles", false);
    while (jobs && rc == 0 && (code = sqlite3_step(jobs)) == SQLITE_ROW)
        rc = put_job(p, jobs, err);
    occ_json_close(&p->json);
    if (rc == 0 && code != SQLITE_DONE)
        rc = occ_sums_fail(p->sums, err);
    (void)sqlite3_finalize(jobs);
    return rc;
}

int occ_otlp_profile(struct occ_sums *sums, const void *origin, char **ret_text, size_t *ret_n,
                     struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t n = 0;
    struct profile p = {.sums = sums, .origin = origin, .dictionary = occ_dictionary_new()};
    FILE *out = p.dictionary ? open_memstream(&text, &n) : NULL;
    if (!out) {
        occ_dictionary_free(p.dictionary);
        return occ_no_memory(err);
    }
    occ_json_begin(&p.json, out);
    int rc = put_jobs(&p, err);
    occ_dictionary_put(p.dictionary, &p.json);
    occ_json_end(&p.json);
    bool failed = ferror(out) != 0 || occ_dictionary_failed(p.dictionary);
    failed |= fclose(out) != 0;
    occ_dictionary_free(p.dictionary);
    if (rc == 0 && failed)
        rc = occ_no_memory(err);
    if (rc == 0 && n > OCC_OTLP_BODY_MAX)
        rc = occ_fail(err, OCC_E_FULL, "the profiles take %zu bytes, more than a request may have", n);
    if (rc != 0)
        return rc;
    *ret_text = occ_take(text);
    *ret_n = n;
    return 0;
}
