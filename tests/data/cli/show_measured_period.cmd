occq show -d m.db gemm --all --since "2023-11-14 22:14:00"; occq show -d m.db gemm --all --until "2023-11-14 22:14:00" | grep measured
