occq runs -d h.db
