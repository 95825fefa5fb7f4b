occq launches -d m.db -n 4; occq launches -d m.db --run 1 -n 1000 | tail -n 4
