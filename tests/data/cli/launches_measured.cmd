occq launches -d m.db -n 4
