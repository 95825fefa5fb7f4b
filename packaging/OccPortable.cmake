# The portable bundle and the RPM: what is linked how, and what cpack puts into them. Included by the top CMakeLists.txt when
# OCC_PORTABLE is ON, after the libraries were found.
#
# Everything but the C library is linked statically, so that programs run on any Linux with glibc 2.34 or newer. libsmartcols (no
# static form in Debian) and libacl are LGPL: they travel as shared libraries in lib/occtrace, where programs find them relative to
# themselves.

include("${CMAKE_CURRENT_LIST_DIR}/OccPackage.cmake")
set(OCC_CARRIED_LIBRARIES "") # files of other projects whose code is in the package, for packaging/make_sbom

# occ_link_statically(TARGET archives...): the pkg-config target is its archive from now on.
function(occ_link_statically target)
  set(libraries "")
  foreach(name ${ARGN})
    if(name MATCHES "^lib")
      find_library(OCC_STATIC_${name} ${name}.a)
      if(NOT OCC_STATIC_${name})
        message(FATAL_ERROR "the portable bundle needs ${name}.a")
      endif()
      mark_as_advanced(OCC_STATIC_${name})
      list(APPEND libraries "${OCC_STATIC_${name}}")
      set(OCC_CARRIED_LIBRARIES "${OCC_CARRIED_LIBRARIES};${OCC_STATIC_${name}}" PARENT_SCOPE)
      set(OCC_CARRIED_LIBRARIES "${OCC_CARRIED_LIBRARIES};${OCC_STATIC_${name}}")
    else()
      list(APPEND libraries ${name})
    endif()
  endforeach()
  set_target_properties(PkgConfig::${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}"
                                                         INTERFACE_LINK_DIRECTORIES "")
endfunction()

occ_link_statically(SQLITE libsqlite3 m dl pthread)
occ_link_statically(ZSTD libzstd)
occ_link_statically(YAML libyaml)
occ_link_statically(YAJL libyajl_s)
occ_link_statically(ZLIB libz)
occ_link_statically(NCURSESW libncursesw libtinfo)
occ_link_statically(XXHASH libxxhash)

set(CMAKE_INSTALL_RPATH "$ORIGIN/../${OCC_INSTALL_PLUGINDIR}")

# occ_carry_library(MODULE SONAME): the shared library of that pkg-config module is part of the bundle.
function(occ_carry_library module soname)
  pkg_get_variable(directory ${module} libdir)
  file(REAL_PATH "${directory}/${soname}" library)
  install(FILES "${library}" DESTINATION "${OCC_INSTALL_PLUGINDIR}" RENAME ${soname})
  set(OCC_CARRIED_LIBRARIES "${OCC_CARRIED_LIBRARIES};${library}" PARENT_SCOPE)
endfunction()

occ_carry_library(smartcols libsmartcols.so.1)
occ_carry_library(libacl libacl.so.1)
occ_carry_library(nettle libnettle.so.8)

string(REGEX REPLACE "^;" "" OCC_CARRIED_LIBRARIES "${OCC_CARRIED_LIBRARIES}")
string(REPLACE ";" "\n" _carried "${OCC_CARRIED_LIBRARIES}")
file(WRITE "${PROJECT_BINARY_DIR}/carried_libraries" "${_carried}\n")

# Whose code is in it.
foreach(package libsqlite3-0 libzstd1 libyaml-0-2 libyajl2 zlib1g libxxhash0 libncursesw6 libtinfo6 libsmartcols1 libacl1 libnettle8)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION share/doc/occtrace/licences RENAME ${package})
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/occtrace)

if(OCC_RPM)
  include("${CMAKE_CURRENT_LIST_DIR}/OccRpm.cmake")
else()
  set(OCC_SERVICE_PREFIX /opt/occtrace) # a bundle unpacks anywhere, but units and what opts nodes in name paths
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGE_FILE_NAME "occtrace-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
endif()
include(CPack)
