# Debian's package: "cmake --preset debian", then cpack (scripts/package --deb). Included by the top CMakeLists.txt when
# OCC_DEBIAN is ON; the prefix is /usr.
set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # absolute paths: /etc
set(CPACK_PACKAGE_NAME occtrace)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "the developers of occtrace <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Records every kernel launch of unmodified CUDA programs, computes theoretical
occupancy and what limits it, measures what was achieved, and keeps the history
in SQLite. The driver and CUPTI are opened at run time, where they exist.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd, libcurl4") # opened at run time
set(_debian "${CMAKE_CURRENT_LIST_DIR}/debian")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${_debian}/postinst;${_debian}/prerm;${_debian}/postrm;${_debian}/conffiles")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/occtrace RENAME copyright)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION share/doc/occtrace)
include(CPack)
