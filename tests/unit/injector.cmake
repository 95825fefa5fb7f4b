# The doubles' path reaches the test as a definition; the doubles know only our own picture of CUPTI (cupti/activity_abi.h).
add_library(occ_fake_cupti MODULE injector_fake_cupti.c)
target_link_libraries(occ_fake_cupti PRIVATE occ_compile_options)
target_include_directories(occ_fake_cupti PRIVATE "${PROJECT_SOURCE_DIR}")
set_target_properties(occ_fake_cupti PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/unit")

add_library(occ_fake_cuda MODULE injector_fake_cuda.c)
target_link_libraries(occ_fake_cuda PRIVATE occ_compile_options)
target_link_options(occ_fake_cuda PRIVATE "LINKER:-soname,libcuda.so.1")
set_target_properties(occ_fake_cuda PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/unit")

foreach(part activity ask intern buffers env governor guest_log link preflight reclaim recording)
  occ_add_test(test_injector_${part} SOURCES test_injector_${part}.c USES occ_injector occ_ring)
endforeach()
target_link_options(test_injector_recording PRIVATE LINKER:--wrap=clock_gettime)
foreach(part matching sessions)
  occ_add_test(test_exact_${part} SOURCES test_exact_${part}.c USES occ_exact occ_ring)
endforeach()
set_target_properties(test_exact_sessions PROPERTIES ENABLE_EXPORTS ON) # is its own libcupti
occ_add_test(test_nvtx SOURCES test_nvtx.c USES occ_nvtx Threads::Threads)
if(OCC_HAVE_CUDA_HEADERS AND EXISTS "${OCC_CUDA_INCLUDE_DIR}/nvtx3/nvToolsExt.h")
  target_include_directories(test_nvtx SYSTEM PRIVATE "${OCC_CUDA_INCLUDE_DIR}")
  target_compile_definitions(test_nvtx PRIVATE OCC_HAVE_NVTX)
endif()
occ_add_test(test_injector SOURCES test_injector.c USES occ_injector occ_ring)
target_compile_definitions(test_injector PRIVATE
  OCC_FAKE_CUPTI="$<TARGET_FILE:occ_fake_cupti>" OCC_GUEST_LIBRARY="$<TARGET_FILE:occtrace_injector>")
add_dependencies(test_injector occ_fake_cupti occtrace_injector)
add_test(NAME test_injector_seconds COMMAND test_injector seconds)
_occ_test_properties(test_injector_seconds slow)
foreach(part ask intern)
  target_compile_definitions(test_injector_${part} PRIVATE OCC_FAKE_CUDA="$<TARGET_FILE:occ_fake_cuda>")
  add_dependencies(test_injector_${part} occ_fake_cuda)
endforeach()

if(NOT OCC_SANITIZE) # NVIDIA's library opens another in a way that sanitizers refuse
  occ_add_test(test_exact_passes SOURCES test_exact_passes.c USES occ_exact)
endif()
