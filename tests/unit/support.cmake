occ_add_test(test_support SOURCES test_support.c USES occ_support)
