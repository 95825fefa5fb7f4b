occq top -d m.db --low-occupancy; occq top -d m.db --low-occupancy=6 -o kernel,achieved; occq top -d m.db --low-occupancy=6.5 -o kernel,achieved --run 1
