occq gaps -d h.db --run 2
