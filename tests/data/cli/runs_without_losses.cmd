occq runs -d h.db --run 2; COLUMNS=60 occq runs -d h.db
