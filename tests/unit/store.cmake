set(world test_store_world.c)
occ_add_test(test_store SOURCES test_store.c ${world} USES occ_store PkgConfig::SQLITE)
