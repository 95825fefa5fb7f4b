if(TARGET occ_sampler)
  occ_add_test(test_sampler_sets SOURCES test_sampler_sets.c USES occ_sampler)
endif()
