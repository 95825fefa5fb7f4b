occq sql -d h.db 'DELETE FROM stored_run'
