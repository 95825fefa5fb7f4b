set(world test_store_world.c)
occ_add_test(test_store SOURCES test_store.c ${world} USES occ_store PkgConfig::SQLITE)
# Its own launch_group.c, whose passes are small, takes the place of the library's.
occ_add_test(test_store_sql SOURCES test_store_sql.c "${PROJECT_SOURCE_DIR}/store/vtab/launch_group.c" ${world}
             USES occ_store PkgConfig::SQLITE)
set_source_files_properties("${PROJECT_SOURCE_DIR}/store/vtab/launch_group.c" PROPERTIES COMPILE_DEFINITIONS PASS_ROWS=100u)
occ_add_test(test_store_gaps SOURCES test_store_gaps.c USES occ_store PkgConfig::SQLITE)
occ_add_test(test_store_remove SOURCES test_store_remove.c USES occ_store PkgConfig::SQLITE)
occ_add_test(test_store_changes SOURCES test_store_changes.c ${world} USES occ_store PkgConfig::SQLITE)
occ_add_test(test_store_retention SOURCES test_store_retention.c ${world} USES occ_store PkgConfig::SQLITE)
occ_add_test(test_store_full SOURCES test_store_full.c ${world} USES occ_store PkgConfig::SQLITE)
# Its own schema, of two versions more, takes the place of the library's.
set(later "${CMAKE_CURRENT_BINARY_DIR}/later_schema.c")
set(migrations "${PROJECT_SOURCE_DIR}/schema/0001_history.sql" "${PROJECT_SOURCE_DIR}/tests/data/schema/0002_more.sql"
               "${PROJECT_SOURCE_DIR}/tests/data/schema/0003_most.sql")
add_custom_command(
  OUTPUT "${later}"
  COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${later}" "-DINPUTS=${migrations}" -P "${PROJECT_SOURCE_DIR}/schema/embed.cmake"
  DEPENDS ${migrations} "${PROJECT_SOURCE_DIR}/schema/embed.cmake" VERBATIM)
occ_add_test(test_store_upgrade SOURCES test_store_upgrade.c "${later}" ${world} USES occ_store PkgConfig::SQLITE)
occ_add_test(test_upgrade_fixtures SOURCES test_upgrade_fixtures.c ${world} USES occ_store occ_ring PkgConfig::SQLITE PkgConfig::ZLIB)
target_compile_definitions(test_upgrade_fixtures PRIVATE OCC_UPGRADE_DATA="${PROJECT_SOURCE_DIR}/tests/data/upgrade")
occ_add_test(test_store_edges SOURCES test_store_edges.c ${world} USES occ_store PkgConfig::SQLITE)
occ_add_test(test_store_codec SOURCES test_store_codec.c USES occ_store PkgConfig::ZSTD)
occ_add_test(test_store_series SOURCES test_store_series.c ${world} USES occ_store occ_schema PkgConfig::SQLITE)
foreach(test test_store test_store_series test_store_upgrade)
  target_compile_definitions(${test} PRIVATE OCC_SQLITE_MODULE="$<TARGET_FILE:occtrace_sqlite>")
  add_dependencies(${test} occtrace_sqlite)
endforeach()
occ_add_test(test_store_crash SOURCES test_store_crash.c ${world} USES occ_store PkgConfig::SQLITE)
add_test(NAME test_store_crash_long COMMAND test_store_crash long)
_occ_test_properties(test_store_crash_long slow)
occ_add_test(test_store_files SOURCES test_store_files.c ${world} USES occ_packed_history occ_store PkgConfig::SQLITE)
target_link_options(test_store_files PRIVATE LINKER:--wrap=statfs)
occ_add_test(test_store_memory SOURCES test_store_memory.c USES occ_store PkgConfig::SQLITE STEPS)
target_link_options(test_store_memory PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup)
# Debian's libzstd.a has a compressor that no shared object can be linked with: the bundle's extension must not need it.
add_test(NAME store_extension_only_reads
         COMMAND sh -c "! nm -D --undefined-only '$<TARGET_FILE:occtrace_sqlite>' | grep -i 'ZSTD_.*\\(compressC\\|CCtx\\)'")
_occ_test_properties(store_extension_only_reads quick)
add_test(NAME store_documents
         COMMAND sh -c "'$<TARGET_FILE:occ_gen_sql_docs>' >sql.md && sed '1,/^<!-- Below/d' '${PROJECT_SOURCE_DIR}/docs/sql.md' | diff - sql.md")
_occ_test_properties(store_documents quick)
if(TARGET occ_cluster)
  occ_add_test(test_outbox SOURCES test_outbox.c USES occ_cluster PkgConfig::SQLITE STEPS)
  occ_add_test(test_outbox_measured SOURCES test_outbox_measured.c USES occ_cluster)
  occ_add_test(test_seen SOURCES test_seen.c USES occ_cluster)
endif()
occ_add_test(test_sha256 SOURCES test_sha256.c USES occ_pseudonym)
occ_add_test(test_remote_texts SOURCES test_remote_texts.c USES occ_ask)
