occq top -d h.db --run 99
