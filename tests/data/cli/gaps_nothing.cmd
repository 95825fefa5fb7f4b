occq gaps -d h.db --run 3
