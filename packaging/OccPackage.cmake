# What all packages share: name, version, maintainer, and files that depend neither on the time nor on the place of the build.
set(CPACK_PACKAGE_NAME occtrace)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(OCC_MAINTAINER "the developers of occtrace <occtrace@example.org>" CACHE STRING "Who publishes the packages: NAME <MAIL>")
set(CPACK_PACKAGE_CONTACT "${OCC_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(OCC_PACKAGE_DESCRIPTION
    "Records every kernel launch of unmodified CUDA programs, computes theoretical
occupancy and what limits it, measures what was achieved, and keeps the history
in SQLite. The driver and CUPTI are opened at run time, where they exist.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_ARCHIVE_THREADS 0)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/OccFileTimes.cmake")
# Packages have no debug information, which would have paths of the build and change the build ids of stripped files. gcc applies the
# last of several options that match.
add_compile_options(-g0 "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/="
                    "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build")
