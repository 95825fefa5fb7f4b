/* See ask.h. */
#include "ask.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "cupti/driver_text.h"
#include "cupti/library.h"
#include "threads.h"
#include "wake.h"

#define PATIENCE_NS UINT64_C(500000000)

struct driver {
    int (*init)(unsigned int flags);
    int (*get_count)(int *count);
};

static struct asking {
    _Atomic bool is_taken;      /* set by the asking thread, or by a thread that calls the question off */
    _Atomic uint32_t ended;     /* not 0: the asking thread has finished its work */
    _Atomic pid_t thread;       /* the asking thread's id while the driver is asked, else 0 */
    _Atomic bool is_awaited;    /* the exiting thread has begun to wait */
    _Atomic bool has_held_fork; /* a fork has waited for the answer; later forks do not wait */
    char reason[OCC_REASON_BYTES];
} asking;

/* Returns a CUresult; 0: nothing to report. Uses the program's own libcuda, so no library is loaded. cuInit
 * waits for the call in progress and returns the same result as that call. */
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
    int result = 0;
    bool is_driver = occ_library_bind(library, names, 2, &driver) == 2;
    if (is_driver)
        result = driver.init(0);
    if (is_driver && result == 0)
        result = driver.get_count(&count);
    (void)dlclose(library);
    if (!is_driver)
        return 0;
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
    occ_thread_settle();
    if (atomic_exchange(&asking.is_taken, true))
        return NULL;
    atomic_store(&asking.thread, (pid_t)syscall(SYS_gettid));
    occ_driver_text(ask_driver(), text);
    if (atomic_compare_exchange_strong(&g->state, &state, OCC_GUEST_STARTING)) {
        if (text[0])
            report(g, text);
        atomic_store(&g->state, OCC_GUEST_QUIET);
    }
    atomic_store(&asking.thread, 0);
    occ_wake(&asking.ended);
    return NULL;
}

void occ_ask_start(struct occ_guest *g, const char *reason)
{
    (void)snprintf(asking.reason, sizeof asking.reason, "%s", reason);
    atomic_store(&asking.is_taken, false);
    atomic_store(&asking.ended, 0);
    atomic_store(&asking.thread, 0);
    atomic_store(&asking.is_awaited, false);
    atomic_store(&asking.has_held_fork, false);
    atomic_store(&g->state, OCC_GUEST_ASKING);
    atomic_store(&g->asks, true);
    if (occ_thread_start(ask, g))
        return;
    atomic_store(&g->asks, false);
    atomic_store(&g->state, OCC_GUEST_QUIET);
}

/* Prevents a thread that has not begun from asking the driver. */
static void call_off(struct occ_guest *g, int left_state)
{
    int state = OCC_GUEST_ASKING;
    if (atomic_exchange(&asking.is_taken, true))
        return;
    (void)atomic_compare_exchange_strong(&g->state, &state, left_state);
    occ_wake(&asking.ended);
}

void occ_ask_before_fork(struct occ_guest *g)
{
    if (!atomic_load(&g->asks) || atomic_load(&asking.ended) != 0 ||
        atomic_load(&asking.thread) == (pid_t)syscall(SYS_gettid))
        return;
    call_off(g, OCC_GUEST_QUIET);
    if (!atomic_exchange(&asking.has_held_fork, true))
        (void)occ_wake_await(&asking.ended, occ_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS);
}

void occ_ask_finish(struct occ_guest *g, uint64_t exit_ns)
{
    int state = OCC_GUEST_ASKING;
    if (atomic_exchange(&asking.is_awaited, true))
        return;
    uint64_t limit_ns = occ_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    if (occ_wake_await(&asking.ended, limit_ns < exit_ns ? limit_ns : exit_ns))
        return;
    call_off(g, OCC_GUEST_CLOSED);
    (void)atomic_compare_exchange_strong(&g->state, &state, OCC_GUEST_CLOSED);
}
