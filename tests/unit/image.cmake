# The readers of compiled code against what nvcc, ptxas and the host linker make; without nvcc the tests skip what
# needs it.
set(_images "${CMAKE_CURRENT_BINARY_DIR}/images")
set(_image_source "${PROJECT_SOURCE_DIR}/tests/simgpu/test_kernels.cu")
set(_image_files "")

# Makes one file with nvcc and keeps what ptxas said as NAME.ptxas (without the last suffix).
function(image_add name)
  occ_nvcc("${_images}/${name}" SOURCES "${_image_source}" ARGUMENTS ${ARGN} -Xptxas -v)
  set(_image_files ${_image_files} "${_images}/${name}" PARENT_SCOPE)
endfunction()

set(_image_definitions OCC_TEST_FOREIGN_ARCHIVE="$<TARGET_FILE:occ_image>")
if(OCC_NVCC)
  file(MAKE_DIRECTORY "${_images}")
  list(APPEND _image_definitions OCC_TEST_IMAGES="${_images}")
  set(_all -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80
           -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90)
  set(_one -gencode arch=compute_90,code=sm_90)
  foreach(sm 75 80 90 100 120)
    image_add(sm_${sm}.cubin -cubin -arch=sm_${sm})
  endforeach()
  image_add(relocatable.cubin -cubin -dc -arch=sm_90)
  image_add(plain.fatbin -fatbin --compress-mode=none ${_all})
  image_add(all.fatbin -fatbin -Xfatbin -compress-all ${_all})
  image_add(size.fatbin -fatbin --compress-mode=size ${_all})
  image_add(speed.fatbin -fatbin -Xfatbin -compress-all --compress-mode=speed ${_all})
  image_add(arch_specific.fatbin -fatbin -gencode arch=compute_100a,code=sm_100a)
  image_add(ptx.fatbin -fatbin -gencode arch=compute_90,code=compute_90)
  # Host files. The program is never run: it needs not be whole.
  image_add(object.o -c ${_all})
  image_add(device.o -dc ${_one})
  image_add(library.so -shared -cudart none -Xcompiler -fPIC ${_all})
  image_add(program.out -cudart none -Xlinker --unresolved-symbols=ignore-all -Xlinker -e0 ${_one})
  # A static library: an object with CUDA code beside one without, and a file that is no object.
  add_custom_command(OUTPUT "${_images}/archive.a"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${_images}/archive.a"
    COMMAND "${CMAKE_AR}" rcs "${_images}/archive.a" "${_image_source}" "$<TARGET_OBJECTS:occ_image>" "${_images}/object.o"
    DEPENDS "${_images}/object.o" occ_image COMMAND_EXPAND_LISTS COMMENT "archive.a" VERBATIM)
  list(APPEND _image_files "${_images}/archive.a")
  add_custom_target(image_test_files ALL DEPENDS ${_image_files})
else()
  message(STATUS "Readers of compiled code: tests with real files are skipped (no nvcc)")
endif()

occ_add_test(test_image_ptxas SOURCES test_image_ptxas.c USES occ_image)
foreach(name test_image test_image_made)
  occ_add_test(${name} SOURCES ${name}.c "${PROJECT_SOURCE_DIR}/tests/simgpu/image_details.c" USES occ_image)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
endforeach()
target_compile_definitions(test_image PRIVATE ${_image_definitions})
if(TARGET image_test_files)
  add_dependencies(test_image image_test_files)
endif()
