occq launches -d h.db -n 3; occq launches -d h.db --run 1 -n 1000 | tail -n 4
