/*
 * Runs a hundred rings beside the threads that read a GPU's counters, for the thread sanitizer: it checks the
 * data that the daemon's loop and these threads share. Runs on the simulated device (scripts/simgpu).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon_programs.h"
#include "support/clock.h"

#define NEVER_NS  INT64_C(3600000000000)
#define SECOND_NS INT64_C(1000000000)
#define RINGS     100
#define ROUNDS    20
#define LAUNCHES  5 /* launches per ring and round */

/* Waits until the sampler's status contains `what`; returns its place in `answer`. */
static const char *await_sampler(const struct place *p, const char *what, char answer[OCC_CONTROL_BYTES])
{
    const char *at;
    answer[0] = '\0';
    for (int ms = 0; !(at = strstr(answer, what)); ms += 5) {
        if (ms >= DEADLINE_MS)
            fail_msg("no '%s' in: %s", what, answer);
        pause_ms(5);
        (void)ask(p, "sampler 0", answer);
    }
    return at;
}

/* Gets the simulated device's UUID from the daemon. */
static void find_gpu(const struct place *p, uint8_t uuid[16])
{
    char answer[OCC_CONTROL_BYTES], hex[33];
    assert_int_equal(sscanf(await_sampler(p, "uuid ", answer), "uuid %32s", hex), 1);
    assert_true(occ_hex_decode(hex, uuid, 16));
}

static void make_ring_on(struct occ_ring_producer *ring, const uint8_t gpu[16])
{
    static const char text[] = "session\0" SESSION;
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE, .cc_major = 9, .sm_count = 132};
    memcpy(device.name, "a device", 9);
    memcpy(device.uuid, gpu, sizeof device.uuid);
    assert_int_equal(occ_ring_create(ring, 256, 64u << 10), 0);
    assert_true(log_process(ring, 1, text, sizeof text) &&
                occ_ring_log(ring, &device.record, sizeof device, NULL, 0) &&
                log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
}

static void a_hundred_rings_beside_counters(void **state)
{
    struct place *p = *state;
    static struct occ_ring_producer rings[RINGS];
    int fds[RINGS];
    uint8_t gpu[16];
    char answer[OCC_CONTROL_BYTES];
    p->max_producers = RINGS;
    p->has_counters = true;
    assert_int_equal(setenv("OCCSIM_COUNTERS", p->directory, 1), 0); /* directory of the simulated counters */
    start(p, NEVER_NS);
    make_ring_on(&rings[0], (const uint8_t[16]){0});
    fds[0] = offer(p, &rings[0]); /* the first program wakes the sampler */
    find_gpu(p, gpu);
    for (int i = 1; i < RINGS; i++) {
        make_ring_on(&rings[i], gpu);
        fds[i] = offer(p, &rings[i]);
    }
    (void)await_sampler(p, "state ok", answer);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < RINGS; i++)
            for (int k = 0; k < LAUNCHES; k++) {
                struct occ_ring_launch launch = sample_launch(rings[i].head);
                launch.start_ns = (uint64_t)occ_now_ns();
                assert_true(occ_ring_push(&rings[i], &launch));
            }
        assert_true(ask(p, round % 4 == 1 ? "pause 1" : round % 4 == 3 ? "resume" : "sampler 0", answer));
        (void)flush(p);
    }
    for (int i = 0; i < RINGS; i++) {
        meet(fds[i]);
        occ_ring_close(&rings[i]); /* the daemon closes the connection after the last launch */
        (void)close(fds[i]);
    }
    await_status(p, "\nclients 1\nprograms 0\n");
    assert_int_equal(flush(p), RINGS * ROUNDS * LAUNCHES);
    assert_stops(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hundred_rings_beside_counters, setup, teardown)};
    return cmocka_run_group_tests_name("daemon rings", tests, NULL, NULL);
}
