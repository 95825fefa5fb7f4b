occq top -d m.db
