#!/bin/sh
# The guest library exports one symbol and links nothing but libc.   exported_symbols.sh LIBOCCTRACE
symbols=$(nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | sort -u)
if [ "$symbols" != InitializeInjection ]; then
  echo "exported: $symbols"
  exit 1
fi
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libpthread|libdl|librt|ld-linux[^.]*)\.so')
if [ -n "$needed" ]; then
  echo "links: $needed"
  exit 1
fi
readelf -d "$1" | grep -q NODELETE || { echo "not marked NODELETE"; exit 1; }
