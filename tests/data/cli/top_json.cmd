occq top -d h.db --json
