occq show -d m.db gemm --all
