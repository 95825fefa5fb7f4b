occq sql -d h.db
