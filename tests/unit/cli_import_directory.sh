#!/usr/bin/env bash
# cli_import_directory.sh OCCQ SOURCE: occq import of a directory reads its regular files alone. A FIFO without a writer
# and a device without an end would keep it for ever.
set -u
occq=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
  echo "FAILED: $1"
  failed=1
}

mkdir traces
mkfifo traces/fifo.json
ln -s /dev/zero traces/device.json
mkdir traces/directory.json
cp "$source/tests/data/import/kineto.json" traces/z.json
ln -s z.json traces/link.json

timeout 60 "$occq" import -d h.db --csv -o file,state traces >out 2>err
[ $? -eq 0 ] || fail "a directory with a FIFO: $(cat err)"
[ "$(sed 1d out)" = $'traces/link.json,imported\ntraces/z.json,known' ] || fail "the files: $(cat out)"
for name in fifo device directory; do
  grep -q "traces/$name.json: skipped, it is not a regular file" err || fail "no line about $name: $(cat err)"
done

rm traces/z.json traces/link.json
timeout 60 "$occq" import -d h.db traces >out 2>err
[ $? -eq 1 ] || fail "a directory without regular files"
grep -q 'traces: no recording in this directory' err || fail "no reason: $(cat err)"
exit "$failed"
