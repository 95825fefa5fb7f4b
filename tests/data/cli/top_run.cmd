occq top -d h.db --run 1 --device 1 --kernel gemm -o kernel,shapes,full_waves,partial,design,id
