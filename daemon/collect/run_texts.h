/* The texts of a run's row that the daemon allocates (malloc). The row's other strings have other owners. */
#pragma once

#include "daemon/owners/identity.h"
#include "store/store.h"
#include "support/gpu_jobs.h"

/* Sets the text of a PROCESS record's key to a copy of `value`, cut to its limit and without control
 * characters. Ignores unknown keys (of a newer minor version) and a session other than 32 hexadecimal
 * digits. */
int occ_run_texts_set(struct occ_run *row, const char *key, const char *value, struct occ_error *err);

/* Replaces the job, pod and container that the program reported by the kernel's, and sets `trust` to the
 * source. */
void occ_run_texts_trust(struct occ_run_job *job, const struct occ_identity *identity);

/* Uses the scheduler's jobs on the run's GPU if the kernel knows no job: the job that the program claims if
 * the scheduler lists it, else the only job. false: nothing changed. */
bool occ_run_texts_schedule(struct occ_run_job *job, const struct occ_gpu_jobs *jobs);

/* Cuts a text at the first character of `ends`. */
void occ_run_texts_cut(const char **text, const char *ends);

void occ_run_texts_free(struct occ_run *row);
