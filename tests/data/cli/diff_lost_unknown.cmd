occq diff h.db,run:1 h.db,run:2 --force --json | grep '"lost"'
