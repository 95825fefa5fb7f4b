/* The texts of a run's row that a daemon owns, malloc'ed; the row's other strings belong to somebody else. */
#pragma once

#include "daemon/owners/identity.h"
#include "store/store.h"
#include "support/gpu_jobs.h"

/* Sets the text of a PROCESS record's key to a copy of `value`, cut to its limit and fit for a terminal.
 * Ignores unknown keys (of a newer minor version) and a session that is not 32 hexadecimal digits. */
int occ_run_texts_set(struct occ_run *row, const char *key, const char *value, struct occ_error *err);

/* What the kernel knows of job, pod and container replaces what the program reported; sets who is trusted. */
void occ_run_texts_trust(struct occ_run_job *job, const struct occ_identity *identity);

/* The same of the jobs that the scheduler gives the run's GPU, where the kernel knows none: the job that the
 * program names, if it is one of them, else the only one. false: nothing changed. */
bool occ_run_texts_schedule(struct occ_run_job *job, const struct occ_gpu_jobs *jobs);

/* Shortens a text to what lies before the first of `ends`. */
void occ_run_texts_cut(const char **text, const char *ends);

void occ_run_texts_free(struct occ_run *row);
