for c in top history export 'show gemm' gaps 'live -b -n 1'; do occq $c -d h.db --run 99 2>&1 | grep -v '^[0-9]'; done
