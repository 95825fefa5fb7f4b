occq top -d h.db >/dev/full
