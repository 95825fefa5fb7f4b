occq sql -d h.db 'SELECT 1 WHERE 0'
