occq launches -d h.db -n 1 --json --run 1
