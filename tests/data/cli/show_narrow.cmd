COLUMNS=80 occq show -d m.db gemm --explain; COLUMNS=60 occq show -d h.db "(gemm|tiny)"
