occq top -d h.db --by occupancy -o kernel,expect,expect_elapsed,theor
