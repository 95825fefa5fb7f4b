# The history: ingest, size, scans, top.
add_executable(bench_store bench_store.c bench_codec.c bench_sql.c generate.c)
target_link_libraries(bench_store PRIVATE occ_compile_options occ_store PkgConfig::SQLITE m)

# Counters in the history.
add_executable(bench_series bench_series.c)
target_link_libraries(bench_series PRIVATE occ_compile_options occ_store PkgConfig::SQLITE m)
