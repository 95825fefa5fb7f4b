# cmake -DOUTPUT=schema.c "-DINPUTS=0001_a.sql;0002_b.sql" ["-DTEXTS=warehouse.sql;accounts.xml"] ["-DWAREHOUSE=0001_c.sql"]
#   -P embed.cmake
# Writes the numbered SQL files of the history and of the warehouse into C tables.
include("${CMAKE_CURRENT_LIST_DIR}/../cmake/embed.cmake")

set(arrays "")

# Sets `variable` to the rows of a table; the files' bytes go to `arrays`.
function(_numbered prefix variable)
  set(rows "")
  set(expected 1)
  foreach(input IN LISTS ARGN)
    get_filename_component(name "${input}" NAME_WE)
    if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_[a-z0-9_]+$")
      message(FATAL_ERROR "${input}: migrations are called NNNN_words.sql")
    endif()
    math(EXPR version "1${CMAKE_MATCH_1} - 10000")
    if(NOT version EQUAL expected)
      message(FATAL_ERROR "${input}: the number must be ${expected}")
    endif()
    if(version GREATER 64) # bits of a number in cluster/tables.c
      message(FATAL_ERROR "${input}: at most 64 migrations")
    endif()
    math(EXPR expected "${expected} + 1")
    occ_bytes_of("${input}" bytes)
    string(APPEND arrays "static const char ${prefix}_${version}[] = {${bytes}0};\n")
    string(APPEND rows "    {${version}, \"${name}\", ${prefix}_${version}},\n")
  endforeach()
  set(arrays "${arrays}" PARENT_SCOPE)
  set(${variable} "${rows}" PARENT_SCOPE)
endfunction()

_numbered(sql rows ${INPUTS})
_numbered(warehouse warehouse_rows ${WAREHOUSE})
foreach(text IN LISTS TEXTS)
  get_filename_component(name "${text}" NAME)
  string(REPLACE "." "_" name "${name}")
  occ_bytes_of("${text}" bytes)
  string(APPEND arrays "const char occ_schema_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by schema/embed.cmake. */
#include \"schema/schema.h\"

${arrays}
const struct occ_schema_migration occ_schema_migrations[] = {
${rows}    {0, 0, 0},
};

const struct occ_schema_migration occ_schema_warehouse_migrations[] = {
${warehouse_rows}    {0, 0, 0},
};
")
