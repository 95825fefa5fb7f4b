occq show -d m.db gemm --json
