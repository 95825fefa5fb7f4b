/* See ask.h. */
#include "ask.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "cupti/driver_text.h"
#include "cupti/library.h"

#define PATIENCE_NS UINT64_C(500000000)

struct driver {
    int (*init)(unsigned int flags);
    int (*get_count)(int *count);
};

static struct asking {
    pthread_t thread;
    _Atomic bool is_joined; /* a thread waits for it, or has */
    char reason[OCC_REASON_BYTES];
} asking;

/* 0: nothing to report. The program's own libcuda: nothing is loaded. cuInit waits for the call that goes on,
 * and answers a second time as it did the first. */
static int ask_driver(void)
{
    static const char *const names[] = {"cuInit", "cuDeviceGetCount"};
    struct driver driver;
    int count = 0;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        (void)dlerror();
        return 0;
    }
    if (occ_library_bind(library, names, 2, &driver) < 2)
        return 0;
    int result = driver.init(0);
    if (result == 0)
        result = driver.get_count(&count);
    return result == 0 && count == 0 ? OCC_DRIVER_NO_DEVICE : result;
}

static void report(struct occ_guest *g, const char *text)
{
    char reason[OCC_REASON_BYTES];
    (void)snprintf(reason, sizeof reason, "%s: %.*s", text, (int)(sizeof reason - OCC_DRIVER_TEXT_BYTES - 3),
                   asking.reason);
    occ_guest_report(g, OCC_LEVEL_NOTHING, occ_clock_ns(CLOCK_REALTIME), reason);
    (void)occ_link_poll(&g->link, &g->ring, &g->memfd, occ_clock_ns(CLOCK_MONOTONIC));
}

static void *ask(void *guest)
{
    struct occ_guest *g = guest;
    char text[OCC_DRIVER_TEXT_BYTES];
    int state = OCC_GUEST_ASKING;
    (void)pthread_setname_np(pthread_self(), "occtrace");
    occ_driver_text(ask_driver(), text);
    if (atomic_compare_exchange_strong(&g->state, &state, OCC_GUEST_STARTING)) {
        if (text[0])
            report(g, text);
        atomic_store(&g->state, OCC_GUEST_QUIET);
    }
    return NULL;
}

void occ_ask_start(struct occ_guest *g, const char *reason)
{
    sigset_t all, before;
    (void)snprintf(asking.reason, sizeof asking.reason, "%s", reason);
    atomic_store(&asking.is_joined, false);
    atomic_store(&g->state, OCC_GUEST_ASKING);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* for the new thread, before it runs */
    g->asks = pthread_create(&asking.thread, NULL, ask, g) == 0;
    if (!g->asks)
        atomic_store(&g->state, OCC_GUEST_QUIET);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void occ_ask_finish(struct occ_guest *g)
{
    int state = OCC_GUEST_ASKING;
    if (atomic_exchange(&asking.is_joined, true))
        return;
    uint64_t at_ns = occ_clock_ns(CLOCK_REALTIME) + PATIENCE_NS;
    const struct timespec until = {.tv_sec = (time_t)(at_ns / UINT64_C(1000000000)),
                                   .tv_nsec = (long)(at_ns % UINT64_C(1000000000))};
    if (pthread_timedjoin_np(asking.thread, NULL, &until) != 0)
        (void)atomic_compare_exchange_strong(&g->state, &state, OCC_GUEST_CLOSED);
}
