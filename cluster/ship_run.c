/* The shipper's endless loop of duties; see ship.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include "ship.h"
#include "support/clock.h"
#include "support/log.h"

#define SECOND_NS       INT64_C(1000000000)
#define BACK_OFF_MIN_NS SECOND_NS
#define BACK_OFF_MAX_NS (300 * SECOND_NS)
#define NEW_INTERVAL_NS (60 * SECOND_NS)
#define OLD_INTERVAL_NS (300 * SECOND_NS)

static void sleep_ns(int64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    if (ns > 0)
        (void)nanosleep(&time, NULL);
}

/* Time until this node's offset in the next interval. */
static int64_t until_next_ns(const char *node, int64_t interval)
{
    int64_t share = (int64_t)(XXH3_64bits(node, strlen(node)) % (uint64_t)interval);
    return interval - (occ_now_ns() - share) % interval;
}

/* Full jitter: nodes that failed together retry at different times. */
static int64_t back_off_ns(unsigned int failures)
{
    uint64_t number = 0;
    int64_t max = failures < 9 ? BACK_OFF_MIN_NS << failures : BACK_OFF_MAX_NS;
    max = max < BACK_OFF_MAX_NS ? max : BACK_OFF_MAX_NS;
    (void)!getrandom(&number, sizeof number, 0);
    return BACK_OFF_MIN_NS / 2 + (int64_t)(number % (uint64_t)max);
}

static void report(struct occ_ship_duty *duty, int rc, const struct occ_error *err)
{
    if (rc != 0 && strcmp(duty->last, err->message) != 0)
        occ_log(OCC_LOG_ERROR, "%s; nothing is lost as long as the history keeps it", err->message);
    else if (rc == 0 && duty->last[0])
        occ_log(OCC_LOG_WARNING, "%s", duty->again);
    (void)snprintf(duty->last, sizeof duty->last, "%s", rc != 0 ? err->message : "");
}

static void do_duty(struct occ_ship_duty *duty, const char *node)
{
    struct occ_error err = OCC_ERROR_INIT;
    int rc = duty->pass(duty->of, &err);
    report(duty, rc, &err);
    duty->failures = rc == 0                        ? 0
                     : occ_warehouse_needs_help(rc) ? 16
                     : duty->failures < 16          ? duty->failures + 1
                                                    : duty->failures;
    int64_t wait_ns =
        rc == 0 ? until_next_ns(node, duty->interval_ns(duty->of)) : back_off_ns(duty->failures);
    int64_t least_ns = rc != 0 && duty->wait_ns ? duty->wait_ns(duty->of) : 0;
    duty->next_ns = occ_boot_ns() + (wait_ns > least_ns ? wait_ns : least_ns);
}

void occ_ship_run(struct occ_ship_duty *duties, size_t n, const char *node)
{
    for (;;) {
        struct occ_ship_duty *next = &duties[0];
        for (size_t i = 1; i < n; i++)
            next = duties[i].next_ns < next->next_ns ? &duties[i] : next;
        sleep_ns(next->next_ns - occ_boot_ns());
        do_duty(next, node);
    }
}

/* ---- the warehouse's duty ---- */

static int pass(void *ship, struct occ_error *err)
{
    return occ_ship_pass(ship, false, err);
}

static int64_t interval_ns(void *ship_)
{
    const struct occ_ship *ship = ship_;
    if (ship->settings.interval_ns != 0)
        return ship->settings.interval_ns;
    return ship->warehouse->dialect == OCC_DIALECT_OLD ? OLD_INTERVAL_NS : NEW_INTERVAL_NS;
}

struct occ_ship_duty occ_ship_warehouse_duty(struct occ_ship *ship)
{
    return (struct occ_ship_duty){.again = "the warehouse takes what is sent again",
                                  .of = ship,
                                  .pass = pass,
                                  .interval_ns = interval_ns};
}
