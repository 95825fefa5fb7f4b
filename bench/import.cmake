# Other tools' recordings: bytes and rows a second, memory.
add_executable(bench_import bench_import.c)
target_link_libraries(bench_import PRIVATE occ_compile_options occ_import PkgConfig::SQLITE)
