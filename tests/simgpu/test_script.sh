#!/usr/bin/env bash
# scripts/simgpu: its options, what it sets, and that it ends as its command ends.
#   test_script.sh SCRIPT BUILD
set -u
script=$1 build=$2
failed=0

expect() { # what, wanted, got
  [ "$2" = "$3" ] || { echo "FAILED: $1: wanted '$2', got '$3'"; failed=1; }
}

code_of() {
  "$@" >/dev/null 2>&1
  echo $?
}

# shellcheck disable=SC2016
expect "variables" "t4 $build/simgpu/libcupti.so.13 $build/simgpu" \
  "$(env -u LD_LIBRARY_PATH -u OCCTRACE_CUPTI "$script" --gpu t4 --build "$build" \
     sh -c 'echo "$OCCSIM_GPU $OCCTRACE_CUPTI $LD_LIBRARY_PATH"')"
expect "several devices" "a100,h200" "$("$script" --gpu=a100,h200 --build="$build" sh -c 'echo $OCCSIM_GPU')"
expect "exit code" 7 "$(code_of "$script" --build "$build" sh -c 'exit 7')"
expect "--help" 0 "$(code_of "$script" --help)"
expect "unknown option" 2 "$(code_of "$script" --nonsense true)"
expect "unknown model" 2 "$(code_of "$script" --gpu gtx --build "$build" true)"
expect "no command" 2 "$(code_of "$script" --build "$build")"
expect "nothing built" 1 "$(code_of "$script" --build /nonexistent true)"
exit $failed
