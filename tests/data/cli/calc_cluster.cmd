occq calc --gpu "H200" --threads 256 --regs 64 --dynamic-smem 100k --grid 1000 --cluster 8 --barriers 2 | sed "/OCCUPANCY of a full wave over [^b]/,\$d"
