# What a program waits for before it begins under occtrace.
add_executable(bench_startup bench_startup.c)
target_link_libraries(bench_startup PRIVATE occ_compile_options)
target_compile_definitions(bench_startup PRIVATE OCC_TRACE="$<TARGET_FILE:occtrace>")
add_dependencies(bench_startup occtrace occtraced occtrace_injector occtrace_preload)
