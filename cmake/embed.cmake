# cmake -DOUTPUT=assets.c "-DTEXTS=name=a.css,b.css;other=c.js" -P embed.cmake
# Writes files, joined by name, into C arrays: `name`, and `name_sha256`, the base64 of its SHA-256, as a page's policy
# (CSP) has it. Bytes as numbers: no limit on the length of a string literal, no quoting.
#
# occ_embed(VARIABLE TEXTS...): the C file that a target compiles for that.
function(occ_bytes_of file variable)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  set(${variable} "${bytes}" PARENT_SCOPE)
endfunction()

function(occ_embed variable)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${variable}.c")
  string(REGEX REPLACE "[^;=,]*=" "" files "${ARGN}")
  string(REPLACE "," ";" files "${files}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DTEXTS=${ARGN}" -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake" COMMENT "Embedding ${variable}" VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

# 32 bytes are 43 digits of six bits, and one for padding.
function(occ_base64_of_sha256 hex variable)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 six)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${six} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 character)
      string(APPEND text "${character}")
    endforeach()
  endforeach()
  string(SUBSTRING "${text}" 0 43 text)
  set(${variable} "${text}=" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(arrays "")
  foreach(text IN LISTS TEXTS)
    string(REPLACE "=" ";" text "${text}")
    list(GET text 0 name)
    list(GET text 1 files)
    string(REPLACE "," ";" files "${files}")
    set(joined "")
    file(REMOVE "${OUTPUT}.${name}")
    foreach(file IN LISTS files)
      occ_bytes_of("${file}" bytes)
      string(APPEND joined "${bytes}")
      file(READ "${file}" content)
      file(APPEND "${OUTPUT}.${name}" "${content}")
    endforeach()
    file(SHA256 "${OUTPUT}.${name}" hex)
    occ_base64_of_sha256("${hex}" base64)
    string(APPEND arrays "extern const char ${name}[], ${name}_sha256[];\n"
      "const char ${name}[] = {${joined}0};\nconst char ${name}_sha256[] = \"${base64}\";\n")
  endforeach()
  file(WRITE "${OUTPUT}" "/* Made by cmake/embed.cmake. */\n${arrays}")
endif()
