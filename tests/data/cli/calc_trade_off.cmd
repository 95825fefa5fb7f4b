occq calc --gpu h200 --threads 256 --regs 8 --grid 2113 | grep trade-off; occq calc --gpu h200 --threads 256 --regs 8 --grid 2114 | grep trade-off
