occq show -d m.db gemm --since "2023-11-14 22:14:00"; occq show -d m.db gemm --until "2023-11-14 22:14:00" | grep measured
