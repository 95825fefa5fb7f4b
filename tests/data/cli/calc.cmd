occq calc --gpu t4 --threads 128 --regs 71 --smem 512 --grid 250 --carveout 32k
