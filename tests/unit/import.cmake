occ_add_test(test_import SOURCES test_import.c USES occ_import PkgConfig::SQLITE PkgConfig::ZLIB)
