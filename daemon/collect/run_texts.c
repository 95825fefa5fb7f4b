/* See run_texts.h. No global state; one thread. */
#include "run_texts.h"

#include <stdlib.h>
#include <string.h>

#include "support/text.h"

/* A key of PROCESS records, its member of struct occ_run, and the maximum number of bytes to keep. */
static const struct text {
    const char *key;
    size_t offset; /* of a const char * in struct occ_run */
    size_t max_bytes;
} texts[] = {
#define AT(member) offsetof(struct occ_run, member)
    {"exe", AT(exe), 4096},
    {"cmdline", AT(cmdline), 4096},
    {"cwd", AT(cwd), 4096},
    {"label", AT(label), 256},
    {"session", AT(session), 32},
    {"slurm_job", AT(job.slurm_job), 128},
    {"slurm_step", AT(job.slurm_step), 128},
    {"k8s_pod", AT(job.k8s_pod), 256},
    {"k8s_namespace", AT(job.k8s_namespace), 256},
    {"claims", AT(job.claims), 2048},
    {"rank", AT(rank), 32},
    {"hostname", AT(hostname), 256},
    {"cupti_path", AT(cupti.path), 4096},
    {"cupti_note", AT(cupti.note), 256},
};
#define N_TEXTS (sizeof texts / sizeof *texts)

/* Texts of the Slurm job, which only the program's environment has: a variable in `claims`, and its member of
 * struct occ_run_job. A longer text is left out: a cut name would be the name of another account. */
#define CLAIM_BYTES 127
static const struct claim {
    const char *name;
    size_t offset; /* of a const char * in struct occ_run_job */
} claims[] = {
#define JOB_AT(member) offsetof(struct occ_run_job, member)
    {"SLURM_JOB_ACCOUNT", JOB_AT(slurm_account)},
    {"SLURM_JOB_PARTITION", JOB_AT(slurm_partition)},
    {"SLURM_JOB_QOS", JOB_AT(slurm_qos)},
    {"SLURM_ARRAY_JOB_ID", JOB_AT(slurm_array_job)},
    {"SLURM_ARRAY_TASK_ID", JOB_AT(slurm_array_task)},
};
#define N_CLAIMS (sizeof claims / sizeof *claims)

static const char **member(struct occ_run *row, const struct text *text)
{
    return (const char **)(void *)((char *)row + text->offset);
}

static const char **claim_member(struct occ_run_job *job, const struct claim *claim)
{
    return (const char **)(void *)((char *)job + claim->offset);
}

/* Replaces the program's text by the kernel's, if the kernel has one. */
static bool trust(const char **text, const char *known)
{
    char *copy = known[0] ? strdup(known) : NULL;
    if (!copy)
        return false;
    free((void *)(uintptr_t)*text);
    *text = copy;
    return true;
}

static void drop(const char **text)
{
    free((void *)(uintptr_t)*text);
    *text = NULL;
}

/* The value of a variable in "NAME=value NAME=value"; `ret_n`: its bytes. NULL: none. */
static const char *find_claim(const char *text, const char *name, size_t *ret_n)
{
    size_t n = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += n)
        if (at[n] == '=' && (at == text || at[-1] == ' ')) {
            *ret_n = strcspn(at + n + 1, " ");
            return at + n + 1;
        }
    return NULL;
}

/* Sets the texts of the Slurm job to the claims of a program that claims the same job. */
static void take_claims(struct occ_run_job *job)
{
    size_t n = 0;
    const char *claimed = job->claims ? find_claim(job->claims, "SLURM_JOB_ID", &n) : NULL;
    bool is_of_job =
        claimed && job->slurm_job && strlen(job->slurm_job) == n && memcmp(job->slurm_job, claimed, n) == 0;
    for (size_t i = 0; i < N_CLAIMS; i++) {
        const char *value = is_of_job ? find_claim(job->claims, claims[i].name, &n) : NULL;
        drop(claim_member(job, &claims[i]));
        if (value && n > 0 && n <= CLAIM_BYTES)
            *claim_member(job, &claims[i]) = strndup(value, n); /* without memory: not known */
    }
}

void occ_run_texts_trust(struct occ_run_job *job, const struct occ_identity *identity)
{
    (void)trust(&job->container, identity->container);
    (void)trust(&job->k8s_pod_uid, identity->pod);
    bool is_known = trust(&job->slurm_job, identity->slurm_job);
    is_known |= trust(&job->slurm_step, identity->slurm_step);
    is_known |= trust(&job->k8s_pod, identity->pod_name);
    is_known |= trust(&job->k8s_namespace, identity->pod_namespace);
    bool is_claimed = job->slurm_job || job->slurm_step || job->k8s_pod || job->k8s_namespace;
    job->trust = is_known ? "kernel" : is_claimed ? "claimed" : NULL;
    take_claims(job);
}

bool occ_run_texts_schedule(struct occ_run_job *job, const struct occ_gpu_jobs *jobs)
{
    const char *found = jobs->n == 1 ? jobs->names[0] : NULL;
    bool is_named = false;
    for (size_t i = 0; i < jobs->n && job->slurm_job && !is_named; i++)
        if (strcmp(job->slurm_job, jobs->names[i]) == 0) {
            found = jobs->names[i];
            is_named = true;
        }
    if (!found || (job->trust && strcmp(job->trust, "kernel") == 0) || !trust(&job->slurm_job, found))
        return false;
    drop(&job->k8s_pod); /* the program's own claims stay in `claims` */
    drop(&job->k8s_namespace);
    if (!is_named)
        drop(&job->slurm_step);
    job->trust = "scheduler";
    take_claims(job);
    return true;
}

int occ_run_texts_set(struct occ_run *row, const char *key, const char *value, struct occ_error *err)
{
    size_t i = 0;
    uint8_t session[16];
    char lower_case[33];
    while (i < N_TEXTS && strcmp(texts[i].key, key) != 0)
        i++;
    if (i == N_TEXTS)
        return 0;
    if (strcmp(key, "session") == 0) {
        if (!occ_hex_decode(value, session, sizeof session))
            return 0;
        occ_hex_encode(session, sizeof session, lower_case);
        value = lower_case;
    }
    char *copy = strndup(value, texts[i].max_bytes);
    if (!copy)
        return occ_no_memory(err);
    occ_text_sanitise(copy);
    free((void *)(uintptr_t)*member(row, &texts[i]));
    *member(row, &texts[i]) = copy;
    return 0;
}

void occ_run_texts_cut(const char **text, const char *ends)
{
    char *own = (char *)(uintptr_t)*text;
    own[strcspn(own, ends)] = '\0';
}

void occ_run_texts_free(struct occ_run *row)
{
    for (size_t i = 0; i < N_TEXTS; i++)
        free((void *)(uintptr_t)*member(row, &texts[i]));
    for (size_t i = 0; i < N_CLAIMS; i++)
        drop(claim_member(&row->job, &claims[i]));
    free((void *)(uintptr_t)row->user);
    free((void *)(uintptr_t)row->job.container);
    free((void *)(uintptr_t)row->job.k8s_pod_uid);
}
