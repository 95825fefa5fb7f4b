# The RPM package: "cmake --preset rpm", then cpack (scripts/package --rpm). Included by OccPortable.cmake when OCC_RPM is ON; the
# prefix is /usr. It is made on Debian by rpmbuild and needs glibc 2.34 or newer, so it carries the other libraries.
set(CPACK_GENERATOR RPM)
set(CPACK_SET_DESTDIR ON) # absolute paths: /etc
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_ARCHITECTURE "${CMAKE_SYSTEM_PROCESSOR}") # rpmbuild --target
set(CPACK_RPM_PACKAGE_DESCRIPTION "${OCC_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_PACKAGE_VENDOR "${OCC_MAINTAINER}")
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND LGPL-2.1-or-later AND LGPL-3.0-or-later AND BSD-2-Clause AND BSD-3-Clause AND ISC AND MIT AND X11-distribute-modifications-variant AND Zlib AND blessing")
set(CPACK_RPM_PACKAGE_REQUIRES "libcurl.so.4()(64bit)") # opened at run time
set(CPACK_RPM_PACKAGE_REQUIRES_PRE "shadow-utils")
set(_rpm "${CMAKE_CURRENT_LIST_DIR}/rpm")
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE "${_rpm}/post")
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE "${_rpm}/preun")
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE "${_rpm}/postun")
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/occtrace/occtrace.yaml")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /etc /etc/occtrace /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d
    /usr/lib/tmpfiles.d /usr/lib64/pkgconfig /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish
    /usr/share/fish/vendor_completions.d /usr/share/man /usr/share/man/man1 /usr/share/man/man8 /usr/share/zsh /usr/share/zsh/site-functions)
# No library of lib/occtrace is for others; who develops with libocctrace-query has pkg-config. Files are stripped and compressed already.
set(CPACK_RPM_SPEC_MORE_DEFINE
    "%global __provides_exclude_from ^/usr/lib/occtrace/
%global __requires_exclude ^(lib(smartcols|acl|nettle)[.]so[.]|/usr/bin/pkg-config)
%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global _buildhost reproducible
%global source_date_epoch_from_changelog 0
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1")
