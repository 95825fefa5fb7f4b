/* See resource.h. */
#include "resource.h"

#include <sqlite3.h>
#include <stdio.h>

#include "sums.h"

void occ_otlp_put_unsigned(struct occ_json *json, const char *key, uint64_t number)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    occ_json_string(json, key, digits);
}

void occ_otlp_put_attribute(struct occ_json *json, const char *key, const char *value)
{
    if (!value || value[0] == '\0')
        return;
    occ_json_object(json, NULL, true);
    occ_json_string(json, "key", key);
    occ_json_object(json, "value", true);
    occ_json_string(json, "stringValue", value);
    occ_json_close(json);
    occ_json_close(json);
}

/* Names of OCC_OTLP_JOB_COLUMNS. */
static const char *const job_attributes[] = {"slurm.job.id", "k8s.namespace.name", "k8s.pod.name",
                                             "k8s.pod.uid",  "container.id",       "occtrace.job.trust"};

static const char *text(sqlite3_stmt *stmt, int i)
{
    const char *found = stmt ? (const char *)sqlite3_column_text(stmt, i) : NULL;
    return found ? found : "";
}

/* Resources differ in service.instance.id, since receivers may keep no other attribute with a series
 * (Prometheus). */
void occ_otlp_begin_resource(struct occ_json *json, const struct occ_otlp_origin *origin, sqlite3_stmt *job)
{
    char instance[2 * OCC_SUMS_TEXT_BYTES + 256];
    (void)snprintf(instance, sizeof instance, "%s%s%s", origin->node, job ? "/" : "", text(job, 0));
    occ_json_object(json, NULL, false);
    occ_json_object(json, "resource", false);
    occ_json_array(json, "attributes", false);
    occ_otlp_put_attribute(json, "service.name", "occtrace");
    occ_otlp_put_attribute(json, "service.version", origin->version);
    occ_otlp_put_attribute(json, "service.instance.id", instance);
    occ_otlp_put_attribute(json, "host.name", origin->node);
    occ_otlp_put_attribute(json, "k8s.node.name", origin->is_kubernetes ? origin->node : "");
    occ_otlp_put_attribute(json, "occtrace.cluster", origin->cluster);
    occ_otlp_put_attribute(json, "occtrace.job", text(job, 0));
    for (size_t i = 0; i < sizeof job_attributes / sizeof *job_attributes; i++)
        occ_otlp_put_attribute(json, job_attributes[i], text(job, (int)i + 1));
    occ_json_close(json);
    occ_json_close(json);
    occ_json_string(json, "schemaUrl", OCC_OTLP_SCHEMA);
}

void occ_otlp_put_scope(struct occ_json *json, const struct occ_otlp_origin *origin)
{
    occ_json_object(json, "scope", true);
    occ_json_string(json, "name", "occtrace");
    occ_json_string(json, "version", origin->version);
    occ_json_close(json);
}
