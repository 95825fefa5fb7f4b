/* Launches of programs in the daemon's loop: the programs that may offer their libcupti to the sampler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/sampling/sampler_state.h"
#include "daemon/serve/server_state.h"
#include "support/log.h"
#include "producer_ring.h"

#define LIBRARY   "/usr/lib/libcupti.so.13"
#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD       "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

/* Root of a container is uid 0 on the host too, and a user of a container may have the daemon's uid. */
static void a_library_from_a_container_is_not_offered(void **state)
{
    (void)state;
    static const struct {
        const char *container, *pod, *offered;
    } cases[] = {{"", "", LIBRARY}, {CONTAINER, "", ""}, {"", POD, ""}, {CONTAINER, POD, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct occ_sampler_options sampling = {.mode = OCC_SAMPLER_NONE};
        const struct occ_server_options options = {.private_fd = -1};
        struct occ_server server = {.options = &options};
        struct occ_history history = {.context = &server};
        struct occ_producer_device device = {.uuid = {1}};
        struct occ_producer producer = {.peer = {.pid = getpid(), .uid = geteuid()},
                                        .run.row.cupti.path = LIBRARY};
        struct occ_ring_producer ring;
        give_ring(&producer, &ring);
        (void)snprintf(producer.identity.container, sizeof producer.identity.container, "%s",
                       cases[i].container);
        (void)snprintf(producer.identity.pod, sizeof producer.identity.pod, "%s", cases[i].pod);
        assert_int_equal(occ_sampler_new(&sampling, &server.sampler, NULL), 0);
        occ_program_appended(&producer, &device, NULL, 0, &history);
        assert_string_equal(server.sampler->offered ? server.sampler->offered : "", cases[i].offered);
        occ_sampler_free(server.sampler);
        take_ring(&producer, &ring);
    }
}

/* A container's root is not the machine's. */
static void a_refusal_is_its_owners(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *counted;
    } cases[] = {{"", "u0"}, {"u0", "u0"}, {"container-" CONTAINER, "container-" CONTAINER}};
    static struct occ_server server;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *other = i < 2 ? "container-" CONTAINER : "u0";
        struct occ_user user = {.uid = 0};
        struct occ_client client = {.fd = -1, .pidfd = -1, .user = &user};
        server = (struct occ_server){.refused = 0};
        (void)snprintf(client.owner.name, sizeof client.owner.name, "%s", cases[i].owner);
        occ_program_refuse(&server, &client, OCC_REFUSED_INVALID, "of the test");
        assert_non_null(occ_refusals_by(&server.refusals, cases[i].counted));
        assert_null(occ_refusals_by(&server.refusals, other));
        assert_int_equal(server.refused, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_library_from_a_container_is_not_offered),
                                       cmocka_unit_test(a_refusal_is_its_owners)};
    occ_log_set_level(OCC_LOG_ERROR);
    return cmocka_run_group_tests_name("programs", tests, NULL, NULL);
}
