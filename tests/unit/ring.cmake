occ_add_test(test_ring SOURCES test_ring.c USES occ_ring)
occ_add_test(test_ring_hostile SOURCES test_ring_hostile.c USES occ_ring)
occ_add_test(test_ring_processes SOURCES test_ring_processes.c USES occ_ring Threads::Threads THREADS)
