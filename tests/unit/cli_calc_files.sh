#!/usr/bin/env bash
# cli_calc_files.sh OCCQ IMAGES: what occq reads from compiled files is what ptxas said when it made them. IMAGES may
# not exist (no nvcc): skipped.
set -u
occq=$1 images=$2
[ -f "$images/sm_90.cubin" ] || { echo "no compiled files: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Name, registers and shared memory of every kernel that can have 32 threads.
kernels() {
    "$occq" calc --gpu h200 --threads 32 "$@" --json |
        sed -nE 's/^ *"(name|registers_per_thread|static_smem_bytes)": (.*[^,]),?$/\2/p' | paste -d' ' - - - | sort
}

kernels --ptxas "$images/sm_90.ptxas" >"$work/said"
[ "$(wc -l <"$work/said")" -gt 3 ] || { echo "FAIL: only $(wc -l <"$work/said") kernels in sm_90.ptxas"; failed=1; }
for file in sm_90.cubin plain.fatbin all.fatbin object.o library.so program.out; do
    kernels --cubin "$images/$file" >"$work/read"
    diff "$work/said" "$work/read" || { echo "FAIL: $file"; failed=1; }
done

# sm_100a runs on 10.0 alone: on 10.3 the values are shown with a warning.
for device in 10.0 10.3; do
    "$occq" calc --cc $device --sms 148 --threads 32 --kernel '^heavy' --cubin "$images/arch_specific.fatbin" >"$work/out" 2>"$work/error"
    grep -q "compiled for sm_100a" "$work/out" || { echo "FAIL: sm_100a on $device: $(head -3 "$work/out")"; failed=1; }
    [ $device = 10.0 ] && want='' || want='occq calc: nothing in it was compiled for compute capability 10.3; these are the values for sm_100a'
    [ "$(cat "$work/error")" = "$want" ] || { echo "FAIL: sm_100a on $device: $(cat "$work/error")"; failed=1; }
done

# A file cut anywhere is an error, never a number.
for bytes in 0 1 63 64 500 2000; do
    head -c "$bytes" "$images/sm_90.cubin" >"$work/cut.cubin"
    out=$("$occq" calc --gpu h200 --threads 32 --cubin "$work/cut.cubin" 2>"$work/error")
    [ $? -eq 1 ] && [ -z "$out" ] && grep -q -- "--cubin: .*cut.cubin" "$work/error" ||
        { echo "FAIL: cut at $bytes: $out $(cat "$work/error")"; failed=1; }
done
exit $failed
