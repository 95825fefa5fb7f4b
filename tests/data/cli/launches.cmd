occq launches -d h.db -n 3
