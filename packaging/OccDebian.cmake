# Debian's package: "cmake --preset debian", then cpack (scripts/package --deb). Included by the top CMakeLists.txt when
# OCC_DEBIAN is ON; the prefix is /usr. lintian finds nothing that packaging/debian/lintian-overrides does not explain.
include("${CMAKE_CURRENT_LIST_DIR}/OccPackage.cmake")
set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # absolute paths: /etc
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${OCC_PACKAGE_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64) # perhaps another architecture than that of dpkg here, cpack's default
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/OccDebianHost.cmake")
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd, libcurl4") # opened at run time
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3)
set(_debian "${CMAKE_CURRENT_LIST_DIR}/debian")
set(OCC_DEBIAN_DATE 0) # of the changelog's entry, in seconds since 1970
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  set(OCC_DEBIAN_DATE "$ENV{SOURCE_DATE_EPOCH}")
endif()
execute_process(COMMAND date --utc --rfc-email "--date=@${OCC_DEBIAN_DATE}" OUTPUT_VARIABLE OCC_DEBIAN_DATE
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(_made "${PROJECT_BINARY_DIR}/debian")
configure_file("${_debian}/changelog.in" "${_made}/changelog" @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${_debian}/postinst;${_debian}/prerm;${_debian}/postrm;${_debian}/conffiles;${_debian}/triggers;${_debian}/shlibs")
execute_process(COMMAND gzip -9 -n -f -k "${_made}/changelog" COMMAND_ERROR_IS_FATAL ANY)
install(FILES "${_debian}/copyright" "${_made}/changelog.gz" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/occtrace)
install(FILES "${_debian}/lintian-overrides" DESTINATION share/lintian/overrides RENAME occtrace)
include(CPack)
