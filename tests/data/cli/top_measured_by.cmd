occq top -d m.db --by between; occq top -d m.db --by occupancy -o kernel,expect,achieved
