/* The daemon's text requests: parsing, permissions, and the sampler's answer without any GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/serve/control.h"
#include "daemon/collect/share.h"
#include "support/control.h"

static void requests_are_read(void **state)
{
    (void)state;
    struct occ_request request;
    assert_int_equal(occ_request_parse("sampler 0", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_SAMPLER);
    assert_int_equal(request.number, 0);
    assert_int_equal(occ_request_parse("sampler 31", &request, NULL), 0);
    assert_int_equal(request.number, 31);
    assert_int_equal(occ_request_parse("refusals 4294967295", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_REFUSALS);
    assert_int_equal(request.number, UINT32_MAX);
    assert_int_equal(occ_request_parse("pause 86400", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_PAUSE);
    assert_int_equal(request.number, OCC_CONTROL_PAUSE_MAX_S);
    assert_int_equal(occ_request_parse("resume", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_RESUME);
    assert_int_equal(occ_request_parse("pause_run 2147483647", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_PAUSE_RUN);
    assert_int_equal(request.number, INT32_MAX);
    assert_int_equal(occ_request_parse("resume_run 1", &request, NULL), 0);
    assert_int_equal(request.kind, OCC_REQUEST_RESUME_RUN);
    assert_int_equal(occ_request_parse("flush 000102030405060708090A0B0C0D0E0F", &request, NULL), 0);
    assert_string_equal(request.session, "000102030405060708090a0b0c0d0e0f");
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "sampler",
                                        "sampler 32",
                                        "sampler -1",
                                        "sampler 0 ",
                                        "samplers",
                                        "pause",
                                        "pause ",
                                        "pause 0",
                                        "pause 86401",
                                        "pause 1e3",
                                        "pause 5s",
                                        "pause 99999999999999999999",
                                        "refusals",
                                        "refusals -1",
                                        "resume now",
                                        "pause_run",
                                        "pause_run 0",
                                        "pause_run -1",
                                        "resume_run 2147483648",
                                        "resume ",
                                        "flush",
                                        "status now"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_request request = {.number = 77};
        assert_int_equal(occ_request_parse(wrong[i], &request, &err), OCC_E_INVALID);
        assert_true(err.message[0] != '\0');
        assert_int_equal(request.number, 77);
    }
}

static void root_and_the_owner_command(void **state)
{
    (void)state;
    assert_true(occ_control_may_command(0, 1000));
    assert_true(occ_control_may_command(1000, 1000));
    assert_true(occ_control_may_command(0, 0));
    assert_false(occ_control_may_command(1000, 0));
    assert_false(occ_control_may_command(1001, 1000));
}

static struct occ_sampler *make_sampler(enum occ_sampler_mode mode)
{
    const struct occ_sampler_options options = {.mode = mode, .interval_ns = 1000000};
    struct occ_sampler *sampler = NULL;
    assert_int_equal(occ_sampler_new(&options, &sampler, NULL), 0);
    return sampler;
}

static void a_sampler_without_gpus_says_why(void **state)
{
    (void)state;
    char answer[OCC_CONTROL_BYTES];
    struct occ_sampler *sampler = make_sampler(OCC_SAMPLER_NONE);
    occ_control_sampler(sampler, 0, answer, sizeof answer);
    assert_string_equal(answer,
                        "ok\nmode none\npaused_s 0\ngpus 0\nreason hardware counters are switched off\n");
    occ_sampler_pause(sampler, INT64_C(3600) * 1000000000);
    occ_control_sampler(sampler, 5, answer, sizeof answer);
    assert_true(strstr(answer, "\npaused_s 3600\n") || strstr(answer, "\npaused_s 3599\n"));
    occ_sampler_pause(sampler, 0);
    occ_control_sampler(sampler, 0, answer, sizeof answer);
    assert_non_null(strstr(answer, "\npaused_s 0\n"));
    occ_sampler_free(sampler);
    sampler = make_sampler(OCC_SAMPLER_AUTO);
    occ_control_sampler(sampler, 0, answer, sizeof answer);
    assert_string_equal(answer, "ok\nmode auto\npaused_s 0\ngpus 0\nreason no program has come yet\n");
    occ_sampler_free(sampler);
}

/* A short buffer cuts the answer, and nothing is written beyond its end. */
static void a_short_buffer_cuts(void **state)
{
    (void)state;
    struct occ_sampler *sampler = make_sampler(OCC_SAMPLER_NONE);
    for (size_t size = 1; size < 64; size++) {
        char answer[80];
        memset(answer, 'x', sizeof answer);
        occ_control_sampler(sampler, 0, answer, size);
        assert_true(strlen(answer) < size);
        assert_int_equal(answer[size], 'x');
    }
    occ_sampler_free(sampler);
}

/* A burst is free; then a price of 8 leaves an eighth of the time, and idle time is no credit. */
static void a_share_is_paid_with_time(void **state)
{
    (void)state;
    struct occ_share share = {0};
    int64_t now_ns = 7000000000, used_ns = 0;
    occ_share_charge(&share, now_ns, OCC_SHARE_BURST_NS);
    assert_int_equal(occ_share_wait_ns(&share, now_ns), 0);
    for (int64_t end_ns = now_ns + 8000000000; now_ns < end_ns; now_ns += 1000000)
        if (occ_share_wait_ns(&share, now_ns) == 0) {
            occ_share_charge(&share, now_ns, 8 * 300000);
            used_ns += 300000;
        }
    assert_in_range(used_ns, 999000000, 1001000000);
    now_ns += 100 * OCC_SHARE_BURST_NS;
    occ_share_charge(&share, now_ns, 3 * OCC_SHARE_BURST_NS);
    assert_int_equal(occ_share_wait_ns(&share, now_ns), 2 * OCC_SHARE_BURST_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),          cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(root_and_the_owner_command), cmocka_unit_test(a_sampler_without_gpus_says_why),
        cmocka_unit_test(a_short_buffer_cuts),        cmocka_unit_test(a_share_is_paid_with_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
