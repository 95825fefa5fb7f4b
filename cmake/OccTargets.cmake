# How every target of the project is compiled, and the two helpers that make one.
#
# occ_warnings         INTERFACE target: strict warnings.
# occ_compile_options  INTERFACE target: those, sanitizers, coverage.
# occ_add_library(NAME SOURCES... [PUBLIC_HEADERS dir] [USES targets...] [PRIVATE targets...])
#     a static library occ_NAME, listed in the global property OCC_LIBRARIES. Headers are named from the root ("store/store.h"), those beside a file by name alone.
# occ_add_program(NAME SOURCES... USES targets...)
# occ_limit_frames(TARGET [SOURCES...])
#     no function of the target, or of these sources of it, needs more than 1.5 KiB of stack.

add_library(occ_warnings INTERFACE)
target_compile_definitions(occ_warnings INTERFACE _GNU_SOURCE)
target_compile_options(occ_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wformat=2 -Wundef -fno-common -fvisibility=hidden
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
if(OCC_WERROR)
  target_compile_options(occ_warnings INTERFACE -Werror)
endif()
add_library(occ_compile_options INTERFACE)
target_link_libraries(occ_compile_options INTERFACE occ_warnings)
if(OCC_SANITIZE)
  target_compile_options(occ_compile_options INTERFACE
    -fsanitize=${OCC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(occ_compile_options INTERFACE -fsanitize=${OCC_SANITIZE})
  find_program(OCC_LLD ld.lld) # links these large programs in a quarter of the time
  if(OCC_LLD)
    target_link_options(occ_compile_options INTERFACE -fuse-ld=lld)
  endif()
endif()
if(OCC_COVERAGE)
  target_compile_options(occ_compile_options INTERFACE --coverage)
  target_link_options(occ_compile_options INTERFACE --coverage)
endif()

if(OCC_BUILD_FUZZ) # libFuzzer counts edges; that costs the tests 6 %. Its other instrumentation doubles their time: preset fuzz.
  target_compile_options(occ_compile_options INTERFACE -fsanitize-coverage=inline-8bit-counters,pc-table)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

function(occ_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(occ_${name} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY OCC_LIBRARIES occ_${name})
  target_include_directories(occ_${name} INTERFACE "${PROJECT_SOURCE_DIR}")
  target_include_directories(occ_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(occ_${name} PUBLIC ${ARG_USES} PRIVATE occ_compile_options ${ARG_PRIVATE})
endfunction()

# The guest runs on stacks of the program's threads, which may have 16 KiB. A sanitizer makes frames larger.
function(occ_limit_frames target)
  set(limit -Werror=frame-larger-than=1536)
  if(OCC_SANITIZE)
    return()
  elseif(ARGN)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${limit})
  else()
    target_compile_options(${target} PRIVATE ${limit})
  endif()
endfunction()

function(occ_add_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE occ_compile_options ${ARG_USES})
endfunction()
