occq top -d h.db
