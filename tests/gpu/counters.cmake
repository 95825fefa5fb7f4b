# The experiments with counters: E4, E5, E7 to E11, E22, the load that they watch and the process that samples.

# What they compute themselves.
if(OCC_BUILD_TESTS)
  occ_add_test(test_gpu_counters SOURCES test_helpers.c abba.c edges.c load_child.c ncu_csv.c USES occ_compare occ_support m)
  target_include_directories(test_gpu_counters PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
endif()

if(NOT OCC_HAVE_CUPTI_HEADERS OR NOT TARGET sample_hello)
  message(STATUS "GPU experiments with counters: not built (they need nvcc and cuda.h)")
  return()
endif()

# The load's kernels, for the GPUs of the samples.
get_directory_property(gencode DIRECTORY "${PROJECT_SOURCE_DIR}/tests/samples" DEFINITION gencode)
get_directory_property(ptx DIRECTORY "${PROJECT_SOURCE_DIR}/tests/samples" DEFINITION ptx)
set(name load)
set(image "${CMAKE_CURRENT_BINARY_DIR}/load.fatbin")
occ_nvcc("${image}" SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/load.cu"
         ARGUMENTS -fatbin -t 2 -O3 -Werror all-warnings ${gencode} ${ptx})
configure_file("${PROJECT_SOURCE_DIR}/tests/samples/embed.c.in" load_image.c @ONLY)
set_source_files_properties("${CMAKE_CURRENT_BINARY_DIR}/load_image.c" PROPERTIES OBJECT_DEPENDS "${image}")

set(counter_programs "")
function(add_counter_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${kit}")
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/tests")
  target_include_directories(${name} SYSTEM PRIVATE "${OCC_CUDA_INCLUDE_DIR}")
  target_link_libraries(${name} PRIVATE occ_compile_options occ_counters occ_support ${CMAKE_DL_LIBS} m)
  set(counter_programs ${counter_programs} ${name} PARENT_SCOPE)
endfunction()

set(common "${PROJECT_SOURCE_DIR}/tests/samples/common.c")
add_counter_program(gpu_load load_main.c load.c sampling.c stop.c ${common}
  "${CMAKE_CURRENT_BINARY_DIR}/load_image.c" "${image}")
add_counter_program(gpu_sample sample_main.c sampling.c stop.c ${common})
add_counter_program(gpu_turns turns_main.c stop.c ${common})

add_library(gpu_experiment OBJECT load_child.c public_copy.c report.c sampled.c stop.c verdict.c)
target_link_libraries(gpu_experiment PRIVATE occ_compile_options occ_support)
function(add_counter_experiment name)
  add_counter_program(${name} ${name}.c $<TARGET_OBJECTS:gpu_experiment> ${ARGN})
  add_dependencies(${name} gpu_load gpu_sample)
  set(counter_programs ${counter_programs} PARENT_SCOPE)
endfunction()

add_counter_experiment(e04_other_process)
add_counter_experiment(e05_clocks nvml.c)
add_counter_experiment(e07_privileges)
add_counter_experiment(e08_intervals)
add_counter_experiment(e09_clock_offset edges.c)
add_counter_experiment(e10_occupancy ncu_csv.c)
add_counter_experiment(e11_gpm)
add_counter_experiment(e22_switch)
add_dependencies(e22_switch gpu_turns)

if(OCC_PORTABLE)
  install(TARGETS ${counter_programs} RUNTIME DESTINATION "${OCC_KIT_DESTINATION}")
endif()
