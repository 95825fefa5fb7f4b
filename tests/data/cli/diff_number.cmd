occq diff 1 run:2 -d h.db
