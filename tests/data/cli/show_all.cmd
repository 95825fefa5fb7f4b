occq show -d h.db gemm --all
