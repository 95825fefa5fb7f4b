occ_add_test(test_config SOURCES test_config.c USES occ_config occ_support)
target_compile_definitions(test_config PRIVATE OCC_EXAMPLE_FILE="${PROJECT_SOURCE_DIR}/config/occtrace.yaml")
