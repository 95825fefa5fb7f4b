/*
 * Parts of documents that metrics and profiles share: attributes, and the resource of the node or of a job.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "support/json.h"

struct sqlite3_stmt;

/* Attributes of every resource; "": unknown. */
struct occ_otlp_origin {
    const char *node, *cluster, *version;
    bool is_kubernetes; /* `node` is a node of Kubernetes */
};

/* The largest request: far above the bounds of the contents, and an eighth of the specification's limit. */
#define OCC_OTLP_BODY_MAX (8u << 20)
#define OCC_OTLP_SCHEMA   "https://opentelemetry.io/schemas/1.44.0"

/* Writes a number as a text, because JSON's numbers do not hold all integers of 64 bits. */
void occ_otlp_put_unsigned(struct occ_json *json, const char *key, uint64_t number);
/* Writes an attribute with a text; none if the text is empty or NULL. */
void occ_otlp_put_attribute(struct occ_json *json, const char *key, const char *value);

/* Columns that a statement about jobs has after the job's name, from the table `job` as j. */
#define OCC_OTLP_JOB_COLUMNS "j.slurm_job, j.k8s_namespace, j.k8s_pod, j.k8s_pod_uid, j.container, j.trust"
/* Opens an object with the members resource and schemaUrl. job: a row with the job's name and
 * OCC_OTLP_JOB_COLUMNS; NULL: the node itself. */
void occ_otlp_begin_resource(struct occ_json *json, const struct occ_otlp_origin *origin,
                             struct sqlite3_stmt *job);
/* Writes the member "scope" of the open object. */
void occ_otlp_put_scope(struct occ_json *json, const struct occ_otlp_origin *origin);
