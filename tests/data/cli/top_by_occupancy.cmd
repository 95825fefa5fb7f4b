occq top -d h.db --by occupancy -o kernel,expect,elapsed,theor
