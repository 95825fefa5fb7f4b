for c in "top" "show gemm"; do occq $c --gpu 1 --cluster http://127.0.0.1:1/; echo "$?"; done
