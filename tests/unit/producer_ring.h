/* A ring for a producer that a test makes without a program. After #include <cmocka.h>. */
#pragma once

#include <unistd.h>

#include "daemon/collect/producers.h"
#include "ring/consumer.h"
#include "ring/producer.h"

static inline void give_ring(struct occ_producer *producer, struct occ_ring_producer *ring)
{
    assert_int_equal(occ_ring_create(ring, 1024, 65536), 0);
    assert_int_equal(occ_ring_attach(dup(ring->fd), 0, &producer->consumer, NULL), 0);
}

static inline void take_ring(struct occ_producer *producer, struct occ_ring_producer *ring)
{
    occ_ring_detach(producer->consumer);
    occ_ring_destroy(ring);
}
