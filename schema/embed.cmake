# cmake -DOUTPUT=schema.c "-DINPUTS=0001_a.sql;0002_b.sql" ["-DTEXTS=warehouse.sql;accounts.xml"] -P embed.cmake
# Writes the numbered SQL files into a C table.
include("${CMAKE_CURRENT_LIST_DIR}/../cmake/embed.cmake")

set(arrays "")
set(rows "")
set(expected 1)
foreach(input IN LISTS INPUTS)
  get_filename_component(name "${input}" NAME_WE)
  if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_[a-z0-9_]+$")
    message(FATAL_ERROR "${input}: migrations are called NNNN_words.sql")
  endif()
  math(EXPR version "1${CMAKE_MATCH_1} - 10000")
  if(NOT version EQUAL expected)
    message(FATAL_ERROR "${input}: migration ${expected} is missing")
  endif()
  math(EXPR expected "${expected} + 1")
  occ_bytes_of("${input}" bytes)
  string(APPEND arrays "static const char sql_${version}[] = {${bytes}0};\n")
  string(APPEND rows "    {${version}, \"${name}\", sql_${version}},\n")
endforeach()
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
")
