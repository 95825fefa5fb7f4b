occq sql -d h.db "ATTACH 'other.db' AS other"; ls other.db
