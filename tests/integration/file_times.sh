#!/usr/bin/env bash
# Every packed file has the time SOURCE_DATE_EPOCH, also a file that is older: times in a checkout are no part of a package.
#
#   file_times.sh PACKAGING
set -euo pipefail
packaging=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
export SOURCE_DATE_EPOCH=1500000000 TZ=UTC LC_ALL=C
mkdir "$work/source"
cat >"$work/source/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(times VERSION 1 LANGUAGES NONE)
install(FILES old new DESTINATION share)
set(CPACK_SET_DESTDIR ON)
set(CPACK_PACKAGE_CONTACT "nobody <nobody@example.org>")
set(CPACK_PACKAGE_FILE_NAME times)
set(CPACK_RPM_PACKAGE_LICENSE none)
set(CPACK_RPM_SPEC_MORE_DEFINE "%global clamp_mtime_to_source_date_epoch 1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "\${PROJECT_SOURCE_DIR}/postinst")
set(CPACK_PRE_BUILD_SCRIPTS "$packaging/OccFileTimes.cmake")
include(CPack)
EOF
printf '#!/bin/sh\n' >"$work/source/postinst"
chmod +x "$work/source/postinst"
for file in old new; do echo $file >"$work/source/$file"; done
touch --date=@1000000000 "$work/source/old" "$work/source/postinst"
cmake -S "$work/source" -B "$work/build" -DCMAKE_INSTALL_PREFIX=/usr >/dev/null
pack() { (cd "$work/build" && cpack -G "$1" >"$work/log" 2>&1) || { cat "$work/log"; fail "cpack -G $1"; }; }
same_time() { # WHAT, lines that begin with a time
  [ "$(cut -d' ' -f1,2 "$work/times" | sort -u)" = '2017-07-14 02:40:00' ] || { cat "$work/times"; fail "$1 has other times"; }
}
of_tar() { tar tv --full-time -f - | awk '{ print $4, $5, $6 }' >"$work/times"; }

pack TGZ
gzip -dc "$work/build/times.tar.gz" | of_tar
same_time tar.gz
if command -v dpkg-deb >/dev/null; then
  pack DEB
  dpkg-deb --fsys-tarfile "$work/build/times.deb" | of_tar
  same_time deb
  dpkg-deb --ctrl-tarfile "$work/build/times.deb" | of_tar
  same_time "the deb's control"
fi
if command -v rpmbuild >/dev/null; then
  pack RPM
  rpm -qp --qf '[%{FILEMTIMES} %{FILENAMES}\n]' "$work/build/times.rpm" |
    while read -r time name; do echo "$(date -d "@$time" '+%F %T') $name"; done >"$work/times"
  same_time rpm
fi
