occq top -d h.db --low-occupancy
