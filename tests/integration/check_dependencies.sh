#!/bin/sh
# Who may include whom (docs/architecture.md): fails on every #include "module/..." that the table does not allow,
# and on a module that the table does not know.
cd "$1" || exit 1

allowed() {
  case "$1" in
    occupancy|ring|support|image|cupti) echo "" ;;
    injector) echo "ring cupti" ;;
    config|attribution) echo "support" ;;
    store) echo "schema support occupancy" ;;
    daemon) echo "ring cupti attribution occupancy store config support" ;;
    import) echo "store occupancy support" ;;
    cli) echo "occupancy image store import config support" ;;
    *) return 1 ;;
  esac
}

status=0
for module in occupancy ring support image cupti injector config attribution store import daemon cli; do
  may=$(allowed $module) || { echo "no rule for $module"; status=1; continue; }
  for used in $(cat $module/*.[ch] $module/*/*.[ch] $module/*/*/*.[ch] 2>/dev/null |
      sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([a-z]*\)\/.*/\1/p' | sort -u); do
    case " $module $may " in
      *" $used "*) ;;
      *)
        [ -d "$used" ] || continue
        echo "$module must not include $used/:"
        grep -n "include \"$used/" $module/*.[ch] $module/*/*.[ch] $module/*/*/*.[ch] 2>/dev/null
        status=1 ;;
    esac
  done
done
if grep -nE 'sqlite3|yaml|zstd|smartcols|CUDA::|lcupti' injector/CMakeLists.txt injector/exact/CMakeLists.txt cupti/CMakeLists.txt \
    ring/CMakeLists.txt occupancy/CMakeLists.txt |
    grep -nE 'target_link_libraries|USES|PkgConfig'; then
  echo "the guest side links a library that it must not"
  status=1
fi
exit $status
