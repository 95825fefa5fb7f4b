# What of the CUDA toolkit is here. Nothing of it is needed to build occtrace itself: its headers let
# the injector check its record layouts against NVIDIA's and the model against cuda_occupancy.h, nvcc
# makes the kernels of the samples. What is missing is said once, at configure time.
#
# Sets OCC_CUDA_INCLUDE_DIR, OCC_HAVE_CUDA_HEADERS, OCC_HAVE_CUPTI_HEADERS, OCC_NVCC (empty if there is none that works).
#
# occ_nvcc(OUTPUT SOURCES source [headers...] ARGUMENTS arguments of nvcc...)
#     makes OUTPUT, an absolute path in the build tree, from the source, with the compilers' messages in a file .ptxas
#     beside it. Build trees share the work through OCC_NVCC_CACHE: see cmake/nvcc.sh.
set(OCC_NVCC_CACHE "" CACHE PATH "A folder of compiled kernels that build trees share (none if empty)")
function(occ_nvcc output)
  cmake_parse_arguments(ARG "" "" "SOURCES;ARGUMENTS" ${ARGN})
  get_filename_component(name "${output}" NAME)
  add_custom_command(OUTPUT "${output}"
    COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/nvcc.sh" "${OCC_NVCC_CACHE}" "${PROJECT_BINARY_DIR}" "${output}" ${ARG_SOURCES}
            -- "${OCC_NVCC}" ${ARG_ARGUMENTS}
    DEPENDS ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/cmake/nvcc.sh" COMMENT "nvcc ${name}" VERBATIM)
endfunction()

set(_occ_cuda_roots $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
find_path(OCC_CUDA_INCLUDE_DIR cuda.h
  HINTS ${_occ_cuda_roots} PATH_SUFFIXES include targets/x86_64-linux/include)
find_path(OCC_CUPTI_INCLUDE_DIR cupti_activity.h
  HINTS ${OCC_CUDA_INCLUDE_DIR} ${_occ_cuda_roots} PATH_SUFFIXES include extras/CUPTI/include)
find_program(OCC_NVCC_PROGRAM nvcc HINTS ${_occ_cuda_roots} PATH_SUFFIXES bin)
set(OCC_HAVE_CUDA_HEADERS OFF)
set(OCC_HAVE_CUPTI_HEADERS OFF)
set(OCC_NVCC "")
if(OCC_CUDA_INCLUDE_DIR)
  set(OCC_HAVE_CUDA_HEADERS ON)
endif()
if(OCC_HAVE_CUDA_HEADERS AND OCC_CUPTI_INCLUDE_DIR)
  set(OCC_HAVE_CUPTI_HEADERS ON)
endif()
# nvcc needs a host compiler, and one that it knows: asked once.
if(OCC_NVCC_PROGRAM AND NOT OCC_NVCC_WORKS)
  file(WRITE "${PROJECT_BINARY_DIR}/nvcc-probe/probe.cu" "__global__ void probe() {}\n")
  execute_process(COMMAND "${OCC_NVCC_PROGRAM}" -fatbin -o probe.fatbin probe.cu
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/nvcc-probe" RESULT_VARIABLE _occ_failed ERROR_VARIABLE _occ_why OUTPUT_QUIET)
  if(_occ_failed)
    message(STATUS "nvcc cannot compile: ${_occ_why}")
  else()
    set(OCC_NVCC_WORKS ON CACHE INTERNAL "nvcc has compiled a kernel")
  endif()
endif()
if(OCC_NVCC_WORKS)
  set(OCC_NVCC "${OCC_NVCC_PROGRAM}")
endif()
mark_as_advanced(OCC_CUDA_INCLUDE_DIR OCC_CUPTI_INCLUDE_DIR OCC_NVCC_PROGRAM)
if(NOT OCC_HAVE_CUDA_HEADERS)
  message(STATUS "CUDA headers not found: no simulated device, no samples, no check of the model against cuda_occupancy.h")
elseif(NOT OCC_HAVE_CUPTI_HEADERS)
  message(STATUS "CUPTI headers not found: no simulated device, record layouts are not checked")
endif()
if(NOT OCC_NVCC)
  message(STATUS "nvcc not found: the sample programs are not built")
endif()
