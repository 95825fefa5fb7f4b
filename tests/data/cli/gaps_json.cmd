occq gaps -d h.db --run 1 --json
