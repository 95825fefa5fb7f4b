occq sql -d h.db 'DELETE FROM run'
