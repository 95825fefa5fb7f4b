occq sql -d h.db 'SELECT 1; SELECT 2'
