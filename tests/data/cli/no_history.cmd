occq top -d none.db
