# Verdicts of occq diff on groups: false alarms and found changes.
add_executable(bench_diff bench_diff.c diff_sides.c)
target_link_libraries(bench_diff PRIVATE occ_compile_options occ_cli_sides occ_names occ_compare occ_store PkgConfig::SQLITE m)
