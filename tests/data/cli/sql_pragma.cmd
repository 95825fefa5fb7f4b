occq sql -d h.db 'PRAGMA user_version = 7'
