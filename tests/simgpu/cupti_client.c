/*
 * Another CUPTI client in the program, by the script OCCSIM_CLIENT="NAME:FROM:UNTIL,...": its session begins
 * in the thread of launch FROM (counted from 1 over the process) and ends in the thread of launch UNTIL,
 * which is outside the session; UNTIL 0: never. It calls public functions only, like the clients with public
 * sources or threads:
 *
 *   kineto      libkineto's CuptiActivityApi.cpp: registers its own buffer callbacks, enables kinds; at the
 *               end disables them, flushes by force, sets PER_THREAD_ACTIVITY_BUFFER to 0. Foreign buffers
 *               are reported and not touched
 *   finalizer   the same with TEARDOWN_CUPTI=1: cuptiFinalize at the end (pytorch#146604, kineto#1554)
 *   subscriber  uses the callback API only (parcagpu, wprof before its records; older Kineto between
 *               sessions)
 *
 * At the end of a session it logs (OCCSIM_LOG) its number of kernel records. Threads: any; one session at a
 * time.
 */
#include "cupti_double.h"

#include "env.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (4u << 20)
#define SESSIONS     8

enum what { KINETO, FINALIZER, SUBSCRIBER, NAMES };
static const char *const names[NAMES] = {"kineto", "finalizer", "subscriber"};

static struct session {
    enum what what;
    uint64_t from, until;
} sessions[SESSIONS];
static size_t n_sessions;
static _Atomic uint64_t launches;
static _Atomic uint64_t kernels, unknown_buffers;
static uint8_t *own[64]; /* buffers in CUPTI's hands; under `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_SubscriberHandle subscriber;

static void read_script(void)
{
    char name[16];
    unsigned long long from, until;
    for (const char *at = sim_env()->client; *at && n_sessions < SESSIONS;
         at += strcspn(at, ","), at += *at == ',') {
        int what = 0;
        if (sscanf(at, "%15[a-z]:%llu:%llu", name, &from, &until) != 3) {
            sim_complain("OCCSIM_CLIENT: '%s' is not NAME:FROM:UNTIL", at);
            return;
        }
        while (what < NAMES && strcmp(name, names[what]) != 0)
            what++;
        if (what == NAMES)
            sim_complain("OCCSIM_CLIENT: no client '%s'", name);
        else
            sessions[n_sessions++] = (struct session){(enum what)what, from, until};
    }
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = calloc(1, BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *max_records = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!own[i]) {
            own[i] = *buffer;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static bool take_own(const uint8_t *buffer)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] == buffer) {
            own[i] = NULL;
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    if (!take_own(buffer)) {
        atomic_fetch_add(&unknown_buffers, 1);
        return;
    }
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            atomic_fetch_add(&kernels, 1);
    free(buffer);
}

static void CUPTIAPI on_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *info)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)info;
}

static void begin(const struct session *session)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (session->what == SUBSCRIBER) {
        result = cuptiSubscribe(&subscriber, on_callback, NULL);
    } else {
        result = cuptiActivityRegisterCallbacks(on_request, on_complete);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
    sim_log("client %s: begins at launch %llu: %d", names[session->what], (unsigned long long)session->from,
            (int)result);
}

static void end(const struct session *session)
{
    uint8_t zero = 0;
    size_t bytes = sizeof zero;
    if (session->what == SUBSCRIBER) {
        cuptiUnsubscribe(subscriber);
    } else {
        cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
        cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &zero);
        if (session->what == FINALIZER)
            cuptiFinalize();
    }
    sim_log("client %s: ends at launch %llu: %llu kernels, %llu unknown buffers", names[session->what],
            (unsigned long long)session->until, (unsigned long long)atomic_exchange(&kernels, 0),
            (unsigned long long)atomic_exchange(&unknown_buffers, 0));
}

void sim_client_before_launch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_script);
    if (n_sessions == 0)
        return;
    uint64_t n = atomic_fetch_add(&launches, 1) + 1;
    for (size_t i = 0; i < n_sessions; i++) {
        if (sessions[i].from == n)
            begin(&sessions[i]);
        if (sessions[i].until == n)
            end(&sessions[i]);
    }
}
