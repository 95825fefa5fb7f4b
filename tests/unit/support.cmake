occ_add_test(test_support SOURCES test_support.c USES occ_support)
occ_add_test(test_kernel_names SOURCES test_kernel_names.c USES occ_names)
target_compile_definitions(test_kernel_names PRIVATE OCC_NAMES_FILE="${PROJECT_SOURCE_DIR}/tests/data/names/pytorch.txt"
  OCC_OWNERS_FILE="${PROJECT_SOURCE_DIR}/tests/data/names/owners.tsv")
occ_add_test(test_kernel_owners SOURCES test_kernel_owners.c USES occ_names)
target_compile_definitions(test_kernel_owners PRIVATE OCC_OWNERS_FILE="${PROJECT_SOURCE_DIR}/tests/data/names/owners.tsv")
