/* The shipper's endless loop of passes; see ship.h. */
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
    (void)nanosleep(&time, NULL);
}

/* Time until this node's offset in the next interval. */
static int64_t until_next_ns(const struct occ_ship *ship)
{
    int64_t interval = ship->settings.interval_ns, now = occ_now_ns();
    const char *node = ship->settings.warehouse.node;
    if (interval == 0)
        interval = ship->warehouse->dialect == OCC_DIALECT_OLD ? OLD_INTERVAL_NS : NEW_INTERVAL_NS;
    int64_t share = (int64_t)(XXH3_64bits(node, strlen(node)) % (uint64_t)interval);
    return interval - (now - share) % interval;
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

void occ_ship_run(struct occ_ship *ship)
{
    char last[OCC_ERROR_MESSAGE_BYTES] = "";
    for (unsigned int failures = 0;;) {
        struct occ_error err = OCC_ERROR_INIT;
        int rc = occ_ship_pass(ship, false, &err);
        if (rc != 0 && strcmp(last, err.message) != 0)
            occ_log(OCC_LOG_ERROR, "%s; nothing is lost as long as the history keeps it", err.message);
        else if (rc == 0 && last[0])
            occ_log(OCC_LOG_WARNING, "the warehouse takes what is sent again");
        (void)snprintf(last, sizeof last, "%s", rc != 0 ? err.message : "");
        failures = rc == 0 ? 0 : occ_warehouse_needs_help(rc) ? 16 : failures < 16 ? failures + 1 : failures;
        sleep_ns(rc == 0 ? until_next_ns(ship) : back_off_ns(failures));
    }
}
