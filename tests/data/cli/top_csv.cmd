occq top -d h.db --csv
